package integration

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// ospfShot is an OSPF packet that the attacker sends.
type ospfShot struct {
	from, to netip.Addr
	payload  []byte
	hops     uint8 // TTL or hop limit; 0: 1, as it must be
	deaf     bool  // it is for those who don't listen: pncd's kernel keeps it
	both     bool  // every router on the network hears it, else pncd alone
}

// ospfAttacker makes packets of one version. It does no I/O: its shots are brought to pncd by the test, and what pncd
// sends to it.
type ospfAttacker struct {
	v         packet.Version
	rng       *rand.Rand
	area      packet.ID
	victim    packet.ID  // pncd's router ID
	victimAt  netip.Addr // its address on the inner network
	net       netip.Prefix
	now       time.Time
	out       func(ospfShot)
	players   []*ospfPlayer
	ghosts    uint32       // that said hello
	strangers uint32       // routers that have LSAs
	told      []packet.LSA // that are not flushed yet
	recorded  []ospfShot   // what routers sent on the outer network
}

// ospfPlayer is a router that the attacker plays on the inner network: it has a real adjacency.
type ospfPlayer struct {
	a        *ospfAttacker
	id       packet.ID
	at       netip.Addr
	priority uint8
	m        *iface.Machine
	asked    packet.Description // the last one that pncd sent it
	feigns   bool               // its descriptions are those of the attack
}

const (
	ospfHostileHello = time.Second
	ospfHostileDead  = 20 * time.Second
	ospfHostileMTU   = 1500

	// steadyID is the router ID of the player that is Designated Router; the other's is the next one.
	steadyID packet.ID = 0x0A420001
)

// newOSPFAttacker plays two routers in a network where pncd is: the Designated Router, whose adjacency is to stay, and
// its Backup, whose isn't.
func newOSPFAttacker(v packet.Version, seed uint64, area, victim packet.ID, victimAt netip.Addr, network netip.Prefix, out func(ospfShot)) *ospfAttacker {
	a := &ospfAttacker{v: v, rng: rand.New(rand.NewPCG(seed, uint64(v))), area: area, victim: victim, victimAt: victimAt, net: network, out: out}
	for n := range 2 {
		p := &ospfPlayer{a: a, id: steadyID + packet.ID(n), at: a.host(uint32(0xFF01 + n)), priority: uint8(200 - n)}
		p.m = iface.New(iface.Config{
			Config: neighbor.Config{Version: v, Router: p.id, Options: a.options(), MTU: ospfHostileMTU, Dead: ospfHostileDead, Retransmit: time.Second},
			Area:   area, Prefix: netip.PrefixFrom(p.at, network.Bits()), Interface: 66, Hello: ospfHostileHello,
		}, nothingOSPF{})
		a.players = append(a.players, p)
	}
	return a
}

// steady is the player whose adjacency stays up; shaky is the other one.
func (a *ospfAttacker) steady() *ospfPlayer { return a.players[0] }
func (a *ospfAttacker) shaky() *ospfPlayer  { return a.players[1] }

func (a *ospfAttacker) options() uint32 {
	if a.v == packet.V3 {
		return packet.OptionE | packet.V3OptV6 | packet.V3OptR
	}
	return packet.OptionE
}

// host is an address of the inner network.
func (a *ospfAttacker) host(n uint32) netip.Addr {
	b := a.net.Masked().Addr().AsSlice()
	binary.BigEndian.PutUint16(b[len(b)-2:], uint16(n))
	return addressOf(b)
}

func (a *ospfAttacker) group() netip.Addr { return iface.AllSPFRouters(a.v) }

// begin has the players say hello.
func (a *ospfAttacker) begin(now time.Time) {
	for _, p := range a.players {
		p.m.Up(now)
	}
}

// tick sends what the players have to.
func (a *ospfAttacker) tick(now time.Time) {
	a.now = now
	for _, p := range a.players {
		if p.m.Wake().After(now) {
			continue
		}
		for _, s := range p.m.Tick(now) {
			switch b := s.Body.(type) {
			case *packet.Hello:
				p.dress(b)
			case *packet.Description:
				if p.feigns && b.Flags&packet.FlagInit == 0 {
					continue
				}
			}
			a.out(p.shot(s.Body))
		}
	}
}

// dress makes a hello that of a router that is designated, or its backup.
func (p *ospfPlayer) dress(h *packet.Hello) {
	name := func(o *ospfPlayer) packet.ID {
		if p.a.v == packet.V2 {
			return packet.IDOf(o.at)
		}
		return o.id
	}
	h.Priority, h.DR, h.BDR = p.priority, name(p.a.steady()), name(p.a.shaky())
}

