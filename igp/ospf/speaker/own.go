package speaker

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/packet"
)

// refreshLink makes the own LSAs say what is true of a link now, if that has changed.
func (m *Machine) refreshLink(now time.Time, l *link) {
	if m.stopped || !l.running() {
		return
	}
	said := m.adjacencies(l)
	if l.said != nil && slices.Equal(l.said, said) {
		return
	}
	l.said = append([]adjacency{}, said...)
	m.refreshArea(now, l.cfg.Area)
}

// refreshArea makes the router LSA of an area.
func (m *Machine) refreshArea(now time.Time, id packet.ID) {
	w := flooding.Where{Scope: packet.ScopeArea, Area: id}
	if m.stopped || m.flood.DB(w) == nil {
		return
	}
	m.areas[id].err = nil
	if m.cfg.Version == packet.V2 {
		m.originate(now, w, packet.V2Router, m.cfg.Router, m.v2Router(id))
	} else {
		m.originate(now, w, packet.V3Router, 0, m.v3Router(id))
	}
}

func (m *Machine) originate(now time.Time, w flooding.Where, t packet.LSType, id packet.ID, body []byte) {
	options := uint8(0)
	if m.cfg.Version == packet.V2 {
		options = uint8(m.cfg.options(m.cfg.kind(w.Area)))
	}
	if err := m.flood.Originate(now, w, t, id, options, body); err != nil && w.Scope == packet.ScopeArea {
		m.areas[w.Area].err = err
	}
}

// adjacencies are the full ones of a link, as the router LSA names them: to the neighbour, or to the network
// when the adjacency with its Designated Router is full (RFC 2328 section 12.4.1, RFC 5340 section 4.4.3.2).
func (m *Machine) adjacencies(l *link) (out []adjacency) {
	dr, _ := l.iface.Designated()
	for _, n := range l.iface.Neighbors() {
		switch {
		case !n.Announced():
		case !l.cfg.Broadcast:
			out = append(out, adjacency{packet.LinkPointToPoint, n.Router(), n.Interface})
		case m.cfg.Version == packet.V2 && n.Address.Is4() && packet.IDOf(n.Address) == dr:
			out = append(out, adjacency{kind: packet.LinkTransit, neighbor: dr})
		case m.cfg.Version == packet.V3 && n.Router() == dr:
			out = append(out, adjacency{packet.LinkTransit, dr, n.Interface})
		}
	}
	return out
}

// eachAdjacency calls f for the adjacencies of an area's links, in order.
func (m *Machine) eachAdjacency(area packet.ID, f func(*link, adjacency)) {
	for _, name := range m.order {
		if l := m.links[name]; l.running() && l.cfg.Area == area {
			for _, a := range l.said {
				f(l, a)
			}
		}
	}
}

// v2Router is the router LSA of an area: no stub network, and of all adjacencies the first one alone, with the
// greatest metric. With two, routers without another path would send traffic through this one, whatever the
// metric (RFC 6987 section 1).
func (m *Machine) v2Router(area packet.ID) []byte {
	var r packet.V2RouterLSA
	m.eachAdjacency(area, func(l *link, a adjacency) {
		if len(r.Links) > 0 && !m.cfg.transit {
			return
		}
		r.Links = append(r.Links, packet.V2Link{ID: a.neighbor, Data: packet.IDOf(unzoned(l.state.Address)), Kind: a.kind, Metric: m.cfg.LinkMetric})
	})
	return r.Append(nil)
}

// v3Router is the same of OSPFv3, where the R bit keeps traffic away.
func (m *Machine) v3Router(area packet.ID) []byte {
	r := packet.V3RouterLSA{Options: m.cfg.options(m.cfg.kind(area))}
	m.eachAdjacency(area, func(l *link, a adjacency) {
		r.Links = append(r.Links, packet.V3RouterLink{
			Kind: a.kind, Metric: m.cfg.LinkMetric, Interface: uint32(l.state.Index), NeighborInterface: a.linkID, Neighbor: a.neighbor,
		})
	})
	return r.Append(nil)
}

// linkLSA is the body of the link LSA: the link-local address, no prefixes, and priority 0.
func (m *Machine) linkLSA(l *link) []byte {
	return packet.V3LinkLSA{Options: m.cfg.options(m.cfg.kind(l.cfg.Area)), Address: unzoned(l.state.Address)}.Append(nil)
}

// marking is what this router marks, and the numbers in the link state IDs of the prefixes.
type marking struct {
	numbers map[netip.Prefix]uint32
	last    uint32   // the highest number so far
	free    []uint32 // not used any more; first the one that isn't for the longest time
	sent    map[sent]netip.Prefix
}

// sent is an LSA that marks a prefix.
type sent struct {
	area   packet.ID
	typ    packet.LSType
	number uint32
}

// mark is what an LSA says of a prefix.
type mark struct {
	proxy     netip.Addr
	interArea bool // re-originated: the prefix is marked in another area
}

