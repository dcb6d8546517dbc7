package integration

import (
	"encoding/binary"
	"net/netip"

	"pncd/igp/ospf/packet"
)

// LSAs that nobody made who exists. They have the scope of the inner network or of its area, so that nobody has
// them from pncd, but for those of the domain's scope that are said to be well formed: pncd passes these on.
var ospfLSAKinds = []ospfKind{
	{"LSA with a wrong checksum", always, func(a *ospfAttacker) ospfShot {
		l := a.stranger()
		l.Raw[16+a.rng.IntN(2)] ^= uint8(1 + a.rng.IntN(254))
		return a.says(l)
	}},
	{"LSA of another life at MaxAge, unknown", always, func(a *ospfAttacker) ospfShot {
		return a.says(a.lsa(pick(a, a.types()...), a.number(), a.nobody(), int32(a.rng.Uint32()), packet.MaxAge, nil))
	}},
	{"an LSA of pncd", always, func(a *ospfAttacker) ospfShot { // of types that it never makes, too
		typ := pick(a, a.types()...)
		id := pick(a, 0, a.victim, packet.ID(a.rng.IntN(4)), packet.OpaqueID(packet.OpaqueExtendedPrefix, uint32(a.rng.IntN(4))), a.number())
		age := pick[uint16](a, 0, 1, 1800, packet.MaxAge, packet.MaxAge|packet.DoNotAge)
		return a.says(a.lsa(typ, id, a.victim, pick(a, packet.InitialSequence, -5, 100, packet.MaxSequence-1, packet.MaxSequence), age, a.plain(typ)))
	}},
	{"a network LSA with pncd's address", always, func(a *ospfAttacker) ospfShot {
		typ, id := packet.V3Network, packet.ID(66)
		if a.v == packet.V2 {
			typ, id = packet.V2Network, packet.IDOf(a.victimAt)
		}
		return a.says(a.lsa(typ, id, a.nobody(), int32(a.rng.IntN(1000)), 1, a.plain(typ)))
	}},
	{"the end of the sequence space", always, func(a *ospfAttacker) ospfShot {
		return a.says(a.lsa(a.areaType(), a.number(), a.nobody(), packet.MaxSequence, pick[uint16](a, 1, packet.MaxAge), nil))
	}},
	{"a type that nobody knows", always, func(a *ospfAttacker) ospfShot {
		typ := packet.LSType(pick(a, 0, 6, 8, 12, 128, 255))
		if a.v == packet.V3 {
			typ = packet.LSType(pick(a, 0x2100, 0xA100, 0x0100, 0x8100, 0x3FFF&uint32(0x200F), 0xA0FF))
		}
		return a.says(a.lsa(typ, a.number(), a.nobody(), 1, 1, a.random(4*a.rng.IntN(20))))
	}},
	{"reserved scope", always, func(a *ospfAttacker) ospfShot {
		typ := packet.LSType(pick(a, 0, 6, 12))
		if a.v == packet.V3 {
			typ = packet.LSType(pick(a, 0x6001, 0xE001, 0x6000|uint32(a.rng.IntN(0x2000)), 0xE000|uint32(a.rng.IntN(0x2000))))
		}
		return a.says(a.lsa(typ, a.number(), a.nobody(), 1, 1, nil))
	}},
	{"types with another scope or U bit", always, func(a *ospfAttacker) ospfShot {
		typ := pick(a, packet.V2OpaqueLink, packet.V2OpaqueArea)
		if a.v == packet.V3 {
			// Of the link's scope or the area's, whatever the function.
			typ = pick(a, a.types()...)&0x1FFF | packet.LSType(pick(a, 0, 0x2000, 0x8000, 0xA000))
		}
		return a.says(a.lsa(typ, a.number(), a.nobody(), 1, 1, a.random(4*a.rng.IntN(20))))
	}},
	{"a body that ends early", always, func(a *ospfAttacker) ospfShot {
		typ := a.areaType()
		b := a.plain(typ)
		return a.says(a.lsa(typ, a.number(), a.nobody(), 1, 1, b[:a.rng.IntN(len(b)+1)]))
	}},
	{"a mutated body", always, func(a *ospfAttacker) ospfShot {
		typ := a.areaType()
		return a.says(a.lsa(typ, a.number(), a.nobody(), 1, 1, a.flip(a.plain(typ), 1+a.rng.IntN(4))))
	}},
	{"counts that don't fit", always, func(a *ospfAttacker) ospfShot { // of links, of prefixes
		typ := a.routerType()
		b := a.random(4 + 4*a.rng.IntN(50))
		if a.v == packet.V3 && a.rng.IntN(2) == 0 {
			typ = packet.V3IntraAreaPrefix
			binary.BigEndian.PutUint16(b, uint16(a.rng.Uint32()))
		} else {
			binary.BigEndian.PutUint16(b[2:], uint16(a.rng.Uint32()))
		}
		return a.says(a.lsa(typ, a.number(), a.nobody(), 1, 1, b))
	}},
	{"a TLV that ends beyond the LSA", always, func(a *ospfAttacker) ospfShot {
		typ, id := a.markType()
		b := a.mark(netip.Prefix{})
		at := len(b) - 4 - 4*a.rng.IntN(3)
		binary.BigEndian.PutUint16(b[at+2:], pick[uint16](a, 5, 0xFF, 0xFFFF, 0x8000))
		return a.says(a.lsa(typ, id, a.nobody(), 1, 1, b))
	}},
	{"a prefix that is too long", always, func(a *ospfAttacker) ospfShot {
		typ, id := a.markType()
		b := a.mark(netip.Prefix{})
		b[a.prefixLengthAt()] = uint8(33 + a.rng.IntN(223))
		if a.v == packet.V3 {
			b[a.prefixLengthAt()] = uint8(129 + a.rng.IntN(127))
		}
		return a.says(a.lsa(typ, id, a.nobody(), 1, 1, b))
	}},
	{"Prefix Extended Flags of no whole words", always, func(a *ospfAttacker) ospfShot {
		typ, id := a.markType()
		return a.says(a.lsa(typ, id, a.nobody(), 1, 1, a.markWith(a.random(pick(a, 0, 1, 2, 3, 5, 6, 7, 9, 1001)), nil)))
	}},
	{"a proxy's address of another length", always, func(a *ospfAttacker) ospfShot {
		typ, id := a.markType()
		return a.says(a.lsa(typ, id, a.nobody(), 1, 1, a.markWith(packet.WithFlagBit(2), a.random(pick(a, 0, 1, 3, 5, 15, 17, 255)))))
	}},
	{"a mark of somebody who can't be reached", always, func(a *ospfAttacker) ospfShot {
		typ, id := a.markType()
		p := netip.MustParsePrefix(pick(a, "10.1.0.0/24", "10.7.0.0/24", "10.1.0.0/25", "0.0.0.0/0"))
		if a.v == packet.V3 {
			p = netip.MustParsePrefix(pick(a, "2001:db8:1::/48", "2001:db8:7::/48", "2001:db8:1::/49", "::/0"))
		}
		return a.says(a.lsa(typ, id, a.nobody(), 1, 1, a.mark(p)))
	}},
	{"a mark of the domain's scope", always, func(a *ospfAttacker) ospfShot { // OSPFv2: passed on to nobody
		if a.v == packet.V2 {
			return a.says(a.lsa(packet.V2OpaqueAS, packet.OpaqueID(packet.OpaqueExtendedPrefix, a.rng.Uint32()), a.nobody(), 1, 1, a.mark(netip.Prefix{})))
		}
		body := packet.V3ExtendedPrefix{Type: packet.V3TLVExternalPrefix, Metric: 1, Prefix: netip.MustParsePrefix("2001:db8:1::/48"),
			Subs: []packet.TLV{{Type: packet.V3SubPrefixFlags, Value: packet.WithFlagBit(2)}}}.Append(nil)
		return a.says(a.lsa(packet.V3EExternal, a.number(), a.nobody(), 1, 1, body))
	}},
	{"a flood of LSAs", always, func(a *ospfAttacker) ospfShot {
		var list []packet.LSA
		for range 1 + a.rng.IntN(30) {
			list = append(list, a.stranger())
		}
		return a.says(list...)
	}},
	{"a flush of what was said", whenCalm, func(a *ospfAttacker) ospfShot {
		const most = 60 << 10
		u := &packet.Update{}
		for octets := 0; len(a.told) > 0 && len(u.LSAs) < 100 && octets+len(a.told[0].Raw) < most; a.told = a.told[1:] {
			octets += len(a.told[0].Raw)
			u.LSAs = append(u.LSAs, must(packet.ParseLSA(a.v, a.told[0].Append(nil, packet.MaxAge))))
		}
		return a.steady().shot(u)
	}},
	{"a flood of externals, well formed", always, func(a *ospfAttacker) ospfShot {
		typ := a.externalType()
		return a.says(a.lsa(typ, a.number(), a.nobody(), 1, 1, a.plain(typ)))
	}},
	{"DoNotAge", always, func(a *ospfAttacker) ospfShot {
		return a.says(a.lsa(a.areaType(), a.number(), a.nobody(), 1, packet.DoNotAge|uint16(a.rng.IntN(0x8000)), nil))
	}},
	{"an age beyond MaxAge", always, func(a *ospfAttacker) ospfShot {
		return a.says(a.lsa(a.areaType(), a.number(), a.nobody(), 1, uint16(3601+a.rng.IntN(0x8000-3601)), nil))
	}},
	{"an LSA of many octets", always, func(a *ospfAttacker) ospfShot { // in fragments of IP
		n := 1 + a.rng.IntN(2000)
		if a.rng.IntN(40) == 0 {
			n = 15_000
		}
		return a.says(a.lsa(a.areaType(), a.number(), a.nobody(), 1, 1, a.random(4*n)))
	}},
	{"the same instance with other contents", always, func(a *ospfAttacker) ospfShot {
		return a.says(a.lsa(a.routerType(), 7, 0x66FFFFFF, 7, 1, append(make([]byte, 4), a.random(4*a.rng.IntN(8))...)))
	}},
	{"ever newer instances", always, func(a *ospfAttacker) ospfShot {
		a.strangers++
		return a.says(a.lsa(a.routerType(), 8, 0x66FFFFFE, int32(a.strangers), 1, a.plain(a.routerType())))
	}},
	{"a router with thousands of links", always, func(a *ospfAttacker) ospfShot {
		return a.says(a.lsa(a.routerType(), a.number(), a.nobody(), 1, 1, a.links(1000+a.rng.IntN(2000))))
	}},
	{"routers that are linked with the attacker", always, func(a *ospfAttacker) ospfShot { // each one asks for SPF
		from := a.steady().id
		if a.rng.IntN(2) == 0 {
			from = a.nobody()
		}
		a.strangers++
		return a.says(a.lsa(a.routerType(), packet.ID(0), from, int32(a.strangers), 1, a.links(1+a.rng.IntN(50))))
	}},
	{"a grace LSA", always, func(a *ospfAttacker) ospfShot {
		typ, id := packet.V2OpaqueLink, packet.OpaqueID(packet.OpaqueGrace, 0)
		if a.v == packet.V3 {
			typ, id = packet.V3Grace, 66
		}
		b := packet.AppendTLV(nil, packet.TLV{Type: 1, Value: binary.BigEndian.AppendUint32(nil, a.rng.Uint32())})
		b = packet.AppendTLV(b, packet.TLV{Type: 2, Value: []byte{uint8(a.rng.Uint32())}})
		a.strangers++
		return a.says(a.lsa(typ, id, pick(a, a.shaky().id, a.nobody()), int32(a.strangers), pick[uint16](a, 0, 5, packet.MaxAge), a.flip(b, a.rng.IntN(3))))
	}},
}

