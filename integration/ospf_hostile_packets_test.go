package integration

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/packet"
)

// ospfKind is a kind of packet.
type ospfKind struct {
	name string
	when ospfWhen
	make func(a *ospfAttacker) ospfShot
}

// ospfWhen is when a kind is sent.
type ospfWhen uint8

const (
	always       ospfWhen = iota
	whenBreaking          // it may end the shaky router's adjacency, which takes a while to come back
	whenCalm
)

// kind says which kinds are sent when: a time in which the shaky router's adjacency breaks all the time and databases
// are full, one in which it doesn't and they aren't, and one in which the attack alone sends its descriptions.
func (a *ospfAttacker) kind(n int, kinds []ospfKind) ospfKind {
	const phase = 8192
	breaking := n/phase%3 == 0
	a.shaky().feigns = n/phase%3 == 2
	for ; ; n++ {
		k := kinds[n%len(kinds)]
		if k.when == always || (k.when == whenBreaking) == breaking || n%phase == 0 {
			return k
		}
	}
}

// What can end an adjacency comes in the name of the shaky router, or of strangers; what is refused whatever
// is behind it, and LSAs, in that of the steady one, too.
var ospfPacketKinds = []ospfKind{
	{"truncated", always, func(a *ospfAttacker) ospfShot {
		s := a.steady().shot(a.good())
		s.payload = s.payload[:1+a.rng.IntN(len(s.payload)-1)]
		return s
	}},
	{"truncated, with the length and checksum of that", whenBreaking, func(a *ospfAttacker) ospfShot {
		p := a.shaky()
		b := p.packet(a.good())
		return p.send(a.sum(b[:1+a.rng.IntN(len(b)-1)], p.at, a.group()))
	}},
	{"longer than the datagram", always, func(a *ospfAttacker) ospfShot {
		s := a.steady().shot(a.good())
		binary.BigEndian.PutUint16(s.payload[2:], uint16(len(s.payload)+1+a.rng.IntN(0xFFFF-len(s.payload))))
		return s
	}},
	{"followed by a block of link-local signalling", always, func(a *ospfAttacker) ospfShot { // malformed ones, too
		s := a.steady().shot(a.good())
		lls := a.random(4 * a.rng.IntN(8))
		if len(lls) > 4 {
			binary.BigEndian.PutUint16(lls[2:], pick(a, 0, 1, uint16(len(lls)/4), 0xFFFF))
		}
		s.payload = append(s.payload, lls...)
		return s
	}},
	{"hello with the L option", always, func(a *ospfAttacker) ospfShot {
		bit := uint32(packet.V2OptL)
		if a.v == packet.V3 {
			bit = packet.V3OptL
		}
		h := a.hello(a.steady())
		h.Options |= bit
		s := a.steady().shot(h)
		s.payload = append(s.payload, a.random(a.rng.IntN(12))...)
		return s
	}},
	{"octets behind the header changed", always, func(a *ospfAttacker) ospfShot {
		s := a.steady().shot(a.good())
		a.flip(s.payload[a.v.HeaderLen():], 1) // one octet changed always shows in the checksum
		return s
	}},
	{"octets changed, with the checksum of that", whenBreaking, func(a *ospfAttacker) ospfShot {
		p := a.shaky()
		_, body := p.body(a.good())
		return p.send(p.raw(packet.Type(1+a.rng.IntN(5)), a.flip(body, 1+a.rng.IntN(8))))
	}},
	{"random behind the header", whenBreaking, func(a *ospfAttacker) ospfShot {
		p := a.shaky()
		return p.send(p.raw(packet.Type(1+a.rng.IntN(5)), a.random(a.rng.IntN(400))))
	}},
	{"wrong checksum", always, func(a *ospfAttacker) ospfShot {
		s := a.steady().shot(a.good())
		s.payload[12] ^= uint8(1 + a.rng.IntN(254))
		return s
	}},
	{"authenticated where nothing is", always, func(a *ospfAttacker) ospfShot {
		p := a.steady()
		b := p.packet(a.good())
		if a.v == packet.V2 {
			binary.BigEndian.PutUint16(b[14:], uint16(1+a.rng.IntN(4)))
			copy(b[16:24], a.random(8))
			return p.send(append(a.sum(b, p.at, a.group()), a.random(a.rng.IntN(40))...))
		}
		return p.send(append(b, a.random(1+a.rng.IntN(80))...))
	}},
	{"another area", always, func(a *ospfAttacker) ospfShot {
		b := a.steady().packet(a.good())
		binary.BigEndian.PutUint32(b[8:], pick(a, 0, 2, 0xFFFFFFFF, a.rng.Uint32()|2))
		return a.steady().send(a.sum(b, a.steady().at, a.group()))
	}},
	{"another instance or version", always, func(a *ospfAttacker) ospfShot {
		b := a.steady().packet(a.good())
		if a.v == packet.V3 && a.rng.IntN(2) == 0 {
			b[14] = uint8(1 + a.rng.IntN(255))
		} else {
			b[0] = pick[uint8](a, 0, 1, 5-uint8(a.v), 4, 255)
		}
		return a.steady().send(a.sum(b, a.steady().at, a.group()))
	}},
	{"another type", always, func(a *ospfAttacker) ospfShot {
		_, body := a.steady().body(a.good())
		return a.steady().send(a.steady().raw(packet.Type(pick(a, 0, 6, 7, 128, 255)), body))
	}},
	{"the router ID of pncd, or none", always, func(a *ospfAttacker) ospfShot {
		b := a.steady().packet(a.good())
		binary.BigEndian.PutUint32(b[4:], pick(a, 0, uint32(a.victim)))
		at := a.elsewhere()
		return ospfShot{from: at, to: a.group(), payload: a.sum(b, at, a.group())}
	}},
	{"hello with other parameters", always, func(a *ospfAttacker) ospfShot {
		h := a.hello(a.steady())
		switch a.rng.IntN(5) {
		case 0:
			h.Interval = pick[uint16](a, 0, 2, 10, 0xFFFF)
		case 1:
			h.Dead = pick[uint32](a, 0, 1, 40, 0xFFFF)
		case 2:
			h.Options ^= packet.OptionE
		case 3:
			h.Options ^= packet.OptionN
		case 4:
			h.Mask ^= 1 << a.rng.IntN(32)
			if a.v == packet.V3 {
				h.Interval++
			}
		}
		return a.steady().shot(h)
	}},
	{"hello with thousands of neighbours", always, func(a *ospfAttacker) ospfShot {
		p := a.steady()
		if a.rng.IntN(8) != 0 { // else 60 KB
			p = a.ghost()
		}
		h := a.hello(p)
		n := 1000
		if p == a.steady() {
			n = 15000
		}
		for range n {
			h.Neighbors = append(h.Neighbors, packet.ID(a.rng.Uint32()))
		}
		return p.shot(h)
	}},
	{"another router", always, func(a *ospfAttacker) ospfShot { // one more each time: there are too many soon
		p := a.ghost()
		return p.shot(a.hello(p))
	}},
	{"a router that has another address each time", whenBreaking, func(a *ospfAttacker) ospfShot {
		p := a.shaky()
		h := a.hello(p)
		at := a.elsewhere()
		return ospfShot{from: at, to: a.group(), payload: a.sum(p.packet(h), at, a.group())}
	}},
	{"a router that has another ID each time", whenBreaking, func(a *ospfAttacker) ospfShot {
		p := *a.shaky()
		p.id = packet.ID(a.rng.Uint32() | 1)
		return p.shot(a.hello(a.shaky()))
	}},
	{"the Designated Router is another one", whenBreaking, func(a *ospfAttacker) ospfShot {
		p := a.shaky()
		h := a.hello(p)
		h.Priority = uint8(a.rng.IntN(int(a.steady().priority))) // never more than the steady one
		h.DR, h.BDR = packet.ID(a.rng.Uint32()), packet.ID(a.rng.Uint32())
		return p.shot(h)
	}},
	{"not a hello, of a stranger", always, func(a *ospfAttacker) ospfShot {
		return a.ghost().shot(a.talk())
	}},
	{"not a hello, from another address", always, func(a *ospfAttacker) ospfShot {
		at := a.elsewhere()
		return ospfShot{from: at, to: a.group(), payload: a.sum(a.steady().packet(a.talk()), at, a.group())}
	}},
	{"from another network", always, func(a *ospfAttacker) ospfShot {
		return a.from(pick(a, a.foreign()...), a.good(), false)
	}},
	{"from an address that can't be a source", always, func(a *ospfAttacker) ospfShot {
		return a.from(pick(a, a.impossible()...), a.good(), true)
	}},
	{"for Designated Routers", always, func(a *ospfAttacker) ospfShot {
		to := iface.AllDRouters(a.v)
		return ospfShot{from: a.steady().at, to: to, payload: a.sum(a.steady().packet(a.good()), a.steady().at, to), deaf: true}
	}},
	{"unicast, and from far away", always, func(a *ospfAttacker) ospfShot {
		p := a.steady()
		return ospfShot{from: p.at, to: a.victimAt, payload: a.sum(p.packet(a.good()), p.at, a.victimAt), hops: pick[uint8](a, 2, 64, 255)}
	}},
	{"description out of turn", whenBreaking, func(a *ospfAttacker) ospfShot {
		d := a.description()
		d.Flags = uint8(a.rng.IntN(8))
		for range a.rng.IntN(20) {
			d.Headers = append(d.Headers, a.header())
		}
		return a.shaky().shot(d)
	}},
	{"description of what doesn't exist", always, func(a *ospfAttacker) ospfShot { // in turn, as long as there are more
		d := a.description()
		d.Sequence, d.Flags = a.shaky().asked.Sequence, packet.FlagMore
		d.Headers = []packet.Header{a.contested(1000).Header}
		for range a.rng.IntN(60) {
			if h := a.header(); !h.Type.NSSA(a.v) { // that would be an error of another kind
				d.Headers = append(d.Headers, h)
			}
		}
		return a.shaky().shot(d)
	}},
	{"less than was described", whenBreaking, func(a *ospfAttacker) ospfShot {
		return pick(a, a.steady(), a.shaky()).shot(&packet.Update{LSAs: []packet.LSA{a.contested(1)}})
	}},
	{"description with a greater MTU", always, func(a *ospfAttacker) ospfShot {
		d := a.description()
		d.MTU = uint16(ospfHostileMTU + 1 + a.rng.IntN(0xFFFF-ospfHostileMTU))
		return a.steady().shot(d)
	}},
	{"request for what isn't there", whenBreaking, func(a *ospfAttacker) ospfShot {
		r := &packet.Request{}
		for range 1 + a.rng.IntN(100) {
			r.Keys = append(r.Keys, a.header().Key)
		}
		return a.shaky().shot(r)
	}},
	{"request for the same LSA many times", always, func(a *ospfAttacker) ospfShot {
		return a.steady().shot(&packet.Request{Keys: slices.Repeat([]packet.Key{a.routerKey(a.victim)}, 1+a.rng.IntN(100))})
	}},
	{"acknowledgment of nothing", always, func(a *ospfAttacker) ospfShot {
		k := &packet.Ack{}
		for range 1 + a.rng.IntN(60) {
			k.Headers = append(k.Headers, a.header())
		}
		return a.steady().shot(k)
	}},
	{"update with another number of LSAs", always, func(a *ospfAttacker) ospfShot {
		typ, b := a.steady().body(&packet.Update{LSAs: []packet.LSA{a.stranger(), a.stranger()}})
		binary.BigEndian.PutUint32(b, pick[uint32](a, 0, 1, 3, 0xFFFFFFFF, 1<<31, 1<<28))
		return a.steady().send(a.steady().raw(typ, b))
	}},
	{"LSA of another length", always, func(a *ospfAttacker) ospfShot {
		l := a.stranger()
		typ, b := a.steady().body(&packet.Update{LSAs: []packet.LSA{l}})
		n := pick(a, 0, 1, 19, 20, uint16(len(l.Raw)-1), uint16(len(l.Raw)+1), 0xFFFF)
		binary.BigEndian.PutUint16(b[4+18:], n)
		return a.steady().send(a.steady().raw(typ, b))
	}},
}

