package spf

import (
	"slices"
	"strings"
	"testing"

	"pncd/igp/ospf/packet"
	"pncd/igp/spf"
)

const border = packet.RouterB

// both runs a test for both versions.
func both(t *testing.T, f func(t *testing.T, v packet.Version)) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		t.Run(v.String(), func(t *testing.T) { f(t, v) })
	}
}

func TestPaths(t *testing.T) {
	type costs map[packet.ID]uint32
	const none = Unreachable
	for _, c := range []struct {
		name  string
		build func(b *bed)
		want  costs
	}{
		{"point to point, each direction with its metric", func(b *bed) {
			b.router(1, 0, p2p(2, 10))
			b.router(2, 0, p2p(1, 99), p2p(3, 5))
			b.router(3, 0, p2p(2, 1))
		}, costs{1: 0, 2: 10, 3: 15}},
		{"from a network to its routers costs nothing", func(b *bed) {
			b.router(1, 0, lan(2, 1, 7))
			b.router(2, 0, lan(2, 1, 9))
			b.router(3, 0, lan(2, 1, 1))
			b.network(2, 1, 2, 1, 3)
		}, costs{2: 7, 3: 7}},
		{"a network whose LSA doesn't list the root", func(b *bed) {
			b.router(1, 0, lan(2, 1, 7))
			b.router(2, 0, lan(2, 1, 9))
			b.network(2, 1, 2)
		}, costs{2: none}},
		{"a router that a network lists, and that doesn't say to be on it", func(b *bed) {
			b.router(1, 0, lan(2, 1, 7))
			b.router(2, 0, lan(2, 1, 9))
			b.router(3, 0, lan(2, 2, 1))
			b.network(2, 1, 2, 1, 3)
		}, costs{2: 7, 3: none}},
		{"a network without an LSA", func(b *bed) {
			b.router(1, 0, lan(2, 1, 7))
			b.router(2, 0, lan(2, 1, 9))
		}, costs{2: none}},
		{"two networks of the same Designated Router", func(b *bed) {
			b.router(1, 0, lan(2, 1, 7))
			b.router(2, 0, lan(2, 1, 1), lan(2, 2, 30))
			b.router(3, 0, lan(2, 2, 1))
			b.network(2, 1, 2, 1)
			b.network(2, 2, 2, 3)
		}, costs{2: 7, 3: 37}},
		{"RFC 2328 section 16.1 (2b): no link back", func(b *bed) {
			b.router(1, 0, p2p(2, 10))
			b.router(2, 0, p2p(3, 1))
			b.router(3, 0, p2p(2, 1))
		}, costs{2: none, 3: none}},
		{"RFC 6987 section 2: a link with MaxLinkMetric is one", func(b *bed) {
			b.router(1, 0, p2p(2, packet.MaxLinkMetric))
			b.router(2, 0, p2p(1, 1), p2p(3, packet.MaxLinkMetric))
			b.router(3, 0, p2p(2, 1))
		}, costs{2: 0xFFFF, 3: 2 * 0xFFFF}},
		{"stub and virtual links don't count", func(b *bed) {
			b.router(1, 0, link{kind: packet.LinkStub, to: 2, metric: 1}, link{kind: packet.LinkVirtual, to: 3, metric: 1})
			b.router(2, 0, link{kind: packet.LinkStub, to: 1, metric: 1})
			b.router(3, 0, link{kind: packet.LinkVirtual, to: 1, metric: 1})
		}, costs{2: none, 3: none}},
		{"a router without a router LSA", func(b *bed) {
			b.router(1, 0, lan(2, 1, 7))
			b.network(2, 1, 2, 1)
		}, costs{2: none, 9: none}},
		{"the root says nothing yet", func(b *bed) {
			b.router(2, 0, p2p(1, 1))
		}, costs{1: none, 2: none}},
	} {
		both(t, func(t *testing.T, v packet.Version) {
			b := newBed(t, v)
			c.build(b)
			b.run()
			for router, cost := range c.want {
				b.want(c.name, router, cost)
			}
		})
	}
}

