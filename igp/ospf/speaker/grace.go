package speaker

import (
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// grace takes a grace LSA that came, changed or went: the neighbour that made it wants to be helped through a
// restart (RFC 3623 section 3, RFC 5187 section 3).
func (m *Machine) grace(now time.Time, l *link, k packet.Key) {
	if !l.running() {
		return
	}
	n := l.iface.Neighbor(k.Adv)
	if n == nil {
		return
	}
	e := m.flood.DB(flooding.Where{Scope: packet.ScopeLink, Link: l.id}).Get(k)
	if e == nil || e.Age(now) >= packet.MaxAge {
		n.HelpEnds(now) // it has restarted
		m.take(now, l)
		return
	}
	g, err := packet.ParseGrace(m.cfg.Version, e.Body())
	if err != nil {
		m.graceErrors++
		return
	}
	n.Help(now, neighbor.Grace{
		Period: g.Period, Age: time.Duration(e.Age(now)) * time.Second,
		Changed: m.flood.Changed(l.id, k.Adv), Allowed: !m.cfg.NoHelp,
	})
}

// endHelp ends what grace began on the links that a changed LSA reaches: the topology is not what the
// restarting router takes it for (RFC 3623 section 3.2).
func (m *Machine) endHelp(now time.Time, w flooding.Where, k packet.Key) {
	if !k.Type.Topology(m.cfg.Version) {
		return
	}
	for _, name := range m.order {
		l := m.links[name]
		if !l.running() || w.Scope == packet.ScopeArea && l.cfg.Area != w.Area || w.Scope == packet.ScopeAS && m.cfg.kind(l.cfg.Area) != Normal {
			continue
		}
		for _, n := range l.iface.Neighbors() {
			if k.Adv != n.Router() {
				n.HelpEnds(now)
			}
		}
		m.take(now, l) // who is silent goes now, and not with the next packet
	}
}
