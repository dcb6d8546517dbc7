package flooding

import (
	"cmp"
	"maps"
	"slices"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// Where names a database: that of a link, of an area or of the domain.
type Where struct {
	Scope packet.Scope
	Area  packet.ID
	Link  InterfaceID
}

func (w Where) compare(o Where) int {
	return cmp.Or(cmp.Compare(w.Scope, o.Scope), cmp.Compare(w.Area, o.Area), cmp.Compare(w.Link, o.Link))
}

// DB gives a database; nil when there is no such area or interface.
func (m *Machine) DB(w Where) *lsdb.DB {
	switch w.Scope {
	case packet.ScopeLink:
		if l := m.links[w.Link]; l != nil {
			return l.db
		}
	case packet.ScopeArea:
		if a := m.areas[w.Area]; a != nil {
			return a.db
		}
	case packet.ScopeAS:
		return m.domain
	}
	return nil
}

// where gives the database that an LSA on a link belongs to, and false when nothing there takes it
// (RFC 2328 section 13 steps 2 and 3, RFC 5250 section 3.1, RFC 3101 section 2.2, RFC 5340 section 4.5.1).
func (m *Machine) where(l *link, t packet.LSType) (Where, bool) {
	switch s := t.Scope(m.cfg.Version); s {
	case packet.ScopeLink:
		return Where{Scope: s, Link: l.id}, true
	case packet.ScopeArea:
		return Where{Scope: s, Area: l.area.ID}, !t.NSSA(m.cfg.Version) || l.area.NSSA
	case packet.ScopeAS:
		return Where{Scope: s}, !l.area.Stub && !l.area.NSSA
	}
	return Where{}, false
}

// WhereOf gives the database that LSAs of a type belong to on an interface, and false when nothing there takes
// them.
func (m *Machine) WhereOf(id InterfaceID, t packet.LSType) (Where, bool) {
	if l := m.links[id]; l != nil {
		return m.where(l, t)
	}
	return Where{}, false
}

// Reaching lists the databases whose LSAs go out on an interface: that of the link, of its area, and of the
// domain unless it is a stub area or an NSSA.
func (m *Machine) Reaching(id InterfaceID) (all []Where) {
	l := m.links[id]
	if l == nil {
		return nil
	}
	all = []Where{{Scope: packet.ScopeLink, Link: id}, {Scope: packet.ScopeArea, Area: l.area.ID}}
	if w := (Where{Scope: packet.ScopeAS}); w.reaches(l) {
		all = append(all, w)
	}
	return all
}

// reaches reports whether LSAs of a database go out on a link.
func (w Where) reaches(l *link) bool {
	switch w.Scope {
	case packet.ScopeLink:
		return l.id == w.Link
	case packet.ScopeArea:
		return l.area.ID == w.Area
	}
	return !l.area.Stub && !l.area.NSSA
}

// entry gives an LSA as neighbours on a link see it; nil when it isn't there, or doesn't go out there any more.
func (m *Machine) entry(l *link, k packet.Key) *lsdb.Entry {
	w, ok := m.where(l, k.Type)
	if !ok {
		return nil
	}
	return m.DB(w).Get(k)
}

// eachLink calls f for the links that LSAs of a database go out on, in order.
func (m *Machine) eachLink(w Where, f func(*link)) {
	for _, id := range m.order {
		if l := m.links[id]; w.reaches(l) {
			f(l)
		}
	}
}

// exchanging reports whether a neighbour that sees the database is in state Exchange or Loading.
func (m *Machine) exchanging(w Where) (yes bool) {
	m.eachLink(w, func(l *link) {
		for _, p := range l.peers {
			yes = yes || p.Flooding() && !p.Full()
		}
	})
	return yes
}

// databases calls f for every database, in order.
func (m *Machine) databases(f func(Where, *lsdb.DB)) {
	for _, id := range m.order {
		f(Where{Scope: packet.ScopeLink, Link: id}, m.links[id].db)
	}
	for _, id := range slices.Sorted(maps.Keys(m.areas)) {
		f(Where{Scope: packet.ScopeArea, Area: id}, m.areas[id].db)
	}
	f(Where{Scope: packet.ScopeAS}, m.domain)
}