// RFC 5340 section 4.8.1 and appendix A.4.3.
func TestRouterLSAsOfOSPFv3(t *testing.T) {
	chain := func(options uint32) *bed {
		b := newBed(t, packet.V3)
		b.routerWith(0, 1, 0, 0, p2p(2, 1)) // the root itself may be a host
		b.routerWith(5, 2, 0, options, p2p(1, 1), p2p(3, 1))
		b.router(3, 0, p2p(2, 1))
		return b
	}
	for _, c := range []struct {
		name    string
		options uint32
		behind  uint32
	}{
		{"R and V6", packet.V3OptR | packet.V3OptV6, 2},
		{"R bit clear: reached, nothing behind it", packet.V3OptV6, Unreachable},
		{"V6 bit clear: reached, nothing behind it", packet.V3OptR, Unreachable},
	} {
		b := chain(c.options)
		b.run()
		b.want(c.name, 2, 1)
		b.want(c.name, 3, c.behind)

		b = chain(c.options)
		b.routerWith(9, 2, 0, packet.V3OptR|packet.V3OptV6)
		b.run()
		b.want(c.name+", another LSA of a higher ID says otherwise", 3, c.behind)
	}
	b := chain(packet.V3OptR | packet.V3OptV6)
	b.routerWith(1, 2, 0, packet.V3OptV6)
	b.run()
	b.want("the LSA of the lowest ID has the R bit clear", 3, Unreachable)
	slices.Reverse(b.lsas[2])
	if changed, err := b.area.Set(2, b.lsas[2]); err != nil {
		t.Fatal(changed, err)
	}
	b.area.Run()
	b.want("in any order", 3, Unreachable)

	b = newBed(t, packet.V3)
	b.router(1, 0, p2p(2, 1))
	b.routerPart(0, 2, 0, p2p(1, 1))
	b.routerPart(1, 2, 0, p2p(3, 4))
	b.routerPart(2, 2, 0, p2p(4, 5))
	b.router(3, 0, p2p(2, 1))
	b.router(4, 0, p2p(2, 1))
	b.run()
	b.want("the links of all router LSAs count", 3, 5)
	b.want("the links of all router LSAs count", 4, 6)
}

func TestLSAsAtMaxAgeDontCount(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		b := newBed(t, v)
		b.router(1, 0, p2p(2, 1), lan(3, 1, 2))
		b.router(2, border, p2p(1, 1))
		b.router(3, 0, lan(3, 1, 1))
		b.network(3, 1, 3, 1)
		b.remote(2, 77, 5)
		b.run()
		b.want("before", 2, 1)
		b.want("before", 3, 2)
		if got := b.area.InterArea(77); got != 6 {
			t.Errorf("the other area's router costs %d", got)
		}
		for _, router := range []packet.ID{2, 3} {
			for i, l := range b.lsas[router] {
				b.lsas[router][i] = aged(t, v, l, packet.MaxAge)
			}
		}
		b.run()
		for _, router := range []packet.ID{2, 3} {
			b.want("after", router, Unreachable)
		}
		if got := b.area.InterArea(77); got != Unreachable {
			t.Errorf("the other area's router costs %d", got)
		}
		if len(b.area.routers) != 1 || len(b.area.networks) != 0 {
			t.Errorf("left behind: %v, %v", b.area.routers, b.area.networks)
		}
		for i, l := range b.lsas[3] {
			b.lsas[3][i] = aged(t, v, l, packet.DoNotAge|3599)
		}
		b.run()
		b.want("DoNotAge is no age", 3, 2)
	})
}

func TestLSAsOfOthersDontCount(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		b := newBed(t, v)
		b.router(1, 0, p2p(2, 1), p2p(3, 1))
		b.router(2, 0, p2p(1, 1))
		b.run()
		if _, err := b.area.Set(3, b.lsas[2]); err != nil {
			t.Fatal(err)
		}
		b.area.Run()
		b.want("itself", 2, 1)
		b.want("not who said it", 3, Unreachable)
	})
}