// hello is a hello that pncd takes.
func (a *ospfAttacker) hello(p *ospfPlayer) *packet.Hello {
	h := &packet.Hello{
		Interface: 66, Options: a.options(), Interval: uint16(ospfHostileHello.Seconds()), Dead: uint32(ospfHostileDead.Seconds()),
		Neighbors: []packet.ID{a.victim},
	}
	if a.v == packet.V2 {
		h.Mask = ^uint32(0) << (32 - a.net.Bits())
	}
	if p.m != nil {
		p.dress(h)
	}
	return h
}

// contested is an instance of an LSA that is there.
func (a *ospfAttacker) contested(sequence int32) packet.LSA {
	return a.lsa(a.routerType(), 9, 0x66FFFFFD, sequence, 1, a.fixed())
}

// fixed is the body of a router LSA without links.
func (a *ospfAttacker) fixed() []byte { return make([]byte, 4) }

// ghost is one more router of the network, which is never designated.
func (a *ospfAttacker) ghost() *ospfPlayer {
	a.ghosts++
	n := a.ghosts % 0xF000
	return &ospfPlayer{a: a, id: 0x0A430000 + packet.ID(n), at: a.host(n)}
}

// elsewhere is an address of the network that no router has.
func (a *ospfAttacker) elsewhere() netip.Addr { return a.host(uint32(0xF000 + a.rng.IntN(0xF00))) }

