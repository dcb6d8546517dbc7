package roce

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// naiveICRC follows the definition literally: a masked copy, and one CRC over all of it.
func naiveICRC(ip []byte) uint32 {
	b := append(bytes.Repeat([]byte{0xFF}, 8), ip[:len(ip)-ICRCLen]...)
	h := b[8:]
	udp := ipv6Len
	if h[0]>>4 == 4 {
		udp = int(h[0]&0xF) * 4
		h[1], h[8], h[10], h[11] = 0xFF, 0xFF, 0xFF, 0xFF
	} else {
		h[0] |= 0x0F
		h[1], h[2], h[3], h[7] = 0xFF, 0xFF, 0xFF, 0xFF
		for next := h[6]; next != protoUDP; {
			next, udp = h[udp], udp+8+int(h[udp+1])*8
		}
	}
	h[udp+6], h[udp+7], h[udp+8+4] = 0xFF, 0xFF, 0xFF
	return crc32.ChecksumIEEE(b)
}

// shapes are packets of every layout that the ICRC knows.
func shapes(tb testing.TB) map[string][]byte {
	body := make([]byte, 1000)
	for i := range body {
		body[i] = byte(i * 11)
	}
	v4 := PacketSpec{Src: v4a, Dst: v4b, IPID: 7, SrcPort: 50000, BTH: BTH{Opcode: 0x0A, DestQP: 5}, Body: body}
	v4opt, v4sum, v6 := v4, v4, v4
	v4opt.Options = bytes.Repeat([]byte{1}, 40)
	v4sum.UDPChecksum = true
	v6.Src, v6.Dst, v6.FlowLabel = v6a, v6b, 0x12345
	short := v4
	short.Body = nil
	six := build(tb, v6)
	ext := withExtensions(six, 0, options(60, 3), options(17, 0))
	if err := FixICRC(ext); err != nil {
		tb.Fatal(err)
	}
	return map[string][]byte{
		"IPv4": build(tb, v4), "IPv4 with options": build(tb, v4opt), "IPv4 with UDP checksum": build(tb, v4sum),
		"IPv4 without body": build(tb, short), "IPv6": six, "IPv6 with extension headers": ext,
	}
}

func TestICRCEqualsItsDefinition(t *testing.T) {
	for name, ip := range shapes(t) {
		got, err := ICRC(ip)
		if err != nil || got != naiveICRC(ip) || got != binary.LittleEndian.Uint32(ip[len(ip)-ICRCLen:]) {
			t.Errorf("%s: %08x, %v; want %08x", name, got, err, naiveICRC(ip))
		}
		if got, err := ICRC(append(bytes.Clone(ip), 1, 2, 3)); err != nil || got != naiveICRC(ip) {
			t.Errorf("%s with padding: %08x, %v", name, got, err)
		}
	}
}

func TestICRCIgnoresExactlyWhatRoutersMayChange(t *testing.T) {
	for name, ip := range shapes(t) {
		l, err := icrcLayout(ip)
		if err != nil {
			t.Fatal(err)
		}
		free := map[int]bool{l.udp + 6: true, l.udp + 7: true, l.udp + 8 + 4: true}
		half := -1 // an octet of which only the low half is free
		if l.v6 {
			half = 0
			free[1], free[2], free[3], free[7] = true, true, true, true
		} else {
			free[1], free[8], free[10], free[11] = true, true, true, true
		}
		// Lengths, the version and the port would make it another packet.
		fixed := map[int]bool{2: !l.v6, 3: !l.v6, 4: l.v6, 5: l.v6, 6: l.v6, 9: !l.v6, l.udp + 2: true, l.udp + 3: true, l.udp + 4: true, l.udp + 5: true}
		fixed[0] = !l.v6
		for i := range ip[:len(ip)-ICRCLen] {
			if fixed[i] || l.v6 && i >= ipv6Len && i < l.udp {
				continue
			}
			b := bytes.Clone(ip)
			b[i] ^= 0x01
			if !l.v6 && i == 6 || !l.v6 && i == 7 {
				b[i] ^= 0x81 // the reserved bit, not a fragment's
				if i == 7 {
					continue
				}
			}
			ok, err := VerifyICRC(b)
			if err != nil {
				t.Fatalf("%s, octet %d: %v", name, i, err)
			}
			if want := free[i] || i == half; ok != want {
				t.Errorf("%s, octet %d changed: verifies %v, want %v", name, i, ok, want)
			}
		}
	}
}

