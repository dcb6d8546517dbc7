package speaker

import (
	"cmp"
	"net/netip"
	"slices"

	"pncd/igp/ospf/packet"
)

// crossing is a prefix that is marked in some areas, as it goes into the others.
type crossing struct {
	best candidate
	home []packet.ID // areas with a router that marks it first: they need no other mark
}

// candidate is a mark that may cross.
type candidate struct {
	area, router packet.ID
	leaked       bool // it crossed a border before
	cost         uint32
	proxy        netip.Addr
}

// compare puts the mark first that goes: one of the area's own before one that crossed a border, as with prefixes
// (RFC 2328 sections 11 and 16.2), then the one with the least cost, then the lowest router ID.
func (c candidate) compare(o candidate) int {
	far := func(c candidate) int {
		if c.leaked {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(far(c), far(o)), cmp.Compare(c.cost, o.cost), cmp.Compare(c.router, o.router), cmp.Compare(c.area, o.area))
}

// crossings are the marks that cross borders (RFC 2328 section 12.4.3 does so with prefixes): what a router of an
// area marks goes into every other area, and what crossed into the backbone goes on into the others. A loop is not
// possible: from an area that is not the backbone nothing comes back that crossed a border.
func (m *Machine) crossings() map[netip.Prefix]crossing {
	all := map[netip.Prefix]crossing{}
	if !m.cfg.Reoriginate {
		return all
	}
	for _, id := range m.areaIDs() {
		for router, v := range m.areas[id].Told() {
			if !v.P || !v.Proxy.IsValid() || v.Leaked && id != packet.Backbone {
				continue
			}
			c := candidate{id, router, v.Leaked, v.Cost, v.Proxy}
			x, there := all[v.Prefix]
			if !there || c.compare(x.best) < 0 {
				x.best = c
			}
			if !v.Leaked && !slices.Contains(x.home, id) {
				x.home = append(x.home, id)
			}
			all[v.Prefix] = x
		}
	}
	return all
}

// into reports whether the mark goes into an area.
func (x crossing) into(area packet.ID) bool {
	return area != x.best.area && !slices.Contains(x.home, area)
}