// says is an update of the steady router.
func (a *ospfAttacker) says(list ...packet.LSA) ospfShot {
	for _, l := range list {
		if l.Adv != a.victim && l.AgeSeconds() < packet.MaxAge {
			a.told = append(a.told, l)
		}
	}
	a.told = a.told[max(len(a.told)-2*hostileMaxLSAs, 0):]
	return a.steady().shot(&packet.Update{LSAs: list})
}

// types are LSA types that OSPF has, those of link or area scope and the externals.
func (a *ospfAttacker) types() []packet.LSType {
	if a.v == packet.V2 {
		return []packet.LSType{packet.V2Router, packet.V2Network, packet.V2Summary, packet.V2ASBR, packet.V2External, packet.V2NSSA, packet.V2OpaqueLink, packet.V2OpaqueArea}
	}
	return []packet.LSType{
		packet.V3Router, packet.V3Network, packet.V3InterAreaPrefix, packet.V3InterAreaRouter, packet.V3External, packet.V3NSSA, packet.V3Link, packet.V3IntraAreaPrefix,
		packet.V3Grace, packet.V3IntraAreaTE, packet.V3ERouter, packet.V3ENetwork, packet.V3EInterAreaPrefix, packet.V3ENSSA, packet.V3ELink, packet.V3EIntraAreaPrefix,
	}
}

