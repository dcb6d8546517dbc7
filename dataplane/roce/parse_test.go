package roce

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

var (
	v4a, v4b = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.2")
	v6a, v6b = netip.MustParseAddr("2001:db8:1::7"), netip.MustParseAddr("2001:db8:2::8")
)

func build(tb testing.TB, s PacketSpec) []byte {
	tb.Helper()
	b, err := AppendPacket(nil, &s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func sample(tb testing.TB, v6 bool) []byte {
	tb.Helper()
	s := PacketSpec{
		Src: v4a, Dst: v4b, TOS: 0x6B, TTL: 61, IPID: 0x1234, SrcPort: 0xC001,
		BTH: BTH{
			Opcode: 0x0A, SE: true, MigReq: true, PKey: 0x8001, FECN: true, DestQP: 0xABCDEF, AckReq: true, PSN: 0xFEDCBA,
			Reserved6: 0x15, Reserved7: 0x2A,
		},
		Body: []byte("seventeen octets."),
	}
	if v6 {
		s.Src, s.Dst, s.FlowLabel = v6a, v6b, 0xBEEF1
	}
	return build(tb, s)
}

func TestParseDecodesEveryField(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		ip := sample(t, v6)
		frame := append(etherHeader(uint16(map[bool]int{false: etherIPv4, true: etherIPv6}[v6])), ip...)
		frame = append(frame, make([]byte, 7)...) // Ethernet padding, or a trailer
		var p Packet
		if err := ParseEthernet(frame, &p); err != nil {
			t.Fatal(err)
		}
		want := Packet{
			Src: v4a, Dst: v4b, TOS: 0x6B, TTL: 61, SrcPort: 0xC001, SrcMAC: [6]byte{2, 0, 0, 0, 0, 1},
			BTH: BTH{
				Opcode: 0x0A, SE: true, MigReq: true, Pad: 3, PKey: 0x8001, FECN: true, DestQP: 0xABCDEF, AckReq: true,
				PSN: 0xFEDCBA, Reserved6: 0x15, Reserved7: 0x2A,
			},
		}
		if v6 {
			want.Src, want.Dst, want.FlowLabel = v6a, v6b, 0xBEEF1
		}
		if !bytes.Equal(p.IP, ip) || !bytes.Equal(p.Body, []byte("seventeen octets.\x00\x00\x00")) {
			t.Errorf("IP %x\nbody %q", p.IP, p.Body)
		}
		p.IP, p.Body = nil, nil
		if !equalPackets(p, want) {
			t.Errorf("got  %+v\nwant %+v", p, want)
		}
	}
}

func equalPackets(a, b Packet) bool {
	return a.Src == b.Src && a.Dst == b.Dst && a.TOS == b.TOS && a.TTL == b.TTL && a.FlowLabel == b.FlowLabel &&
		a.SrcPort == b.SrcPort && a.SrcMAC == b.SrcMAC && a.VLAN == b.VLAN && a.BTH == b.BTH && a.Truncated == b.Truncated &&
		bytes.Equal(a.Body, b.Body) && bytes.Equal(a.IP, b.IP)
}

func TestParseEthernetTakesUpToTwoTags(t *testing.T) {
	for name, tt := range map[string]struct {
		tags [][2]uint16
		vlan uint16
		err  error
	}{
		"none":           {nil, 0, nil},
		"802.1Q":         {[][2]uint16{{0x8100, 3<<13 | 100}}, 100, nil},
		"802.1ad alone":  {[][2]uint16{{0x88A8, 101}}, 101, nil},
		"802.1ad 802.1Q": {[][2]uint16{{0x88A8, 7<<13 | 102}, {0x8100, 103}}, 102, nil},
		"three":          {[][2]uint16{{0x88A8, 1}, {0x8100, 2}, {0x8100, 3}}, 0, ErrNotRoCEv2},
	} {
		for _, v6 := range []bool{false, true} {
			typ := uint16(etherIPv4)
			if v6 {
				typ = etherIPv6
			}
			var p Packet
			err := ParseEthernet(append(etherHeader(typ, tt.tags...), sample(t, v6)...), &p)
			if !errors.Is(err, tt.err) || err == nil && p.VLAN != tt.vlan {
				t.Errorf("%s, IPv6 %v: VLAN %d, %v", name, v6, p.VLAN, err)
			}
		}
	}
}

// withExtensions puts extension headers before the UDP header of an IPv6 packet.
func withExtensions(ip []byte, first byte, headers ...[]byte) []byte {
	b := bytes.Clone(ip[:ipv6Len])
	b[6] = first
	for _, h := range headers {
		b = append(b, h...)
	}
	b = append(b, ip[ipv6Len:]...)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-ipv6Len))
	return b
}