// refreshMarks makes the LSAs that mark prefixes, one for each prefix and area: FRR's segment routing takes the
// first TLV of an LSA alone.
func (m *Machine) refreshMarks(now time.Time) {
	if m.stopped {
		return
	}
	wanted, crossings := map[sent]netip.Prefix{}, m.crossings()
	for _, area := range m.areaIDs() {
		w := flooding.Where{Scope: packet.ScopeArea, Area: area}
		marks := m.wanted(area, crossings)
		for _, p := range slices.SortedFunc(maps.Keys(marks), netip.Prefix.Compare) { // the same numbers after a restart
			k := marks[p]
			s := sent{area, m.markType(k), m.number(p)}
			wanted[s] = p
			m.originate(now, w, s.typ, m.markID(s), m.markBody(p, k))
		}
	}
	for s, p := range m.marking.sent {
		if wanted[s] != p {
			m.flood.Withdraw(now, flooding.Where{Scope: packet.ScopeArea, Area: s.area}, s.typ, m.markID(s))
		}
	}
	m.marking.sent = wanted
	m.marking.forget()
}

// wanted are the marks of an area.
func (m *Machine) wanted(area packet.ID, crossings map[netip.Prefix]crossing) map[netip.Prefix]mark {
	out := map[netip.Prefix]mark{}
	for p, x := range crossings {
		if x.into(area) {
			out[p] = mark{proxy: x.best.proxy, interArea: true}
		}
	}
	for _, a := range m.ads {
		out[a.Prefix] = mark{proxy: a.Proxy}
	}
	return out
}

// maxLingering bounds the numbers that wait for their LSAs to go, which neighbours have to acknowledge first: a
// link state ID has room for 24 bits (RFC 5250 section 3), and the database not for every LSA that ever was.
const maxLingering = 1 << 10

// number gives the number of a prefix, the same as long as the prefix is marked. A number is used again when the LSA
// that had it is gone everywhere: else the new mark would wait for MinLSInterval, and the old one stay as long.
func (m *Machine) number(p netip.Prefix) uint32 {
	k := &m.marking
	n, ok := k.numbers[p]
	if ok {
		return n
	}
	if len(k.free) > 0 && (len(k.free) > maxLingering || !m.lingers(k.free[0])) {
		n, k.free = k.free[0], k.free[1:]
	} else {
		k.last++
		n = k.last
	}
	k.numbers[p] = n
	return n
}

// lingers reports whether a database has an LSA with a number.
func (m *Machine) lingers(number uint32) bool {
	for id := range m.areas {
		db := m.flood.DB(flooding.Where{Scope: packet.ScopeArea, Area: id})
		for _, k := range []mark{{}, {interArea: true}} {
			s := sent{id, m.markType(k), number}
			if db.Get(packet.Key{Type: s.typ, ID: m.markID(s), Adv: m.cfg.Router}) != nil {
				return true
			}
		}
	}
	return false
}

// forget frees the numbers of prefixes that are marked no more.
func (k *marking) forget() {
	used := make(map[netip.Prefix]bool, len(k.sent))
	for _, p := range k.sent {
		used[p] = true
	}
	freed := len(k.free)
	for p, n := range k.numbers {
		if !used[p] {
			delete(k.numbers, p)
			k.free = append(k.free, n)
		}
	}
	slices.Sort(k.free[freed:])
}

func (m *Machine) markType(k mark) packet.LSType {
	switch {
	case m.cfg.Version == packet.V2:
		return packet.V2OpaqueArea
	case k.interArea:
		return packet.V3EInterAreaPrefix
	}
	return packet.V3EIntraAreaPrefix
}

func (m *Machine) markID(s sent) packet.ID {
	if m.cfg.Version == packet.V2 {
		return packet.OpaqueID(packet.OpaqueExtendedPrefix, s.number)
	}
	return packet.ID(s.number)
}

// markBody is the body of an LSA that marks a prefix.
func (m *Machine) markBody(p netip.Prefix, k mark) []byte {
	address, flags := packet.V2SubSourceRouterAddr, packet.V2SubPrefixFlags
	if m.cfg.Version == packet.V3 {
		address, flags = packet.V3SubSourceRouterAddr, packet.V3SubPrefixFlags
	}
	var subs []packet.TLV
	if m.cfg.Carrier.TLVFlags == 0 {
		subs = append(subs, packet.TLV{Type: flags, Value: packet.WithFlagBit(m.cfg.Carrier.Bit)})
	}
	subs = append(subs, packet.TLV{Type: address, Value: k.proxy.AsSlice()})
	if m.cfg.Version == packet.V2 {
		x := packet.V2ExtendedPrefix{RouteType: packet.RouteIntraArea, Flags: m.cfg.Carrier.TLVFlags, Prefix: p, Subs: subs}
		if k.interArea {
			x.RouteType = packet.RouteInterArea
		}
		return x.Append(nil)
	}
	// NU: a router that takes its routes from Extended LSAs installs none through this one. The P flag isn't for
	// unicast routing.
	x := packet.V3ExtendedPrefix{Type: packet.V3TLVIntraAreaPrefix, Metric: uint32(packet.MaxLinkMetric), Prefix: p, Options: packet.PrefixNU, Subs: subs}
	if k.interArea {
		x.Type = packet.V3TLVInterAreaPrefix
		return x.Append(nil)
	}
	return packet.V3EIntraArea{Referenced: packet.Key{Type: packet.V3Router, Adv: m.cfg.Router}, Prefixes: []packet.V3ExtendedPrefix{x}}.Append(nil)
}