// areaType is one that stays in the area, or on the link.
func (a *ospfAttacker) areaType() packet.LSType {
	for {
		if t := pick(a, a.types()...); t != a.externalType() {
			return t
		}
	}
}

func (a *ospfAttacker) routerType() packet.LSType {
	if a.v == packet.V2 {
		return packet.V2Router
	}
	return packet.V3Router
}

func (a *ospfAttacker) externalType() packet.LSType {
	if a.v == packet.V2 {
		return packet.V2External
	}
	return packet.V3External
}

// markType is the type and link state ID of an LSA that marks prefixes.
func (a *ospfAttacker) markType() (packet.LSType, packet.ID) {
	if a.v == packet.V2 {
		return packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, a.rng.Uint32())
	}
	return packet.V3EIntraAreaPrefix, a.number()
}

func (a *ospfAttacker) routerKey(id packet.ID) packet.Key {
	k := packet.Key{Type: a.routerType(), Adv: id}
	if a.v == packet.V2 {
		k.ID = id
	}
	return k
}

func (a *ospfAttacker) number() packet.ID { return packet.ID(a.rng.Uint32()) }

// nobody is a router that doesn't exist: its ID begins with 102.
func (a *ospfAttacker) nobody() packet.ID { return 0x66000000 | packet.ID(a.rng.Uint32()&0xFFFFF) }

