package speaker

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/origin"
	"pncd/igp/isis/packet"
)

// refresh makes the own LSPs say what is true now.
func (m *Machine) refresh(now time.Time) {
	if m.stopped {
		return
	}
	for _, l := range m.levels {
		m.refreshLevel(now, l)
	}
}

func (m *Machine) refreshLevel(now time.Time, l *level) {
	var items []origin.Item
	for _, name := range m.order {
		items = append(items, m.links(m.circuits[name], l.n)...)
	}
	for _, ad := range m.ads {
		items = append(items, m.prefix(ad)...)
	}
	changed, left, err := l.pack.Update(m.head(), items)
	l.notFitting, l.packErr = len(left), err
	// IS type: level 1 alone has 1. Overload: nothing goes through this system, ever.
	flags := uint8(packet.LSPOverload | 1)
	if m.cfg.Levels&packet.Level2 != 0 {
		flags = packet.LSPOverload | packet.LSPISType
	}
	if m.cfg.transit {
		flags &^= packet.LSPOverload
	}
	for _, f := range changed {
		id := m.cfg.System.Node(0).Fragment(f.Number)
		if f.Purge {
			if err := l.flood.Withdraw(now, id); err != nil {
				l.packErr = err
			}
			continue
		}
		l.flood.Originate(now, id, flags, f.TLVs)
	}
}

// head is what the first fragment holds besides items.
func (m *Machine) head() packet.TLVs {
	tlvs := packet.TLVs{packet.AreasTLV(m.cfg.Areas...)}
	var v4, v6 []netip.Addr
	for _, name := range m.order {
		if c := m.circuits[name]; c.running() {
			v4, v6 = append(v4, c.link.IPv4...), append(v6, c.link.IPv6...)
		}
	}
	var nlpids []byte
	if len(v4) > 0 {
		nlpids = append(nlpids, packet.NLPIDIPv4)
	}
	if len(v6) > 0 {
		nlpids = append(nlpids, packet.NLPIDIPv6)
	}
	if len(nlpids) > 0 {
		tlvs = append(tlvs, packet.TLV{Type: packet.TLVProtocolsSupported, Value: nlpids})
	}
	if m.cfg.Hostname != "" {
		tlvs = append(tlvs, packet.TLV{Type: packet.TLVDynamicHostname, Value: []byte(m.cfg.Hostname)})
	}
	if m.cfg.MultiTopology {
		tlvs = append(tlvs, packet.TopologiesTLV(packet.Topology{ID: packet.MTStandard}, packet.Topology{ID: packet.MTIPv6, Overload: !m.cfg.transit}))
	}
	return tlvs
}

// links are the adjacencies of a circuit as reachability: to the neighbour, or to the LAN's pseudonode.
func (m *Machine) links(c *circuit, level uint8) (items []origin.Item) {
	add := func(to packet.NodeID, six bool) {
		body, err := packet.ISReach{Neighbor: to, Metric: m.cfg.LinkMetric}.Append(nil)
		if err != nil {
			return // the metric is checked
		}
		key := c.cfg.Name + " " + to.String()
		items = append(items, origin.Item{Key: "is " + key, Type: packet.TLVExtendedISReach, Body: body})
		if six {
			items = append(items, origin.Item{Key: "is6 " + key, Type: packet.TLVMTISReach, Lead: string(packet.AppendMT(nil, packet.MTIPv6)), Body: body})
		}
	}
	if !c.running() {
		return nil
	}
	if c.cfg.LAN {
		if id := c.designated[level]; id != (packet.NodeID{}) {
			add(id, m.cfg.MultiTopology)
		}
		return items
	}
	for _, n := range c.neighbors(level) {
		if n.State == adjacency.Up && !n.Suppressed {
			six := slices.ContainsFunc(n.Topologies, func(t packet.Topology) bool { return t.ID == packet.MTIPv6 })
			add(n.System.Node(0), m.cfg.MultiTopology && six)
		}
	}
	return items
}

// prefix is a sender prefix with the P flag and the proxy's address.
func (m *Machine) prefix(ad igp.Advertisement) []origin.Item {
	router := packet.TLV{Type: packet.SubTLVIPv4SourceRouterID, Value: ad.Proxy.AsSlice()}
	if ad.Proxy.Is6() {
		router.Type = packet.SubTLVIPv6SourceRouterID
	}
	p := packet.Prefix{Prefix: ad.Prefix, Metric: m.cfg.PrefixMetric, SubTLVs: packet.TLVs{
		{Type: packet.SubTLVPrefixAttributes, Value: packet.PrefixFlags{}.With(m.cfg.Flag)}, router,
	}}
	body, err := p.Append(nil)
	if err != nil {
		return nil // who advertises has checked the prefix
	}
	it := origin.Item{Key: "prefix " + ad.Prefix.String(), Type: packet.TLVExtendedIPReach, Body: body}
	if ad.Prefix.Addr().Is6() {
		it.Type = packet.TLVIPv6Reach
		if m.cfg.MultiTopology {
			it.Type, it.Lead = packet.TLVMTIPv6Reach, string(packet.AppendMT(nil, packet.MTIPv6))
		}
	}
	return []origin.Item{it}
}

// nodeLSPs gives the LSPs of a node that live, in order.
func (l *level) nodeLSPs(id packet.NodeID) (lsps []packet.LSP) {
	for e := range l.flood.DB().Range(id.Fragment(0), id.Fragment(0xFF)) {
		if !e.Purged {
			lsps = append(lsps, e.LSP())
		}
	}
	slices.SortFunc(lsps, func(a, b packet.LSP) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return lsps
}