func options(next, units byte) []byte {
	h := make([]byte, 8+8*int(units))
	h[0], h[1] = next, units
	return h
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	v4, v6 := sample(t, false), sample(t, true)
	set := func(b []byte, at int, v ...byte) []byte {
		c := bytes.Clone(b)
		copy(c[at:], v)
		return c
	}
	mapped := netip.MustParseAddr("::ffff:192.0.2.1").As16()
	tests := []struct {
		name  string
		ip    []byte
		err   error
		layer string
		says  string
	}{
		{"empty", nil, ErrTruncated, "IP ", "version"},
		{"version 5", set(v4, 0, 0x55), ErrNotRoCEv2, "IP ", "version"},
		{"IPv4 cut", v4[:19], ErrTruncated, "IPv4", "header"},
		{"IPv4 header length 16", set(v4, 0, 0x44), ErrMalformed, "IPv4", "header length"},
		{"IPv4 total length 19", set(v4, 2, 0, 19), ErrMalformed, "IPv4", "total length"},
		{"IPv4 total length 27", set(v4, 2, 0, 27), ErrMalformed, "UDP", "no room"},
		{"IPv4 first fragment", set(v4, 6, 0x20), ErrFragment, "IPv4", "fragment"},
		{"IPv4 last fragment", set(v4, 6, 0, 8), ErrFragment, "IPv4", "fragment"},
		{"IPv4 TCP", set(v4, 9, 6), ErrNotRoCEv2, "IPv4", "protocol"},
		{"IPv4 options cut", set(v4, 0, 0x4F)[:56], ErrTruncated, "IPv4", "options"},
		{"UDP cut", v4[:27], ErrTruncated, "UDP", "header"},
		{"UDP other port", set(v4, 22, 0x12, 0xB8), ErrNotRoCEv2, "UDP", "destination port"},
		{"UDP length short", set(v4, 24, 0, 40), ErrMalformed, "UDP", "length"},
		{"UDP length long", set(v4, 24, 1, 40), ErrMalformed, "UDP", "length"},
		{"no room for the ICRC", set(set(v4, 2, 0, 43), 24, 0, 23), ErrMalformed, "UDP", "ICRC"},
		{"BTH cut", v4[:39], ErrTruncated, "BTH", "header"},
		{"IPv6 cut", v6[:39], ErrTruncated, "IPv6", "header"},
		{"IPv6 payload length 0", set(v6, 4, 0, 0), ErrMalformed, "UDP", "no room"},
		{"IPv6 ICMP", set(v6, 6, 58), ErrNotRoCEv2, "IPv6", "next header"},
		{"IPv6 fragment", set(v6, 6, 44), ErrFragment, "IPv6", "fragment"},
		{"IPv6 routing", set(v6, 6, 43), ErrExtensionHeader, "IPv6", "routing"},
		{"IPv6 AH", set(v6, 6, 51), ErrExtensionHeader, "IPv6", "AH"},
		{"IPv6 mapped source", set(v6, 8, mapped[:]...), ErrMalformed, "IPv6", "mapped"},
		{"IPv6 mapped destination", set(v6, 24, mapped[:]...), ErrMalformed, "IPv6", "mapped"},
		{"IPv6 options, then a fragment", withExtensions(v6, 0, options(44, 0)), ErrFragment, "IPv6", "fragment"},
		{"IPv6 four options headers", withExtensions(v6, 0, options(60, 0), options(60, 0), options(60, 0), options(17, 0)), ErrExtensionHeader, "IPv6", "three"},
		{"IPv6 options cut", withExtensions(v6, 0, options(17, 0))[:45], ErrTruncated, "IPv6 options", "inside"},
		{"IPv6 options cut in their body", withExtensions(v6, 0, options(17, 2))[:60], ErrTruncated, "IPv6 options", "inside"},
		{"IPv6 options past the end", set(withExtensions(v6, 0, options(17, 0)), 41, 255), ErrMalformed, "IPv6 options", "payload length"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Packet
			err := ParseIP(tt.ip, &p)
			var fe *FieldError
			if !errors.Is(err, tt.err) || !errors.As(err, &fe) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if !strings.HasPrefix(fe.Layer+" ", tt.layer) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "offset") {
				t.Errorf("error %q, want one about %s and %q", err, tt.layer, tt.says)
			}
			if n := testing.AllocsPerRun(10, func() { _ = ParseIP(tt.ip, &p) }); n != 0 {
				t.Errorf("%v allocations to refuse it", n)
			}
		})
	}
}