// RFC 2328 section 12.1.4: a router LSA names a network of OSPFv2 by the Designated Router's address alone.
func TestNetworkLSAsOfTheSameAddress(t *testing.T) {
	a := address(2, 1)
	of := func(b *bed, adv packet.ID, routers ...packet.ID) {
		b.add(lsa(t, packet.V2, packet.V2Network, a, adv, append(words(0xFFFFFF00), words(routers...)...)))
	}
	b := newBed(t, packet.V2)
	b.router(1, 0, lan(2, 1, 7))
	b.router(2, 0, lan(2, 1, 1))
	b.router(3, 0, lan(2, 1, 1))
	of(b, 2, 1, 2)
	for old := packet.ID(5); old < 10; old++ {
		of(b, old, 1, 2, 3) // the IDs that router 2 had before
	}
	b.run()
	b.want("of the router that has the address", 2, 7)
	b.want("of the router that has the address", 3, Unreachable)

	// The Designated Router takes its router LSA back: nobody has the address any more.
	rest := b.lsas[2][1:]
	if changed, err := b.area.Set(2, rest); err != nil || !changed {
		t.Fatal(changed, err)
	}
	b.area.Run()
	b.want("without such a router, of the highest ID", 3, 7)

	for old := packet.ID(5); old < 10; old++ {
		b.area.Set(old, nil)
	}
	b.area.Run()
	b.want("the one that is left", 3, Unreachable)
	b.area.Set(2, nil)
	b.area.Run()
	if len(b.area.networks) != 0 {
		t.Errorf("left behind: %v", b.area.networks)
	}
}

func TestRoutersOfOtherAreas(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		b := newBed(t, v)
		b.router(1, border, p2p(2, 10), p2p(3, 1), p2p(4, 1))
		b.router(2, border, p2p(1, 1))
		b.router(3, border, p2p(1, 1))
		b.router(4, 0, p2p(1, 1))
		b.router(5, border, p2p(1, 1)) // not reachable: the root has no link to it
		b.remote(2, 70, 1)
		b.remote(3, 70, 20)
		b.remote(2, 71, 1)
		b.remote(3, 71, 5)
		b.remote(2, 72, packet.MaxMetric)
		b.remote(4, 73, 1) // no border router
		b.remote(5, 74, 1)
		b.remote(1, 75, 1) // the root's own
		b.remote(2, 4, 1)  // of this area as well
		b.remote(3, 5, 30) // of this area, but not reachable there
		b.router(6, 0)
		b.remote(5, 6, 1) // the same, and nor through the border router
		b.run()
		for router, want := range map[packet.ID]uint32{70: 11, 71: 6, 72: Unreachable, 73: Unreachable, 74: Unreachable, 75: Unreachable, 76: Unreachable} {
			if got := b.area.InterArea(router); got != want {
				t.Errorf("router %d costs %d, want %d", router, got, want)
			}
		}
		for router, want := range map[packet.ID][2]uint32{ // within the area, and by border routers
			1: {0, Unreachable}, 2: {10, Unreachable}, 3: {1, Unreachable}, 4: {1, 11}, 5: {Unreachable, 31}, 6: {Unreachable, Unreachable},
			70: {Unreachable, 11}, 71: {Unreachable, 6}, 73: {Unreachable, Unreachable}, 74: {Unreachable, Unreachable}, 75: {Unreachable, Unreachable},
		} {
			if got := [2]uint32{b.area.Cost(router), b.area.InterArea(router)}; got != want {
				t.Errorf("router %d costs %d, want %d", router, got, want)
			}
		}
		b.remote(2, 71, 1)
		b.lsas[3] = nil
		b.run()
		if got := b.area.InterArea(71); got != 11 {
			t.Errorf("without the nearest border router: %d", got)
		}
	})
}

