package speaker

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/packet"
)

// Reconfigure changes the router while it runs. Adjacencies stay, except those of links that are taken away or
// whose area, type, intervals or instance change: these begin anew. What can't change is an error, and then
// nothing has.
func (m *Machine) Reconfigure(now time.Time, next Config) error {
	if err := next.Check(); err != nil {
		return err
	}
	next = next.WithDefaults()
	next.transit = m.cfg.transit
	if what := m.fixed(next); what != "" {
		return fmt.Errorf("%s: %s can't change while the router runs", m.cfg.Version, what)
	}
	old := m.cfg
	m.cfg = next
	m.flood.Retime(next.flooding())
	m.setLinks(now, next.Links)
	m.restart(now, func(l *link) bool { return old.kind(l.cfg.Area) != next.kind(l.cfg.Area) })
	for _, id := range m.areaIDs() {
		m.areas[id].Retime(next.SPF)
		m.refreshArea(now, id)
	}
	m.refreshMarks(now)
	return nil
}

// fixed says what of a configuration can't replace that of the running router.
func (m *Machine) fixed(next Config) string {
	switch old := m.cfg; {
	case old.Version != next.Version:
		return "the version"
	case old.Router != next.Router:
		return "the router ID"
	case old.Carrier != next.Carrier:
		return "the carrier of the P flag"
	case old.MaxLSAs != next.MaxLSAs:
		return "the databases' bound"
	}
	return ""
}

// setLinks takes away links that are not wanted any more, with their adjacencies, changes those that stay, and
// adds new ones, whose interfaces are down.
func (m *Machine) setLinks(now time.Time, wanted []LinkConfig) {
	for _, name := range slices.Clone(m.order) {
		if !slices.ContainsFunc(wanted, func(x LinkConfig) bool { return x.Name == name }) {
			m.part(now, m.links[name])
			m.down(now, m.links[name])
			delete(m.links, name)
			m.order = slices.DeleteFunc(m.order, func(n string) bool { return n == name })
		}
	}
	for _, x := range wanted {
		x = x.withDefaults()
		l := m.links[x.Name]
		if l == nil {
			m.links[x.Name] = &link{cfg: x, id: m.freeNumber()}
			m.order = append(m.order, x.Name)
			continue
		}
		was := l.cfg
		switch {
		case !l.running() || reflect.DeepEqual(was, x):
			l.cfg = x
		case was.shape() != x.shape():
			if was.Area != x.Area {
				m.part(now, l)
			}
			m.down(now, l) // as it was
			l.cfg = x
			m.up(now, l)
		default:
			l.cfg = x
			l.iface.Reconfigure(m.ifaceConfig(l))
			m.attach(l)
		}
	}
	slices.Sort(m.order)
}

// part tells the neighbours of a link that leaves its area, once and without waiting, that this router leaves: what
// it said in an area that it has no other link to, or on the link, is flushed, and the last hello names nobody.
func (m *Machine) part(now time.Time, l *link) {
	if !l.running() {
		return
	}
	var flushed []packet.LSA
	for _, w := range m.flood.Reaching(l.id) {
		if w.Scope == packet.ScopeAS || w.Scope == packet.ScopeArea && m.linksIn(w.Area) > 1 {
			continue
		}
		for e := range m.flood.DB(w).ByRouter(m.cfg.Router) {
			if lsa, err := packet.ParseLSA(m.cfg.Version, e.LSA.Append(nil, packet.MaxAge)); err == nil {
				flushed = append(flushed, lsa)
			}
		}
	}
	c := m.ifaceConfig(l)
	for _, u := range packet.Updates(flushed, c.Room()) {
		m.parting = l.seal(m, now, m.parting, l.iface.Flood(), u)
	}
	m.parting = l.seal(m, now, m.parting, iface.AllSPFRouters(m.cfg.Version), l.iface.Leaving())
}

// linksIn counts the links of an area that are in use.
func (m *Machine) linksIn(area packet.ID) (n int) {
	for _, l := range m.links {
		if l.running() && l.cfg.Area == area {
			n++
		}
	}
	return n
}

// shape is what of a link can't change while adjacencies are up.
type shape struct {
	area        packet.ID
	instance    uint8
	broadcast   bool
	hello, dead time.Duration
}

func (x LinkConfig) shape() shape { return shape{x.Area, x.Instance, x.Broadcast, x.Hello, x.Dead} }

// restart begins the adjacencies of some links anew. They go down together: an area whose kind changed may keep
// nothing that it took before, and its database goes with its last link.
func (m *Machine) restart(now time.Time, those func(*link) bool) {
	var anew []*link
	for _, name := range m.order {
		if l := m.links[name]; l.running() && those(l) {
			m.down(now, l)
			anew = append(anew, l)
		}
	}
	for _, l := range anew {
		m.up(now, l)
	}
}

// freeNumber is the least number that no link has.
func (m *Machine) freeNumber() flooding.InterfaceID {
	for n := flooding.InterfaceID(1); ; n++ {
		if m.byID(n) == nil {
			return n
		}
	}
}
