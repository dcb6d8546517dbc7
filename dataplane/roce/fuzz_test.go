package roce

import (
	"bytes"
	"net/netip"
	"testing"
)

// FuzzParseEthernet: any frame is decoded or refused; what is decoded lies within the frame and agrees
// with what the IP parser and the ICRC make of the same octets.
func FuzzParseEthernet(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.frame)
		f.Add(v.frame[:len(v.frame)-9])
	}
	for _, ip := range shapes(f) {
		f.Add(append(etherHeader(uint16(map[byte]int{4: etherIPv4, 6: etherIPv6}[ip[0]>>4]), [2]uint16{0x8100, 7}), ip...))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		var p, q Packet
		if err := ParseEthernet(frame, &p); err != nil {
			if err.Error() == "" {
				t.Fatal("error without text")
			}
			return
		}
		if err := ParseIP(p.IP, &q); err != nil {
			t.Fatalf("ParseIP of the same packet: %v", err)
		}
		q.SrcMAC, q.VLAN = p.SrcMAC, p.VLAN
		if !equalPackets(p, q) {
			t.Fatalf("Ethernet %+v\nIP       %+v", p, q)
		}
		_, err := VerifyICRC(p.IP)
		if (err == nil) == p.Truncated {
			t.Fatalf("truncated %v, VerifyICRC: %v", p.Truncated, err)
		}
		_, _ = ParseCNP(p.IP)
		_, _ = ParseMAD(p.Body)
		if !bytes.Equal(before, frame) {
			t.Fatal("parsing changed the frame")
		}
		if p.Truncated {
			return
		}
		if err := FixICRC(p.IP); err != nil {
			t.Fatal(err)
		}
		if ok, err := VerifyICRC(p.IP); !ok || err != nil {
			t.Fatalf("after FixICRC: %v, %v", ok, err)
		}
	})
}

// FuzzCM: any body is decoded or refused, and a whole datagram is written back byte for byte.
func FuzzCM(f *testing.F) {
	for _, c := range cmSamples() {
		f.Add(mad(f, &c))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := ParseMAD(body)
		if err != nil {
			return
		}
		out, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, DETHLen+MADLen)
		copy(want, body)
		want[DETHLen+18], want[DETHLen+19] = 0, 0 // reserved, sent as zero
		if !bytes.Equal(out, want) {
			t.Fatalf("in  %x\nout %x", want, out)
		}
		again, err := ParseMAD(out)
		if err != nil || again.CM.Kind != m.CM.Kind || again.CM.LocalQPN != m.CM.LocalQPN || again.CM.StartingPSN != m.CM.StartingPSN {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}

// FuzzRoundTrip: what the builder accepts is read back as it was, with an ICRC that verifies.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1}, []byte{10, 0, 0, 2}, uint8(2), uint8(64), uint16(1), uint32(0), uint16(49152), []byte{0x81, 0, 0xFF, 0xFF, 0x40, 0, 1, 0x18, 0, 0, 0, 0}, make([]byte, 16), []byte{}, true)
	f.Add(bytes.Repeat([]byte{0x20}, 16), bytes.Repeat([]byte{0xFE}, 16), uint8(3), uint8(1), uint16(0), uint32(9), uint16(0), make([]byte, 12), []byte("odd"), []byte{}, false)
	f.Fuzz(func(t *testing.T, src, dst []byte, tos, ttl uint8, id uint16, label uint32, port uint16, bth, body, opts []byte, sum bool) {
		a, _ := netip.AddrFromSlice(src)
		b, _ := netip.AddrFromSlice(dst)
		h, err := ParseBTH(bth)
		if err != nil {
			return
		}
		s := PacketSpec{
			Src: a, Dst: b, TOS: tos, TTL: ttl, IPID: id, FlowLabel: label, Options: opts, SrcPort: port, UDPChecksum: sum, BTH: h, Body: body,
		}
		ip, err := AppendPacket(nil, &s)
		if err != nil {
			return
		}
		var p Packet
		if err := ParseIP(ip, &p); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		if ok, err := VerifyICRC(ip); !ok || err != nil {
			t.Fatalf("ICRC: %v, %v", ok, err)
		}
		back := specOf(&p)
		again, err := AppendPacket(nil, &back)
		if err != nil || !bytes.Equal(ip, again) {
			t.Fatalf("%v\nfirst  %x\nsecond %x", err, ip, again)
		}
		if p.Src != a || p.Dst != b || p.TOS != tos || p.SrcPort != port || p.BTH.DestQP != h.DestQP || p.BTH.PSN != h.PSN || !bytes.HasPrefix(p.Body, body) {
			t.Fatalf("%+v became %+v", s, p)
		}
		cnp := CNP{Src: a, Dst: b, SrcPort: port, TOS: tos, TTL: ttl, IPID: id, PKey: h.PKey, DestQP: h.DestQP}
		if b.Is6() {
			cnp.FlowLabel, cnp.IPID = label, 0
		}
		c, err := AppendCNP(nil, &cnp)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseCNP(c)
		cnp.TTL, cnp.PKey = cnp.ttl(), cnp.pkey()
		if err != nil || got != cnp {
			t.Fatalf("CNP %+v became %+v, %v", cnp, got, err)
		}
		if ok, err := VerifyICRC(c); !ok || err != nil {
			t.Fatalf("CNP's ICRC: %v, %v", ok, err)
		}
	})
}