func TestVerifyICRCFindsEveryChangedBitOfItself(t *testing.T) {
	ip := sample(t, false)
	for i := range 32 {
		b := bytes.Clone(ip)
		b[len(b)-ICRCLen+i/8] ^= 1 << (i % 8)
		if ok, err := VerifyICRC(b); ok || err != nil {
			t.Errorf("bit %d: %v, %v", i, ok, err)
		}
	}
}

func TestFixICRCLeavesUDPChecksumsThatVerify(t *testing.T) {
	for name, ip := range shapes(t) {
		l, err := icrcLayout(ip)
		if err != nil {
			t.Fatal(err)
		}
		if !l.v6 && fold16(sum16(0, ip[:l.udp])) != 0xFFFF {
			t.Errorf("%s: IPv4 header checksum does not verify", name)
		}
		stored := binary.BigEndian.Uint16(ip[l.udp+6:])
		if stored == 0 {
			if l.v6 {
				t.Errorf("%s: no UDP checksum over IPv6", name)
			}
			continue
		}
		sum := sum16(uint64(protoUDP)+uint64(l.end-l.udp), ip[l.udp:l.end])
		if l.v6 {
			sum = sum16(sum, ip[8:40])
		} else {
			sum = sum16(sum, ip[12:20])
		}
		if fold16(sum) != 0xFFFF {
			t.Errorf("%s: UDP checksum %04x does not verify", name, stored)
		}
	}
}

func TestUDPChecksumOfZeroIsSentAsOnes(t *testing.T) {
	// The sum runs over the ICRC too: about one packet in 65,536 has it.
	s := PacketSpec{Src: v6a, Dst: v6b, BTH: BTH{Opcode: 0x0A}}
	var ip []byte
	for qp := range uint32(1 << 20) {
		s.BTH.DestQP = qp
		var err error
		if ip, err = AppendPacket(ip[:0], &s); err != nil {
			t.Fatal(err)
		}
		switch binary.BigEndian.Uint16(ip[ipv6Len+6:]) {
		case 0:
			t.Fatalf("QP %d: checksum 0", qp)
		case 0xFFFF:
			return
		}
	}
	t.Fatal("no packet of a million had the checksum ffff")
}

func TestSlicedCRCEqualsTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 100)
	for n := range b {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		start := rng.Uint32()
		if got, want := updateCRC(start, b[:n]), crc32.Update(start, crc32.IEEETable, b[:n]); got != want {
			t.Fatalf("%d octets: %08x, want %08x", n, got, want)
		}
	}
}

func TestICRCRefusesWhatIsNoWholePacket(t *testing.T) {
	ip := sample(t, false)
	short := bytes.Clone(ip)
	short[3], short[25] = 43, 23
	for name, tt := range map[string]struct {
		b   []byte
		err error
	}{
		"cut":                  {ip[:len(ip)-1], ErrTruncated},
		"empty":                {nil, ErrTruncated},
		"no room for the ICRC": {short, ErrMalformed},
	} {
		_, err1 := ICRC(tt.b)
		_, err2 := VerifyICRC(tt.b)
		err3 := FixICRC(tt.b)
		if !errors.Is(err1, tt.err) || !errors.Is(err2, tt.err) || !errors.Is(err3, tt.err) {
			t.Errorf("%s: %v, %v, %v", name, err1, err2, err3)
		}
	}
}