func (a *ospfAttacker) lsa(t packet.LSType, id, adv packet.ID, sequence int32, age uint16, body []byte) packet.LSA {
	return must(packet.NewLSA(a.v, packet.Header{Age: age, Options: packet.OptionE, Key: packet.Key{Type: t, ID: id, Adv: adv}, Sequence: sequence}, body))
}

// stranger is an LSA of nobody, well formed.
func (a *ospfAttacker) stranger() packet.LSA {
	typ := a.areaType()
	return a.lsa(typ, a.number(), a.nobody(), 1, 1, a.plain(typ))
}

// plain is a body of a type that is well formed.
func (a *ospfAttacker) plain(t packet.LSType) []byte {
	mark, _ := a.markType()
	switch t {
	case mark:
		return a.mark(netip.Prefix{})
	case a.routerType():
		return a.links(a.rng.IntN(4))
	}
	if t == a.externalType() {
		if a.v == packet.V2 { // mask, metric, forwarding address, tag (RFC 2328 section A.4.5)
			return append([]byte{255, 255, 255, 0, 0x80, 0, 0, 20}, make([]byte, 8)...)
		}
		b := append([]byte{0, 0, 0, 20, 64, 0, 0, 0}, 0x20, 0x01, 0x0D, 0xB8, 0x66) // RFC 5340 section A.4.7
		return append(b, a.random(3)...)
	}
	return a.random(4 * (2 + a.rng.IntN(6)))
}

// links is the body of a router LSA.
func (a *ospfAttacker) links(n int) []byte {
	if a.v == packet.V2 {
		var r packet.V2RouterLSA
		for range n {
			r.Links = append(r.Links, packet.V2Link{ID: pick(a, a.nobody(), a.victim, a.steady().id), Data: a.number(), Kind: uint8(1 + a.rng.IntN(4)), Metric: uint16(a.rng.Uint32())})
		}
		return r.Append(nil)
	}
	r := packet.V3RouterLSA{Options: packet.V3OptR | packet.V3OptV6 | packet.OptionE}
	for range n {
		r.Links = append(r.Links, packet.V3RouterLink{
			Kind: uint8(1 + a.rng.IntN(4)), Metric: uint16(a.rng.Uint32()), Interface: a.rng.Uint32(), NeighborInterface: a.rng.Uint32(), Neighbor: pick(a, a.nobody(), a.victim, a.steady().id),
		})
	}
	return r.Append(nil)
}

// mark is the body of an LSA that marks a prefix; an invalid one stands for any.
func (a *ospfAttacker) mark(p netip.Prefix) []byte {
	proxy := []byte{10, 66, 66, 66}
	if a.v == packet.V3 {
		proxy = netip.MustParseAddr("2001:db8:66::66").AsSlice()
	}
	return a.markOf(p, packet.WithFlagBit(2), proxy)
}

func (a *ospfAttacker) markWith(flags, proxy []byte) []byte {
	return a.markOf(netip.Prefix{}, flags, proxy)
}

func (a *ospfAttacker) markOf(p netip.Prefix, flags, proxy []byte) []byte {
	if a.v == packet.V2 {
		if !p.IsValid() {
			p = netip.PrefixFrom(netip.AddrFrom4([4]byte(a.random(4))), 24).Masked()
		}
		return packet.V2ExtendedPrefix{RouteType: packet.RouteIntraArea, Prefix: p,
			Subs: []packet.TLV{{Type: packet.V2SubPrefixFlags, Value: flags}, {Type: packet.V2SubSourceRouterAddr, Value: proxy}}}.Append(nil)
	}
	if !p.IsValid() {
		p = netip.PrefixFrom(netip.AddrFrom16([16]byte(a.random(16))), 64).Masked()
	}
	return packet.V3EIntraArea{Referenced: a.routerKey(a.nobody()), Prefixes: []packet.V3ExtendedPrefix{{Type: packet.V3TLVIntraAreaPrefix, Prefix: p,
		Subs: []packet.TLV{{Type: packet.V3SubPrefixFlags, Value: flags}, {Type: packet.V3SubSourceRouterAddr, Value: proxy}}}}}.Append(nil)
}

// prefixLengthAt is where the body of a mark has the prefix's length.
func (a *ospfAttacker) prefixLengthAt() int {
	if a.v == packet.V2 {
		return 5 // TLV header, route type
	}
	return 12 + 4 + 4 // what is before the TLVs, TLV header, metric
}
