// Package spf finds which routers of an OSPF area are reachable, and at which cost (RFC 2328 section 16.1, RFC 5340
// section 4.8.1), and those of other areas by what border routers say of them (RFC 2328 section 16.2). The
// algorithm is that of igp/spf.
//
// It is for believing what a router says only while it is there, and for choosing the nearest of several; not for
// forwarding: there are no next hops, and no networks but those that join routers.
//
// What is not read: virtual links, so that the backbone ends where only they go on; Extended router and network
// LSAs of OSPFv3, so that routers which send no others are not seen (RFC 8362 section 6); the host bit of OSPFv2,
// which counts only when all routers of the area know it (RFC 8770).
package spf

import (
	"errors"
	"fmt"

	"pncd/igp/ospf/packet"
	"pncd/igp/spf"
)

// Unreachable is the cost of what can't be reached.
const Unreachable = spf.Unreachable

// vertex is a router or a network with a Designated Router.
type vertex struct {
	network bool
	router  packet.ID // router ID; of a network in OSPFv3 the Designated Router's
	link    packet.ID // of a network: the Designated Router's interface, in OSPFv2 by address
}

// Area is the graph of one area, and what its border routers say of routers elsewhere. It is not safe for
// concurrent use.
type Area struct {
	version packet.Version
	root    packet.ID
	graph   *spf.Graph[vertex]
	routers map[packet.ID]said
	// networks are the network LSAs of OSPFv2 by the Designated Router's address, then by advertising router.
	networks map[packet.ID]map[packet.ID]*spf.Node[vertex]
}

// New makes an area as the root sees it.
func New(v packet.Version, root packet.ID) *Area {
	return &Area{
		version: v, root: root, graph: spf.New(vertex{router: root}),
		routers: map[packet.ID]said{}, networks: map[packet.ID]map[packet.ID]*spf.Node[vertex]{},
	}
}

// Set says what LSAs of the area a router originates, all of them; none when it says nothing any more. LSAs of
// other routers or at MaxAge don't count: the age in their headers has to be that of now. It reports whether Run
// is needed before costs are right again. An LSA that can't be read is left out as a whole; the error names each.
func (a *Area) Set(router packet.ID, lsas []packet.LSA) (changed bool, err error) {
	now, err := read(a.version, router, lsas)
	before := a.routers[router]
	if now.empty() {
		delete(a.routers, router)
	} else {
		a.routers[router] = now
	}
	changed = a.graph.Set(vertex{router: router}, now.node)
	if a.version == packet.V3 {
		for link := range before.networks {
			if now.networks[link] == nil {
				changed = a.graph.Set(vertex{true, router, link}, nil) || changed
			}
		}
		for link, n := range now.networks {
			changed = a.graph.Set(vertex{true, router, link}, n) || changed
		}
		return changed, err
	}
	return a.setNetworks(router, before, now) || changed, err
}

// setNetworks brings the networks of OSPFv2 up to date with what a router said before and says now.
func (a *Area) setNetworks(router packet.ID, before, now said) (changed bool) {
	addresses := map[packet.ID]bool{}
	for _, s := range []said{before, now} {
		for address := range s.networks {
			addresses[address] = true
		}
	}
	for address := range addresses {
		of := a.networks[address]
		if n := now.networks[address]; n != nil {
			if of == nil {
				of = map[packet.ID]*spf.Node[vertex]{}
				a.networks[address] = of
			}
			of[router] = n
		} else if delete(of, router); len(of) == 0 {
			delete(a.networks, address)
		}
		changed = a.graph.Set(vertex{network: true, link: address}, a.network(address)) || changed
	}
	return changed
}

// network gives the network LSA that counts for a Designated Router's address, nil when there is none. A router LSA
// of OSPFv2 names a network by that address alone, so when a router took another ID, or an address went to another
// router, there may be LSAs of several advertising routers: then the one counts whose router has the address,
// as its router LSA says, and without such a router, or with two, that of the highest ID.
func (a *Area) network(address packet.ID) (n *spf.Node[vertex]) {
	var best packet.ID
	has := false
	for router, candidate := range a.networks[address] {
		owner := a.routers[router].designated[address]
		if n == nil || owner && !has || owner == has && router > best {
			n, best, has = candidate, router, owner
		}
	}
	return n
}

// Run computes the costs if something changed.
func (a *Area) Run() { a.graph.Run() }

// Dirty reports whether Run would compute anew.
func (a *Area) Dirty() bool { return a.graph.Dirty() }

// Runs counts the computations.
func (a *Area) Runs() uint64 { return a.graph.Runs() }

// Cost gives the cost of the path to a router of the area, as of the last Run; Unreachable when there is none.
func (a *Area) Cost(router packet.ID) uint32 { return a.graph.Cost(vertex{router: router}) }

// InterArea gives the cost of the path to a router of another area through the border router that is best for it
// (RFC 2328 section 16.2), as of the last Run; Unreachable when no border router that is reachable knows it. Only
// AS boundary routers are known so.
func (a *Area) InterArea(router packet.ID) uint32 {
	best := Unreachable
	for border, s := range a.routers {
		if metric, ok := s.remote[router]; ok {
			best = min(best, a.through(border, metric))
		}
	}
	return best
}

// through gives the cost of what a border router, but not the root, says to be so far from it.
func (a *Area) through(border packet.ID, metric uint32) uint32 {
	cost := a.Cost(border)
	if border == a.root || !a.routers[border].border || cost >= Unreachable-metric {
		return Unreachable
	}
	return cost + metric
}

// unreadable names the LSA that an error is about.
func unreadable(k packet.Key, err error) error { return fmt.Errorf("LSA %s: %w", k, err) }

var errRouterID = errors.New("link state ID: must be the advertising router (RFC 2328 section 12.1.4)")