// hear takes what pncd sent.
func (a *ospfAttacker) hear(now time.Time, from, to netip.Addr, b []byte) {
	a.now = now
	x, err := packet.Parse(a.v, b)
	if err != nil {
		a.hearLarge(b)
		return
	}
	if x.Router != a.victim {
		return
	}
	for _, p := range a.players {
		if to != p.at && !to.IsMulticast() {
			continue
		}
		if d, ok := x.Body.(*packet.Description); ok {
			p.asked = *d
		}
		n, why := p.m.Receive(now, from, a.group(), x)
		u, ok := x.Body.(*packet.Update)
		if why != iface.ReasonNone || !ok || !n.Flooding() {
			continue
		}
		var acks []packet.Header
		for _, l := range u.LSAs {
			acks = append(acks, l.Header)
			n.Satisfy(l.Key)
		}
		for list := range slices.Chunk(acks, 60) {
			a.out(p.shot(&packet.Ack{Headers: list}))
		}
	}
}

// hearLarge acknowledges an LSA of which there is only the first fragment.
func (a *ospfAttacker) hearLarge(b []byte) {
	at := a.v.HeaderLen() + 4 // the number of LSAs
	if len(b) < at+packet.HeaderLen || packet.PeekType(b) != packet.TypeUpdate {
		return
	}
	if h, err := packet.ParseHeader(a.v, b[at:]); err == nil {
		for _, p := range a.players {
			a.out(p.shot(&packet.Ack{Headers: []packet.Header{h}}))
		}
	}
}

// full reports whether the player is full with pncd, as far as it knows.
func (p *ospfPlayer) full() bool {
	n := p.m.Neighbor(p.a.victim)
	return n != nil && n.Full()
}

// raw makes a packet of any body, with a right length and checksum.
func (p *ospfPlayer) raw(t packet.Type, body []byte) []byte {
	b := []byte{uint8(p.a.v), uint8(t), 0, 0}
	b = binary.BigEndian.AppendUint32(b, uint32(p.id))
	b = binary.BigEndian.AppendUint32(b, uint32(p.a.area))
	b = append(b, make([]byte, p.a.v.HeaderLen()-len(b))...)
	b = append(b, body...)
	return p.a.sum(b, p.at, p.a.group())
}

// body is what follows the header.
func (p *ospfPlayer) body(x packet.Body) (packet.Type, []byte) {
	k := &packet.Packet{Version: p.a.v, Body: x}
	return k.Type(), k.Append(nil)[p.a.v.HeaderLen():]
}

// packet makes a packet without authentication.
func (p *ospfPlayer) packet(x packet.Body) []byte { return p.raw(p.body(x)) }

func (p *ospfPlayer) shot(x packet.Body) ospfShot { return p.send(p.packet(x)) }

func (p *ospfPlayer) send(b []byte) ospfShot {
	return ospfShot{from: p.at, to: p.a.group(), payload: b}
}

// lengthOf sets the length of a packet.
func lengthOf(b []byte) []byte {
	if len(b) >= 4 {
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	}
	return b
}

// sum sets length and checksum (RFC 2328 section D.4, RFC 5340 section A.3.1).
func (a *ospfAttacker) sum(b []byte, from, to netip.Addr) []byte {
	const checksumAt, v2AuthAt = 12, 16
	lengthOf(b)
	if len(b) < a.v.HeaderLen() {
		return b
	}
	clear(b[checksumAt : checksumAt+2])
	covered := slices.Clone(b)
	if a.v == packet.V2 {
		covered = slices.Delete(covered, v2AuthAt, v2AuthAt+8)
	} else {
		pseudo := append(from.AsSlice(), to.AsSlice()...)
		pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(b)))
		covered = append(append(pseudo, 0, 0, 0, ospfProtocol), covered...)
	}
	binary.BigEndian.PutUint16(b[checksumAt:], onesSum(covered))
	return b
}

const ospfProtocol = 89

// onesSum is the checksum of RFC 1071.
func onesSum(b []byte) uint16 {
	if len(b)%2 != 0 {
		b = append(b, 0)
	}
	sum := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
		sum = sum&0xFFFF + sum>>16
	}
	return ^uint16(sum)
}

func (a *ospfAttacker) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = uint8(a.rng.Uint32())
	}
	return b
}

// flip changes octets.
func (a *ospfAttacker) flip(b []byte, times int) []byte {
	for range times {
		if len(b) > 0 {
			b[a.rng.IntN(len(b))] ^= uint8(1 + a.rng.IntN(255))
		}
	}
	return b
}

func pick[T any](a *ospfAttacker, list ...T) T { return list[a.rng.IntN(len(list))] }

// nothingOSPF is the database of a router that has nothing to describe, and wants nothing.
type nothingOSPF struct{}

func (nothingOSPF) Summary(time.Time) iter.Seq[packet.Header] {
	return func(func(packet.Header) bool) {}
}
func (nothingOSPF) Lookup(_ time.Time, k packet.Key) (packet.Header, bool) {
	return packet.Header{Key: k, Sequence: packet.MaxSequence, Checksum: 0xFFFF, Age: packet.MaxAge}, true
}
func (nothingOSPF) Append(dst []byte, _ time.Time, _ packet.Key) ([]byte, bool) { return dst, false }

// record keeps a packet of an outer network.
func (a *ospfAttacker) record(s ospfShot) { a.recorded = append(a.recorded, s) }

func addressOf(b []byte) netip.Addr {
	x, _ := netip.AddrFromSlice(b)
	return x
}
