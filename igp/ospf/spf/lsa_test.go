package spf

import (
	"encoding/binary"
	"slices"
	"testing"

	"pncd/igp/ospf/packet"
)

// lsa makes an LSA; a body that is only written in tests is given as words.
func lsa(t testing.TB, v packet.Version, typ packet.LSType, id, adv packet.ID, body []byte) packet.LSA {
	t.Helper()
	l, err := packet.NewLSA(v, packet.Header{Key: packet.Key{Type: typ, ID: id, Adv: adv}, Sequence: packet.InitialSequence}, body)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func words(w ...packet.ID) (b []byte) {
	for _, x := range w {
		b = binary.BigEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// aged is an LSA at another age, seconds.
func aged(t testing.TB, v packet.Version, l packet.LSA, age uint16) packet.LSA {
	t.Helper()
	out, err := packet.ParseLSA(v, l.Append(nil, age))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// bed is an area with the LSAs that are in it.
type bed struct {
	t    testing.TB
	v    packet.Version
	area *Area
	lsas map[packet.ID][]packet.LSA
}

// newBed makes an area as router 1 sees it.
func newBed(t testing.TB, v packet.Version) *bed {
	return &bed{t: t, v: v, area: New(v, 1), lsas: map[packet.ID][]packet.LSA{}}
}

func (b *bed) add(l packet.LSA) {
	b.lsas[l.Adv] = append(b.lsas[l.Adv], l)
}

// run brings all LSAs to the area.
func (b *bed) run() {
	b.t.Helper()
	for router, list := range b.lsas {
		slices.SortFunc(list, func(x, y packet.LSA) int { return x.Compare(y.Key) })
		if _, err := b.area.Set(router, list); err != nil {
			b.t.Error(err)
		}
	}
	b.area.Run()
}

func (b *bed) want(name string, router packet.ID, cost uint32) {
	b.t.Helper()
	if got := b.area.Cost(router); got != cost {
		b.t.Errorf("%s: cost of %d is %d, want %d", name, router, got, cost)
	}
}

// p2p and lan are links of a router LSA in both versions. A network is named by its Designated Router and the
// number of the interface there, which make its address in OSPFv2.
func p2p(to packet.ID, metric uint16) link {
	return link{kind: packet.LinkPointToPoint, to: to, metric: metric}
}
func lan(dr packet.ID, number int, metric uint16) link {
	return link{kind: packet.LinkTransit, to: dr, number: number, metric: metric}
}

type link struct {
	kind   uint8
	to     packet.ID
	number int
	metric uint16
}

func address(dr packet.ID, number int) packet.ID { return 10<<24 | dr<<8 | packet.ID(number) }

// router makes a router LSA; in OSPFv3 with the options R and V6.
func (b *bed) router(id packet.ID, flags uint8, links ...link) { b.routerPart(0, id, flags, links...) }

func (b *bed) routerPart(part, id packet.ID, flags uint8, links ...link) {
	b.routerWith(part, id, flags, packet.V3OptR|packet.V3OptV6, links...)
}

func (b *bed) routerWith(part, id packet.ID, flags uint8, options uint32, links ...link) {
	b.t.Helper()
	if b.v == packet.V3 {
		r := packet.V3RouterLSA{Flags: flags, Options: options}
		for _, l := range links {
			r.Links = append(r.Links, packet.V3RouterLink{Kind: l.kind, Metric: l.metric, Interface: 7, Neighbor: l.to, NeighborInterface: uint32(l.number)})
		}
		b.add(lsa(b.t, b.v, packet.V3Router, part, id, r.Append(nil)))
		return
	}
	r := packet.V2RouterLSA{Flags: flags}
	for _, l := range links {
		x := packet.V2Link{Kind: l.kind, ID: l.to, Data: 10<<24 | id, Metric: l.metric}
		if l.kind == packet.LinkTransit {
			if x.ID = address(l.to, l.number); l.to == id {
				x.Data = x.ID
			}
		}
		r.Links = append(r.Links, x)
	}
	b.add(lsa(b.t, b.v, packet.V2Router, id, id, r.Append(nil)))
}

// network makes the network LSA of a Designated Router.
func (b *bed) network(dr packet.ID, number int, routers ...packet.ID) {
	b.t.Helper()
	body := append(words(0xFFFFFF00), words(routers...)...)
	if b.v == packet.V3 {
		b.add(lsa(b.t, b.v, packet.V3Network, packet.ID(number), dr, body))
		return
	}
	b.add(lsa(b.t, b.v, packet.V2Network, address(dr, number), dr, body))
}

// remote makes what a border router says of a router of another area.
func (b *bed) remote(border, router packet.ID, metric uint32) {
	b.t.Helper()
	if b.v == packet.V3 {
		b.add(lsa(b.t, b.v, packet.V3InterAreaRouter, router, border, words(0, packet.ID(metric), router)))
		return
	}
	b.add(lsa(b.t, b.v, packet.V2ASBR, router, border, words(0, packet.ID(metric))))
}
