package roce

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

func TestCNPHasTheShapeOfTheAnnex(t *testing.T) {
	for _, c := range []CNP{
		{Src: v4a, Dst: v4b, SrcPort: 49160, TOS: DefaultCNPTOS, IPID: 0xBEEF, DestQP: 0xABCDEF},
		{Src: v6a, Dst: v6b, SrcPort: 49160, TOS: DefaultCNPTOS, FlowLabel: 0xFFFFF, DestQP: 0xABCDEF, PKey: 0x8001, TTL: 9},
	} {
		ip, err := AppendCNP([]byte("before"), &c)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(ip, []byte("before")) {
			t.Fatalf("dst overwritten: %x", ip)
		}
		ip = ip[len("before"):]
		want := CNPLenIPv4
		if c.Src.Is6() {
			want = CNPLenIPv6
		}
		var p Packet
		if err := ParseIP(ip, &p); err != nil || len(ip) != want {
			t.Fatalf("%d octets, %v", len(ip), err)
		}
		bth := BTH{Opcode: OpcodeCNP, PKey: c.pkey(), BECN: true, DestQP: 0xABCDEF}
		if p.BTH != bth || p.TOS != 0xC2 || p.TTL != c.ttl() || !bytes.Equal(p.Body, make([]byte, 16)) || !p.IsCNP() {
			t.Errorf("%+v", p)
		}
		if ok, err := VerifyICRC(ip); !ok || err != nil {
			t.Errorf("ICRC: %v, %v", ok, err)
		}
		fixed := bytes.Clone(ip)
		if err := FixICRC(fixed); err != nil || !bytes.Equal(fixed, ip) {
			t.Errorf("checksums:\ngot  %x\nwant %x (%v)", ip, fixed, err)
		}
		if c.Src.Is4() && (binary.BigEndian.Uint16(ip[4:]) != 0xBEEF || binary.BigEndian.Uint16(ip[6:]) != 0x4000 || binary.BigEndian.Uint16(ip[26:]) != 0) {
			t.Errorf("identification, flags or UDP checksum: %x", ip[:28])
		}
		back, err := ParseCNP(ip)
		c.TTL, c.PKey = c.ttl(), c.pkey()
		if err != nil || back != c {
			t.Errorf("read back %+v, %v; want %+v", back, err, c)
		}
	}
}

// Whatever its fields are, a CNP is what the builder of any packet makes of them, whose ICRC is taken octet by octet.
func TestAppendCNPMakesWhatThePacketBuilderMakes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	addr := func(v4 bool) netip.Addr {
		var a [16]byte
		binary.LittleEndian.PutUint64(a[:], r.Uint64())
		binary.LittleEndian.PutUint64(a[8:], r.Uint64())
		if v4 {
			return netip.AddrFrom4([4]byte(a[:]))
		}
		return netip.AddrFrom16(a)
	}
	for i := range 20_000 {
		v4 := i%2 == 0
		c := CNP{
			Src: addr(v4), Dst: addr(v4), SrcPort: uint16(r.Uint32()), TOS: uint8(r.Uint32()), TTL: uint8(r.Uint32()) | 1,
			PKey: uint16(r.Uint32()) | 1, DestQP: r.Uint32() & max24,
		}
		if v4 {
			c.IPID = uint16(r.Uint32())
		} else {
			c.FlowLabel = r.Uint32() & maxFlowLabel
		}
		want, err := AppendPacket(nil, &PacketSpec{
			Src: c.Src, Dst: c.Dst, SrcPort: c.SrcPort, TOS: c.TOS, TTL: c.TTL, IPID: c.IPID, FlowLabel: c.FlowLabel,
			BTH: BTH{Opcode: OpcodeCNP, BECN: true, PKey: c.PKey, DestQP: c.DestQP}, Body: make([]byte, cnpReserved),
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendCNP([]byte("before"), &c)
		if err != nil || !bytes.Equal(got[len("before"):], want) {
			t.Fatalf("%+v: %v\ngot  %x\nwant %x", c, err, got[len("before"):], want)
		}
	}
}

func TestAppendCNPAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, CNPLenIPv6)
	for _, c := range []CNP{{Src: v4a, Dst: v4b}, {Src: v6a, Dst: v6b}} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := AppendCNP(buf, &c); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", c.Src, n)
		}
	}
}

