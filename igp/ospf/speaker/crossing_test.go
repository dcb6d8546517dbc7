package speaker

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/packet"
)

// borders is routers whose links are in areas by name; those below 10 are the borders' helpers, too.
func borders(t *testing.T, v packet.Version, areas map[string]packet.ID, pairs ...[2]int) *world {
	return build(t, v, func(id int, c *Config) {
		c.Reoriginate = id < 10
		for i := range c.Links {
			c.Links[i].Area = areas[c.Links[i].Name]
		}
	}, pairs...)
}

// Two helpers join area 1 and the backbone: what one brings into the backbone the other hears there.
func TestTwoHelpersBesideEachOther(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := borders(t, v, map[string]packet.ID{"10-1": 1, "2-1": 1, "1-11": 1}, [2]int{10, 1}, [2]int{2, 1}, [2]int{1, 11}, [2]int{1, 2}, [2]int{2, 14})
		p := mine(v, 1)
		for range 2 {
			n.systems[10].Advertise(n.now, []igp.Advertisement{p})
			n.pass(20 * time.Second)
			// Nothing comes back into the area that the mark is from: its own is there.
			n.want(11, line(p, 10, 1, 0xFFFF+10))
			n.want(14, line(p, 1, 0, 0xFFFF+10)+", leaked", line(p, 2, 0, 0xFFFF)+", leaked")
			n.systems[10].Advertise(n.now, nil)
			n.pass(20 * time.Second)
			n.want(11)
			n.want(14)
		}
		// Without its origin the mark does not live on between the two.
		n.systems[10].Advertise(n.now, []igp.Advertisement{p})
		n.pass(20 * time.Second)
		delete(n.systems, 10)
		n.pass(20 * time.Second)
		n.want(11)
		n.want(14)
	})
}

// A half of an area that lost the other one has the mark of there through the backbone.
func TestAnAreaInTwoPartsIsJoinedByTheBackbone(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := borders(t, v, map[string]packet.ID{"10-1": 1, "2-11": 1}, [2]int{10, 1}, [2]int{1, 2}, [2]int{2, 11})
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(20 * time.Second)
		n.want(11, line(mine(v, 1), 2, 1, 0xFFFF)+", leaked")
	})
}

func TestWhichOfSeveralMarksCrosses(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := borders(t, v, map[string]packet.ID{"10-1": 1, "11-1": 2, "1-14": 3}, [2]int{10, 1}, [2]int{11, 1}, [2]int{1, 14}, [2]int{1, 2}, [2]int{2, 12})
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		far := mine(v, 1)
		far.Proxy = mine(v, 9).Proxy
		n.pass(20 * time.Second)
		// Router 2 of the backbone, which is nearer than router 10, says that the mark came to it from elsewhere.
		s := sent{0, n.systems[2].markType(mark{interArea: true}), 7}
		n.systems[2].originate(n.now, flooding.Where{Scope: packet.ScopeArea}, s.typ, n.systems[2].markID(s), n.systems[2].markBody(far.Prefix, mark{proxy: far.Proxy, interArea: true}))
		// Router 11 has the cost of router 10.
		n.systems[11].Advertise(n.now, []igp.Advertisement{{Prefix: far.Prefix, Proxy: mine(v, 8).Proxy}})
		n.pass(20 * time.Second)
		want := map[netip.Prefix]mark{far.Prefix: {proxy: mine(v, 1).Proxy, interArea: true}}
		for range 100 {
			if got := n.systems[1].wanted(3, n.systems[1].crossings()); !maps.Equal(got, want) {
				t.Fatalf("%v crosses, want %v", got, want)
			}
		}
	})
}

func TestOfARoutersMarksInTwoAreasThatOfTheLowerAreaCrosses(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := build(t, v, func(id int, c *Config) {
			c.Reoriginate = id == 1
			for i := range c.Links {
				c.Links[i].Area = map[string]packet.ID{"10-1": 1, "1-14": 3, "1-10": 2}[c.Links[i].Name]
			}
		}, [2]int{10, 1}, [2]int{1, 10}, [2]int{1, 14})
		m := n.systems[10]
		m.Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(20 * time.Second)
		p := mine(v, 1).Prefix
		s := sent{2, m.markType(mark{}), m.number(p)}
		m.originate(n.now, flooding.Where{Scope: packet.ScopeArea, Area: 2}, s.typ, m.markID(s), m.markBody(p, mark{proxy: mine(v, 9).Proxy}))
		n.pass(20 * time.Second)
		for range 100 {
			if got := n.systems[1].wanted(3, n.systems[1].crossings()); got[p].proxy != mine(v, 1).Proxy || len(got) != 1 {
				t.Fatalf("%v crosses", got)
			}
		}
	})
}
