package integration

import (
	"encoding/binary"
	"slices"

	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/packet"
)

// Packets for the network where pncd and FRR authenticate each other, whose keys the attacker doesn't have. It has
// recorded what they sent. FRR hears those that no program should fail at; the rest is for pncd alone. So are those of
// OSPFv3 with a greater sequence number: ospf6d of FRR 8.4.4 takes the number although the digest is wrong, and then
// hears nothing of the neighbour until that is dead.
var ospfOuterKinds = []ospfKind{
	{"recorded and truncated", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		s.payload = s.payload[:1+a.rng.IntN(len(s.payload)-1)]
		return s
	}},
	{"recorded and truncated, with the length of that", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		s.payload = lengthOf(s.payload[:1+a.rng.IntN(len(s.payload)-1)])
		return s
	}},
	{"recorded and changed", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		a.flip(s.payload, 1+a.rng.IntN(8))
		return s
	}},
	{"recorded, with random octets behind the header", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		head := a.v.HeaderLen()
		copy(s.payload[head:], a.random(len(s.payload)-head))
		return s
	}},
	{"recorded, and longer", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		s.payload = append(s.payload, a.random(1+a.rng.IntN(100))...)
		return s
	}},
	{"replayed", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		s.both = true
		return s
	}},
	{"replayed from another address", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		b := s.from.AsSlice()
		b[len(b)-1] ^= 0x40
		s.from = addressOf(b)
		return s
	}},
	{"replayed with a greater sequence number", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		if a.v == packet.V2 {
			binary.BigEndian.PutUint32(s.payload[20:], 0xFFFFFFFF-uint32(a.rng.IntN(1000)))
		} else if at := int(packet.Length(s.payload)) + 8; at+8 <= len(s.payload) {
			binary.BigEndian.PutUint64(s.payload[at:], ^uint64(0)-uint64(a.rng.IntN(1000)))
		}
		s.both = a.v == packet.V2
		return s
	}},
	{"not authenticated", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		s.payload = s.payload[:packet.Length(s.payload)]
		if a.v == packet.V2 {
			clear(s.payload[14:24])
		} else if t := packet.PeekType(s.payload); t == packet.TypeHello || t == packet.TypeDescription {
			at := 21
			if t == packet.TypeDescription {
				at = 17
			}
			s.payload[at+1] &^= packet.V3OptAT >> 8
		}
		a.sum(s.payload, s.from, s.to)
		s.both = true
		return s
	}},
	{"another type of authentication, key or length of the digest", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		trailer := packet.Length(s.payload)
		switch field := a.rng.IntN(3); {
		case a.v == packet.V2:
			at := []int{15, 18, 19}[field]
			s.payload[at] ^= uint8(1 + a.rng.IntN(255))
		case trailer+8 <= len(s.payload): // type, length, association
			at := trailer + []int{1, 3, 7}[field]
			s.payload[at] ^= uint8(1 + a.rng.IntN(255))
		}
		return s
	}},
	{"a trailer that ends early", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		at := packet.Length(s.payload)
		s.payload = s.payload[:at+a.rng.IntN(max(len(s.payload)-at, 1))]
		return s
	}},
	{"authenticated with another key", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		p, err := packet.Parse(a.v, s.payload)
		if err != nil {
			return s
		}
		p.Trailer = nil
		k := auth.Key{ID: 1, Algorithm: auth.MD5, Secret: "public"}
		if a.v == packet.V3 {
			k.Algorithm, k.SwapProtocolID = auth.HMACSHA256, a.rng.IntN(2) == 0
		}
		s.payload = must(auth.Chain{Send: k}.Seal(p, auth.Addresses{Source: s.from, Destination: s.to}, &auth.Sequence{}, a.now))
		s.both = a.v == packet.V2
		return s
	}},
	{"the attacker's own, not authenticated", always, func(a *ospfAttacker) ospfShot {
		s := a.one()
		b := a.shaky().packet(a.good())
		clear(b[8:12])
		s.payload = a.sum(b, s.from, s.to)
		return s
	}},
}

// one is a recorded packet, of pncd itself now and then.
func (a *ospfAttacker) one() ospfShot {
	s := a.recorded[a.rng.IntN(len(a.recorded))]
	for own := a.rng.IntN(8) == 0; !own && packet.PeekRouter(s.payload) == a.victim; {
		s = a.recorded[a.rng.IntN(len(a.recorded))]
	}
	s.payload = slices.Clone(s.payload)
	s.to = a.group() // pncd doesn't hear what is for Designated Routers
	return s
}