func TestBuildersRefuseValuesThatDoNotFit(t *testing.T) {
	mapped := netip.MustParseAddr("::ffff:192.0.2.1")
	for name, tt := range map[string]struct {
		c    CNP
		says string
	}{
		"no addresses":    {CNP{}, "addresses"},
		"no source":       {CNP{Dst: v4b}, "addresses"},
		"mixed families":  {CNP{Src: v4a, Dst: v6b}, "addresses"},
		"mapped source":   {CNP{Src: mapped, Dst: v6b}, "addresses"},
		"25-bit QP":       {CNP{Src: v4a, Dst: v4b, DestQP: 1 << 24}, "Destination QP"},
		"21-bit label":    {CNP{Src: v6a, Dst: v6b, FlowLabel: 1 << 20}, "flow label"},
		"mapped, reverse": {CNP{Src: v6a, Dst: mapped}, "addresses"},
	} {
		out, err := AppendCNP([]byte("x"), &tt.c)
		if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), tt.says) || string(out) != "x" {
			t.Errorf("CNP, %s: %q, %v", name, out, err)
		}
	}
	for name, tt := range map[string]struct {
		s    PacketSpec
		says string
	}{
		"mixed families":  {PacketSpec{Src: v4a, Dst: v6b}, "addresses"},
		"odd options":     {PacketSpec{Src: v4a, Dst: v4b, Options: make([]byte, 3)}, "options"},
		"long options":    {PacketSpec{Src: v4a, Dst: v4b, Options: make([]byte, 44)}, "options"},
		"options on IPv6": {PacketSpec{Src: v6a, Dst: v6b, Options: make([]byte, 4)}, "options"},
		"label":           {PacketSpec{Src: v6a, Dst: v6b, FlowLabel: 1 << 20}, "flow label"},
		"QP":              {PacketSpec{Src: v4a, Dst: v4b, BTH: BTH{DestQP: 1 << 24}}, "BTH"},
		"PSN":             {PacketSpec{Src: v4a, Dst: v4b, BTH: BTH{PSN: 1 << 24}}, "BTH"},
		"pad":             {PacketSpec{Src: v4a, Dst: v4b, BTH: BTH{Pad: 1}, Body: make([]byte, 5)}, "pad"},
		"pad of nothing":  {PacketSpec{Src: v4a, Dst: v4b, BTH: BTH{Pad: 1}}, "pad"},
		"length":          {PacketSpec{Src: v4a, Dst: v4b, Body: make([]byte, 65500)}, "length"},
	} {
		out, err := AppendPacket([]byte("x"), &tt.s)
		if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), tt.says) || string(out) != "x" {
			t.Errorf("packet, %s: %q, %v", name, out, err)
		}
	}
}

func TestParseCNPRefusesOtherPackets(t *testing.T) {
	ok, err := AppendCNP(nil, &CNP{Src: v4a, Dst: v4b, DestQP: 1})
	if err != nil {
		t.Fatal(err)
	}
	long := build(t, PacketSpec{Src: v4a, Dst: v4b, BTH: BTH{Opcode: OpcodeCNP}, Body: make([]byte, 20)})
	for name, tt := range map[string]struct {
		ip  []byte
		err error
	}{
		"a WRITE":           {sample(t, false), ErrNotRoCEv2},
		"20 reserved":       {long, ErrMalformed},
		"cut":               {ok[:50], ErrTruncated},
		"cut in the header": {ok[:10], ErrTruncated},
	} {
		if _, err := ParseCNP(tt.ip); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
	}
	if _, err := ParseCNP(ok[:56]); err != nil {
		t.Errorf("a capture without the ICRC: %v", err)
	}
}

func TestPacketBuilderPadsTheBody(t *testing.T) {
	for n := range 9 {
		var p Packet
		if err := ParseIP(build(t, PacketSpec{Src: v4a, Dst: v4b, Body: make([]byte, n)}), &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Body)%4 != 0 || len(p.Body)-int(p.BTH.Pad) != n {
			t.Errorf("body of %d: %d octets, pad %d", n, len(p.Body), p.BTH.Pad)
		}
	}
}