// from sends something in the steady router's name from an address.
func (a *ospfAttacker) from(at netip.Addr, b packet.Body, deaf bool) ospfShot {
	return ospfShot{from: at, to: a.group(), payload: a.sum(a.steady().packet(b), at, a.group()), deaf: deaf}
}

// foreign are addresses of other networks, and those that stand for none and for pncd itself where the kernel lets them
// in.
func (a *ospfAttacker) foreign() []netip.Addr {
	if a.v == packet.V2 {
		return addresses("192.0.2.1", "10.255.0.1", "0.0.0.0")
	}
	return append(addresses("2001:db8::66", "2001:db8:ffff::1", "fe80::1:2:3:4", "::"), a.victimAt)
}

// impossible are those that the kernel refuses.
func (a *ospfAttacker) impossible() []netip.Addr {
	if a.v == packet.V2 {
		return append(addresses("224.0.0.5", "255.255.255.255", "127.0.0.1"), a.victimAt)
	}
	return addresses("ff02::5", "::1")
}

func addresses(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// good is a packet that pncd takes from a router that it is full with, and that changes nothing there.
func (a *ospfAttacker) good() packet.Body {
	if a.rng.IntN(4) == 0 {
		return a.hello(a.steady())
	}
	return a.talk()
}

// talk is one that is no hello, nor a description.
func (a *ospfAttacker) talk() packet.Body {
	switch a.rng.IntN(3) {
	case 0:
		return &packet.Request{Keys: []packet.Key{a.routerKey(a.victim)}}
	case 1:
		return &packet.Ack{Headers: []packet.Header{a.header()}}
	}
	return &packet.Update{LSAs: []packet.LSA{a.stranger()}}
}

func (a *ospfAttacker) description() *packet.Description {
	o := a.options()
	if a.v == packet.V2 {
		o |= packet.V2OptO
	}
	return &packet.Description{MTU: ospfHostileMTU, Options: o, Sequence: a.rng.Uint32()}
}

// header is that of an LSA that nobody has.
func (a *ospfAttacker) header() packet.Header {
	return packet.Header{
		Age: uint16(a.rng.IntN(3000)), Key: packet.Key{Type: pick(a, a.types()...), ID: packet.ID(a.rng.Uint32()), Adv: packet.ID(a.rng.Uint32())},
		Sequence: int32(a.rng.Uint32()), Checksum: uint16(a.rng.Uint32()), Length: 24,
	}
}