func TestParseEthernetNamesWhatIsWrong(t *testing.T) {
	v4 := sample(t, false)
	for name, tt := range map[string]struct {
		frame []byte
		err   error
	}{
		"short":                        {etherHeader(etherIPv4)[:13], ErrTruncated},
		"ARP":                          {append(etherHeader(0x0806), v4...), ErrNotRoCEv2},
		"RoCEv1":                       {append(etherHeader(0x8915), v4...), ErrRoCEv1},
		"RoCEv1 is not RoCEv2":         {append(etherHeader(0x8915), v4...), ErrNotRoCEv2},
		"tag cut":                      {etherHeader(etherVLAN), ErrTruncated},
		"IPv4 under IPv6's EtherType":  {append(etherHeader(etherIPv6), v4...), ErrMalformed},
		"IPv6 under IPv4's EtherType":  {append(etherHeader(etherIPv4), sample(t, true)...), ErrMalformed},
		"nothing after the EtherType":  {etherHeader(etherIPv4), ErrTruncated},
		"fragment, with its own error": {append(etherHeader(etherIPv4), append(bytes.Clone(v4[:6]), append([]byte{0x20}, v4[7:]...)...)...), ErrFragment},
	} {
		var p Packet
		if err := ParseEthernet(tt.frame, &p); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
	}
}

func TestParseSkipsHopByHopAndDestinationOptions(t *testing.T) {
	ip := withExtensions(sample(t, true), 0, options(60, 1), options(60, 0), options(17, 2))
	if err := FixICRC(ip); err != nil {
		t.Fatal(err)
	}
	var p Packet
	if err := ParseIP(ip, &p); err != nil {
		t.Fatal(err)
	}
	if p.BTH.DestQP != 0xABCDEF || p.SrcPort != 0xC001 {
		t.Errorf("%+v", p)
	}
	if ok, err := VerifyICRC(ip); !ok || err != nil {
		t.Errorf("ICRC over extension headers: %v, %v", ok, err)
	}
}

func TestParseOfACaptureThatEndsEarly(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		ip := sample(t, v6)
		head := len(ip) - 20 - ICRCLen // the body is 20 octets
		for n := range len(ip) + 1 {
			var p Packet
			err := ParseIP(ip[:n], &p)
			switch {
			case n < head:
				if !errors.Is(err, ErrTruncated) {
					t.Fatalf("IPv6 %v, %d octets: %v, want ErrTruncated", v6, n, err)
				}
				continue
			case err != nil:
				t.Fatalf("IPv6 %v, %d octets: %v", v6, n, err)
			}
			if p.Truncated != (n < len(ip)) || len(p.Body) != min(n, len(ip)-ICRCLen)-head || len(p.IP) != n {
				t.Fatalf("IPv6 %v, %d octets: truncated %v, body %d, IP %d", v6, n, p.Truncated, len(p.Body), len(p.IP))
			}
			if _, err := VerifyICRC(p.IP); p.Truncated != errors.Is(err, ErrTruncated) {
				t.Fatalf("VerifyICRC of %d octets: %v", n, err)
			}
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	frame := append(etherHeader(etherIPv6), sample(t, true)...)
	var p Packet
	if n := testing.AllocsPerRun(100, func() {
		if err := ParseEthernet(frame, &p); err != nil {
			t.Fatal(err)
		}
		if ok, err := VerifyICRC(p.IP); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

func TestBTHKeepsReservedBits(t *testing.T) {
	for i := range 256 {
		in := []byte{byte(i), byte(i * 7), byte(i), 1, byte(i), byte(i), 2, 3, byte(i), 4, 5, byte(i)}
		h, err := ParseBTH(in)
		if err != nil {
			t.Fatal(err)
		}
		if out := AppendBTH(nil, h); !bytes.Equal(in, out) {
			t.Fatalf("in  %x\nout %x", in, out)
		}
	}
}

func TestExtendedHeadersRoundTripAndKnowTheirLength(t *testing.T) {
	raw := []byte{0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	for n := range len(raw) + 1 {
		b := raw[:n]
		d, err := ParseDETH(b)
		if (err == nil) != (n >= DETHLen) || err == nil && !bytes.Equal(AppendDETH(nil, d), b[:DETHLen]) {
			t.Errorf("DETH of %d octets: %+v, %v", n, d, err)
		}
		a, err := ParseAETH(b)
		if (err == nil) != (n >= AETHLen) || err == nil && !bytes.Equal(AppendAETH(nil, a), b[:AETHLen]) {
			t.Errorf("AETH of %d octets: %+v, %v", n, a, err)
		}
		r, err := ParseRETH(b)
		if (err == nil) != (n >= RETHLen) || err == nil && !bytes.Equal(AppendRETH(nil, r), b[:RETHLen]) {
			t.Errorf("RETH of %d octets: %+v, %v", n, r, err)
		}
		if _, err := ParseBTH(b); (err == nil) != (n >= BTHLen) {
			t.Errorf("BTH of %d octets: %v", n, err)
		}
	}
}

func TestAETHSyndromeTellsAckFromNAK(t *testing.T) {
	for s := range 256 {
		h := AETH{Syndrome: uint8(s)}
		top := s >> 5
		if h.IsAck() != (top == 0) || h.IsRNR() != (top == 1) || h.IsNAK() != (top == 3) {
			t.Errorf("syndrome 0x%02x: ACK %v, RNR %v, NAK %v", s, h.IsAck(), h.IsRNR(), h.IsNAK())
		}
	}
}