// RFC 5340 section A.4.6: the link state ID of an inter-area-router LSA is any number.
func TestTheBestOfSeveralInterAreaRouterLSAs(t *testing.T) {
	for _, order := range [][2]packet.ID{{5, 9}, {9, 5}} {
		b := newBed(t, packet.V3)
		b.router(1, 0, p2p(2, 1))
		b.router(2, border, p2p(1, 1))
		for i, metric := range order {
			b.add(lsa(t, packet.V3, packet.V3InterAreaRouter, packet.ID(i), 2, words(0, metric, 70)))
		}
		b.run()
		if got := b.area.InterArea(70); got != 6 {
			t.Errorf("metrics %d: cost %d", order, got)
		}
	}
}

func TestCostsOfOtherAreasDontWrap(t *testing.T) {
	b := newBed(t, packet.V2)
	b.router(2, border, p2p(1, 1))
	b.remote(2, 8, 2)
	b.remote(2, 9, 3)
	b.remote(2, 10, 4)
	b.run()
	// More than links of 16 bits add up to in any area.
	b.area.graph.Set(vertex{router: 1}, &spf.Node[vertex]{Links: []spf.Link[vertex]{{To: vertex{router: 2}, Cost: Unreachable - 3}}})
	b.area.Run()
	for router, want := range map[packet.ID]uint32{8: Unreachable - 1, 9: Unreachable, 10: Unreachable} {
		if got := b.area.InterArea(router); got != want {
			t.Errorf("router %d costs %d, want %d", router, got, want)
		}
	}
}

func TestWhatChangesNoLinkNeedsNoRun(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		b := newBed(t, v)
		b.router(1, 0, p2p(2, 1), lan(1, 1, 1))
		b.network(1, 1, 1)
		b.router(2, 0, p2p(1, 1))
		b.run()
		if b.area.Dirty() || b.area.Runs() != 1 {
			t.Errorf("%d runs", b.area.Runs())
		}
		for router, list := range b.lsas {
			refreshed := slices.Clone(list)
			for i := range refreshed {
				refreshed[i] = aged(t, v, refreshed[i], 55)
			}
			if changed, _ := b.area.Set(router, refreshed); changed {
				t.Error("the same again is a change")
			}
		}
		if b.area.Run(); b.area.Runs() != 1 {
			t.Errorf("%d runs", b.area.Runs())
		}
		if changed, _ := b.area.Set(1, b.lsas[1][:1]); !changed {
			t.Error("a network that went is none")
		}
	})
}

func TestAnLSAThatCantBeReadIsLeftOut(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		b := newBed(t, v)
		b.router(1, 0, p2p(2, 1))
		b.router(2, border, p2p(1, 1))
		b.remote(2, 70, 1)
		b.run()
		network, remote := packet.V2Network, packet.V2ASBR
		if v == packet.V3 {
			network, remote = packet.V3Network, packet.V3InterAreaRouter
		}
		bad := append(slices.Clone(b.lsas[2]), lsa(t, v, network, 4, 2, []byte{1, 2, 3}), lsa(t, v, remote, 5, 2, []byte{1}))
		_, err := b.area.Set(2, bad)
		if err == nil || strings.Count(err.Error(), "must be") != 2 || !strings.Contains(err.Error(), "0.0.0.4/0.0.0.2") {
			t.Errorf("%v", err)
		}
		b.area.Run()
		b.want("the others count", 2, 1)
		if got := b.area.InterArea(70); got != 2 {
			t.Errorf("cost %d", got)
		}
	})
	a := New(packet.V2, 1)
	if _, err := a.Set(2, []packet.LSA{lsa(t, packet.V2, packet.V2Router, 3, 2, packet.V2RouterLSA{}.Append(nil))}); err == nil || !strings.Contains(err.Error(), "advertising router") {
		t.Errorf("a router LSA of another link state ID: %v", err)
	}
	a = New(packet.V3, 1)
	if _, err := a.Set(2, []packet.LSA{lsa(t, packet.V3, packet.V3Router, 3, 2, []byte{1})}); err == nil || len(a.routers) != 0 {
		t.Errorf("a router LSA of one octet: %v, %v", err, a.routers)
	}
}
