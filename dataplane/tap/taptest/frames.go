package taptest

import (
	"math/rand/v2"
	"net/netip"

	"pncd/dataplane/roce"
)

// Frames makes random frames of few flows, so that most flows are met again: most of them sound RoCEv2, with what a parser
// must not trip over among them.
type Frames struct {
	Wrap bool // the most are behind an outer header
	r    *rand.Rand
}

// NewFrames makes the same frames for the same seed.
func NewFrames(seed uint64) *Frames { return &Frames{r: rand.New(rand.NewPCG(seed, 1))} }

func (g *Frames) pick(n int) int { return g.r.IntN(n) }

func (g *Frames) chance(percent int) bool { return g.pick(100) < percent }

func (g *Frames) opcode() roce.Opcode {
	if g.chance(70) {
		return roce.Opcode([]byte{0x00, 0x01, 0x02, 0x04, 0x06, 0x07, 0x08, 0x0A, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x21, 0x24, 0x64, 0x81}[g.pick(20)])
	}
	return roce.Opcode(g.pick(256))
}

// packet is a sound IP packet of RoCEv2.
func (g *Frames) packet() []byte {
	s := roce.PacketSpec{
		TOS: uint8(g.pick(256)), TTL: uint8(1 + g.pick(255)), IPID: uint16(g.pick(65536)),
		SrcPort: uint16(49152 + g.pick(2)), UDPChecksum: g.chance(50),
		BTH: roce.BTH{
			Opcode: g.opcode(), PKey: uint16(g.pick(65536)), DestQP: uint32(g.pick(5)), AckReq: g.chance(30),
			PSN: uint32(g.pick(1 << 24)), Reserved6: uint8(g.pick(64)), Reserved7: uint8(g.pick(128)),
		},
		Body: make([]byte, 4*g.pick(80)),
	}
	if g.chance(50) {
		s.BTH.PSN = uint32(g.pick(600))
	}
	if g.chance(20) {
		s.Body = make([]byte, g.pick(4))
	}
	for i := range s.Body {
		s.Body[i] = byte(g.pick(256))
	}
	hosts := []string{"10.0.0.1", "10.0.0.2", "192.0.2.1"}
	if g.chance(50) {
		hosts = []string{"2001:db8::1", "2001:db8::2", "fe80::1"}
	} else if g.chance(30) {
		s.Options = make([]byte, 4*g.pick(11))
	}
	s.Src, s.Dst = netip.MustParseAddr(hosts[g.pick(3)]), netip.MustParseAddr(hosts[g.pick(3)])
	ip, err := roce.AppendPacket(nil, &s)
	if err != nil {
		panic(err)
	}
	if s.Src.Is6() && g.chance(20) {
		ip = g.withExtensions(ip)
	}
	return ip
}

// withExtensions puts up to five extension headers in, some of which the parser does not take.
func (g *Frames) withExtensions(ip []byte) []byte {
	rest := append([]byte(nil), ip[40:]...)
	next := ip[6]
	for range 1 + g.pick(5) {
		length := g.pick(4)
		if g.chance(20) {
			length = g.pick(60)
		}
		ext := make([]byte, 8+8*length)
		ext[0], ext[1] = next, byte(length)
		rest = append(ext, rest...)
		next = []byte{0, 60}[g.pick(2)]
		if g.chance(5) {
			next = []byte{43, 44, 51, 135, 6, 58}[g.pick(6)]
		}
	}
	out := append(append([]byte(nil), ip[:40]...), rest...)
	out[6] = next
	out[4], out[5] = byte(len(rest)>>8), byte(len(rest))
	return out
}

// wrap puts a packet behind an outer header, some of which the parser does not take, and a few behind two.
func (g *Frames) wrap(ip []byte) []byte {
	all := Wraps()
	for range 1 + g.pick(20)/19 {
		if ip = all[g.pick(len(all))].Wrap(ip); ip[0]>>4 == 6 && g.chance(10) {
			ip = g.withExtensions(ip)
		}
	}
	return ip
}

// Next is a frame as it comes, sound or not.
func (g *Frames) Next() []byte {
	var tags [][2]uint16
	if g.chance(40) {
		for range 1 + g.pick(3) {
			tags = append(tags, [2]uint16{[]uint16{0x8100, 0x88A8}[g.pick(2)], uint16(g.pick(3))})
		}
	}
	ip, headers := g.packet(), 90
	if g.Wrap && g.chance(80) {
		ip, headers = g.wrap(ip), 180
	}
	f := Ethernet(ip, tags...)
	switch g.pick(10) {
	case 0: // a few octets of the headers change
		for range 1 + g.pick(3) {
			f[g.pick(min(len(f), headers))] = byte(g.pick(256))
		}
	case 1: // one bit changes
		f[g.pick(min(len(f), headers))] ^= 1 << g.pick(8)
	case 2: // the frame is cut
		f = f[:max(14, g.pick(len(f)))]
	case 3: // padding behind the packet
		f = append(f, make([]byte, g.pick(30))...)
	case 4: // IPv4-mapped addresses, RoCEv1, or noise
		switch g.pick(3) {
		case 0:
			if at := 14 + 4*len(tags) + 8; f[at-8]>>4 == 6 {
				copy(f[at:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF})
			}
		case 1:
			f[12+4*len(tags)], f[13+4*len(tags)] = 0x89, 0x15
		default:
			for i := range f {
				f[i] = byte(g.pick(256))
			}
		}
	}
	return f
}
