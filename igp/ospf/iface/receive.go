package iface

import (
	"net/netip"
	"slices"
	"time"

	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// Receive takes a packet of the network. Hellos, descriptions and requests are handled; updates and
// acknowledgments are for the flooding machine. It gives the neighbour that the packet came from, and the
// reason when it was dropped.
func (m *Machine) Receive(now time.Time, from, to netip.Addr, p *packet.Packet) (*Neighbor, Reason) {
	// The network is this one: a zone says nothing more, and would make equal addresses differ.
	n, why := m.receive(now, from.WithZone(""), to.WithZone(""), p)
	if why != ReasonNone {
		m.dropped[why]++
	}
	return n, why
}

func (m *Machine) receive(now time.Time, from, to netip.Addr, p *packet.Packet) (*Neighbor, Reason) {
	if why := m.check(from, to, p); why != ReasonNone {
		return nil, why
	}
	if h, ok := p.Body.(*packet.Hello); ok {
		return m.receiveHello(now, from, p.Router, h)
	}
	n := m.neighbors[p.Router]
	if n == nil || m.cfg.Broadcast && n.Address != from {
		return nil, ReasonNoNeighbor
	}
	switch p.Body.(type) {
	case *packet.Description, *packet.Request:
		if n.Receive(now, p.Body) != neighbor.ReasonNone {
			return n, ReasonNeighbor
		}
		m.elect(now)
	}
	return n, ReasonNone
}

// check applies RFC 2328 section 8.2 and RFC 5340 section 4.2.2.
func (m *Machine) check(from, to netip.Addr, p *packet.Packet) Reason {
	v2 := m.cfg.Version == packet.V2
	switch {
	case m.state == Down:
		return ReasonDown
	case p.Version != m.cfg.Version:
		return ReasonVersion
	case p.Area != m.cfg.Area:
		return ReasonArea
	case !v2 && p.Instance != m.cfg.Instance:
		return ReasonInstance
	case p.Router == m.cfg.Router, p.Router == 0: // 0.0.0.0 stands for nobody, also where the Designated Router is named
		return ReasonRouterID
	case m.cfg.Broadcast && from == m.cfg.Prefix.Addr(), m.cfg.Broadcast && v2 && !m.cfg.Prefix.Contains(from):
		return ReasonSource
	case to == AllDRouters(m.cfg.Version):
		return ReasonNotForUs
	}
	return ReasonNone
}

// checkHello applies RFC 2328 section 10.5 and RFC 3101 section 2.4.
func (m *Machine) checkHello(h *packet.Hello) Reason {
	differ := h.Options ^ m.cfg.Options
	switch {
	case m.cfg.Broadcast && m.cfg.Version == packet.V2 && h.Mask != m.cfg.mask():
		return ReasonMask
	case time.Duration(h.Interval)*time.Second != m.cfg.Hello:
		return ReasonInterval
	case time.Duration(h.Dead)*time.Second != m.cfg.Dead:
		return ReasonDead
	case differ&packet.OptionE != 0:
		return ReasonEBit
	case differ&packet.OptionN != 0:
		return ReasonNBit
	}
	return ReasonNone
}

func (m *Machine) receiveHello(now time.Time, from netip.Addr, router packet.ID, h *packet.Hello) (*Neighbor, Reason) {
	if why := m.checkHello(h); why != ReasonNone {
		return nil, why
	}
	for _, other := range m.Neighbors() { // a router that came back with another ID
		if other.Address == from && other.Router() != router {
			other.Kill(now, neighbor.ReasonKilled)
			m.forget(other)
		}
	}
	n := m.neighbors[router]
	if n == nil {
		if len(m.neighbors) >= m.cfg.neighborsFit() {
			return nil, ReasonTooMany
		}
		n = &Neighbor{Machine: neighbor.New(m.cfg.Config, router, m.db), m: m}
		n.AdjOK(now, !m.cfg.Broadcast)
		m.neighbors[router] = n
	}
	n.Address, n.Interface, n.self = from, h.Interface, router
	if n.Helping().IsZero() { // one that restarts stays Designated Router, whatever it knows (RFC 3623 section 3)
		n.Priority, n.DR, n.BDR = h.Priority, h.DR, h.BDR
	}
	if m.cfg.Version == packet.V2 && from.Is4() {
		n.self = packet.IDOf(from)
	}
	n.Hello(now)
	if !slices.Contains(h.Neighbors, m.cfg.Router) {
		n.OneWay(now)
	} else {
		n.TwoWay(now)
	}
	m.elect(now)
	return n, ReasonNone
}

// elect forgets neighbours that are down, computes Designated Router and Backup as RFC 2328 section 9.4 does for
// a router that can be neither, and decides with whom an adjacency is wanted (section 10.4).
func (m *Machine) elect(now time.Time) {
	for _, n := range m.Neighbors() {
		if s, _ := n.State(); s == neighbor.Down {
			m.forget(n)
		}
	}
	if m.state != DROther {
		return
	}
	var dr, bdr, any *Neighbor // any: the Backup when nobody says to be it
	for _, n := range m.Neighbors() {
		if s, _ := n.State(); s < neighbor.TwoWay || n.Priority == 0 {
			continue
		}
		switch {
		case n.DR == n.self:
			dr = better(dr, n)
		case n.BDR == n.self:
			bdr = better(bdr, n)
		default:
			any = better(any, n)
		}
	}
	if bdr == nil {
		bdr = any
	}
	if dr == nil {
		dr = bdr
	}
	m.dr, m.bdr = dr.named(), bdr.named()
	for _, n := range m.Neighbors() {
		n.AdjOK(now, n.Designated())
	}
}

// better is the one with the higher priority, then the higher router ID.
func better(a, b *Neighbor) *Neighbor {
	if a == nil || b.Priority > a.Priority || b.Priority == a.Priority && b.Router() > a.Router() {
		return b
	}
	return a
}

func (n *Neighbor) named() packet.ID {
	if n == nil {
		return 0
	}
	return n.self
}
