package translator

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"
)

// sum16 is the folded sum of RFC 1071, written apart from the filter.
func sum16(b []byte, more uint32) uint16 {
	sum := uint64(more)
	for i, v := range b {
		if i%2 == 0 {
			sum += uint64(v) << 8
		} else {
			sum += uint64(v)
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// packetIPv4 has options of 4*options octets and a UDP payload; its checksum is right.
func packetIPv4(rng *rand.Rand, options int, port uint16, payload int) (b []byte, udp int) {
	udp = 20 + 4*options
	b = make([]byte, udp+udpHeaderLen+payload)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	b[0] = 0x45 + byte(options)
	u := b[udp:]
	binary.BigEndian.PutUint16(u[2:], port)
	binary.BigEndian.PutUint16(u[4:], uint16(len(u)))
	binary.BigEndian.PutUint16(u[6:], 0)
	sum := ^sum16(u, uint32(sum16(b[12:20], uint32(protoUDP+len(u)))))
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(u[6:], sum)
	return b, udp
}

func TestFilterLetsByWrongChecksumsOnly(t *testing.T) {
	vm, err := bpf.NewVM(badSumFilter(true, 1021))
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(b []byte) bool {
		n, err := vm.Run(b)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for payload := 0; payload <= maxEarlySum-udpHeaderLen; payload++ {
		for options := range 11 {
			b, udp := packetIPv4(rng, options, 1021, payload)
			if accepted(b) {
				t.Fatalf("payload %d, options %d: a right checksum is let by", payload, options)
			}
			for i := 12; i < len(b); i++ {
				if i >= 20 && i < udp || i >= udp+2 && i < udp+8 {
					continue // options are not summed up; port, length and checksum below
				}
				flip := byte(1) << rng.UintN(8)
				b[i] ^= flip
				if !accepted(b) {
					t.Fatalf("payload %d, options %d: octet %d changed, and not let by", payload, options, i)
				}
				b[i] ^= flip
			}
			sum := binary.BigEndian.Uint16(b[udp+6:])
			for what, v := range map[string]uint16{
				"no checksum":           0,
				"left to the device":    sum16(b[12:20], uint32(protoUDP+len(b)-udp)),
				"right, the other zero": sum,
			} {
				binary.BigEndian.PutUint16(b[udp+6:], v)
				if accepted(b) {
					t.Fatalf("payload %d: %s (%#x) is let by", payload, what, v)
				}
			}
			binary.BigEndian.PutUint16(b[udp+6:], sum^0x0100)
			if !accepted(b) {
				t.Fatalf("payload %d: a wrong checksum is not let by", payload)
			}
			b[udp+3]++
			if accepted(b) {
				t.Fatalf("payload %d: another port is let by", payload)
			}
		}
	}
}

func TestFilterLeavesLengthsToTheKernelThatItCountsItself(t *testing.T) {
	vm, err := bpf.NewVM(badSumFilter(true, 1021))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, edit := range map[string]func(b []byte, udp int) []byte{
		"longer than the kernel verifies early": func([]byte, int) []byte {
			b, udp := packetIPv4(rng, 0, 1021, maxEarlySum-udpHeaderLen+1)
			b[udp+6] ^= 1
			return b
		},
		"a length less than the header": func(b []byte, udp int) []byte {
			binary.BigEndian.PutUint16(b[udp+4:], 7)
			return b
		},
		"cut": func(b []byte, udp int) []byte { return b[:udp+9] },
	} {
		b, udp := packetIPv4(rng, 0, 1021, 16)
		b[udp+6] ^= 1
		if n, err := vm.Run(edit(b, udp)); n != 0 {
			t.Errorf("%s: let by (%v)", name, err)
		}
	}
}

func TestHeadersAreTakenOff(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, udp := packetIPv4(rng, 3, 1021, 16)
	port := binary.BigEndian.Uint16(p[udp:])
	for _, tc := range []struct {
		v4   bool
		b    []byte
		want int
	}{
		{true, p, 16}, {false, p[udp:], 16}, {true, p[:udp+7], 0}, {true, nil, 0}, {true, []byte{0x4f}, 0}, {false, nil, 0},
	} {
		d := Datagram{Payload: tc.b, Length: len(tc.b), From: netip.AddrPortFrom(node4, 0)}
		(&badSums{v4: tc.v4}).strip(&d)
		if !d.BadSum || len(d.Payload) != tc.want || d.Length != tc.want || tc.want > 0 && d.From.Port() != port {
			t.Errorf("%d octets: %+v", len(tc.b), d)
		}
	}
}

// Whatever the kernel hands over by the raw socket, and whatever control messages come with it, is
// read within its bounds.
func FuzzRawDatagram(f *testing.F) {
	p, udp := packetIPv4(rand.New(rand.NewPCG(1, 2)), 3, 1021, 16)
	f.Add(p, []byte{}, true)
	f.Add(p[udp:], []byte{20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0}, false)
	f.Fuzz(func(t *testing.T, packet, control []byte, v4 bool) {
		d := Datagram{Payload: packet, Length: len(packet), From: netip.AddrPortFrom(node4, 0)}
		(&badSums{v4: v4}).strip(&d)
		if !d.BadSum || len(d.Payload) != d.Length || d.Length > len(packet) {
			t.Fatalf("%d octets give %d of %d", len(packet), len(d.Payload), d.Length)
		}
		d.control(control)
	})
}
