package spf

import (
	"errors"

	"pncd/igp/ospf/packet"
	"pncd/igp/spf"
)

// said is what one router says that is of interest here.
type said struct {
	node   *spf.Node[vertex] // nil: no router LSA
	border bool              // an area border router
	// networks are those that it is the Designated Router of, by the link state ID of their LSAs: in OSPFv2 its
	// address there, in OSPFv3 its interface ID.
	networks map[packet.ID]*spf.Node[vertex]
	// designated are its addresses as a Designated Router, as its router LSA says (OSPFv2).
	designated map[packet.ID]bool
	remote     map[packet.ID]uint32 // routers of other areas, with the metric
}

func (s said) empty() bool { return s.node == nil && len(s.networks) == 0 && len(s.remote) == 0 }

// reader collects what a router says.
type reader struct {
	said
	version packet.Version
	router  packet.ID
	first   packet.ID // the lowest link state ID of its router LSAs (OSPFv3)
}

// read takes what a router says from its LSAs.
func read(v packet.Version, router packet.ID, lsas []packet.LSA) (said, error) {
	r := reader{version: v, router: router}
	r.networks, r.designated, r.remote = map[packet.ID]*spf.Node[vertex]{}, map[packet.ID]bool{}, map[packet.ID]uint32{}
	var errs []error
	for _, l := range lsas {
		if l.Adv != router || l.AgeSeconds() == packet.MaxAge {
			continue
		}
		if err := r.add(l); err != nil {
			errs = append(errs, unreadable(l.Key, err))
		}
	}
	return r.said, errors.Join(errs...)
}

// add takes one LSA.
func (r *reader) add(l packet.LSA) error {
	if r.version == packet.V3 {
		switch l.Type {
		case packet.V3Router:
			return r.addV3Router(l)
		case packet.V3Network:
			n, err := packet.ParseV3Network(l.Body())
			return r.addNetwork(l.ID, n.Routers, err)
		case packet.V3InterAreaRouter:
			metric, router, err := packet.ParseV3InterAreaRouter(l.Body())
			return r.addRemote(router, metric, err)
		}
		return nil
	}
	switch l.Type {
	case packet.V2Router:
		return r.addV2Router(l)
	case packet.V2Network:
		n, err := packet.ParseV2Network(l.Body())
		return r.addNetwork(l.ID, n.Routers, err)
	case packet.V2ASBR:
		_, metric, err := packet.ParseV2Summary(l.Body())
		return r.addRemote(l.ID, metric, err)
	}
	return nil
}

// addV2Router takes a router LSA of OSPFv2. A metric of MaxLinkMetric is one as any other (RFC 6987 section 2).
func (r *reader) addV2Router(l packet.LSA) error {
	if l.ID != l.Adv {
		return errRouterID
	}
	body, err := packet.ParseV2Router(l.Body())
	if err != nil {
		return err
	}
	r.node = &spf.Node[vertex]{}
	r.border = body.Flags&packet.RouterB != 0
	for _, x := range body.Links {
		switch x.Kind {
		case packet.LinkPointToPoint:
			r.link(vertex{router: x.ID}, x.Metric)
		case packet.LinkTransit:
			r.link(vertex{network: true, link: x.ID}, x.Metric)
			if x.Data == x.ID {
				r.designated[x.ID] = true
			}
		}
	}
	return nil
}

// addV3Router takes a router LSA of OSPFv3. The links of all of a router's count; flags and options, if they differ,
// are those of the lowest link state ID (RFC 5340 section A.4.3). Without the R bit or the V6 bit the router is
// reached, but nothing through it (RFC 5340 section 4.8.1 with erratum 2078).
func (r *reader) addV3Router(l packet.LSA) error {
	body, err := packet.ParseV3Router(l.Body())
	if err != nil {
		return err
	}
	if r.node == nil || l.ID < r.first {
		if r.node == nil {
			r.node = &spf.Node[vertex]{}
		}
		const transit = packet.V3OptR | packet.V3OptV6
		r.first, r.node.Overload, r.border = l.ID, body.Options&transit != transit, body.Flags&packet.RouterB != 0
	}
	for _, x := range body.Links {
		switch x.Kind {
		case packet.LinkPointToPoint:
			r.link(vertex{router: x.Neighbor}, x.Metric)
		case packet.LinkTransit:
			r.link(vertex{network: true, router: x.Neighbor, link: packet.ID(x.NeighborInterface)}, x.Metric)
		}
	}
	return nil
}

func (r *reader) link(to vertex, metric uint16) {
	r.node.Links = append(r.node.Links, spf.Link[vertex]{To: to, Cost: uint32(metric)})
}

// addNetwork takes a network LSA: from a network to its routers costs nothing (RFC 2328 section 16.1).
func (r *reader) addNetwork(id packet.ID, routers []packet.ID, err error) error {
	if err != nil {
		return err
	}
	n := &spf.Node[vertex]{Links: make([]spf.Link[vertex], 0, len(routers))}
	for _, to := range routers {
		n.Links = append(n.Links, spf.Link[vertex]{To: vertex{router: to}})
	}
	r.networks[id] = n
	return nil
}

// addRemote takes what is said of a router of another area; LSInfinity says that it is not reachable. Of several
// LSAs of OSPFv3 about the same router the best counts.
func (r *reader) addRemote(router packet.ID, metric uint32, err error) error {
	if err != nil || metric == packet.MaxMetric {
		return err
	}
	if old, ok := r.remote[router]; !ok || metric < old {
		r.remote[router] = metric
	}
	return nil
}
