package flooding

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

func (k ownKey) compare(o ownKey) int {
	return cmp.Or(k.Where.compare(o.Where), cmp.Compare(k.Type, o.Type), cmp.Compare(k.ID, o.ID))
}

func (d dying) compare(o dying) int {
	return cmp.Or(d.Where.compare(o.Where), d.Key.Compare(o.Key))
}

func (w Where) compare(o Where) int {
	return cmp.Or(cmp.Compare(w.Scope, o.Scope), cmp.Compare(w.Area, o.Area), cmp.Compare(w.Link, o.Link))
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

// Tick does what is due and gives the packets to send now.
func (m *Machine) Tick(now time.Time) []Send {
	for _, k := range slices.SortedFunc(maps.Keys(m.own), ownKey.compare) {
		m.make(now, k.Where, m.own[k])
	}
	m.databases(func(w Where, db *lsdb.DB) { m.age(now, w, db) })
	m.bury(now)
	for _, id := range m.order {
		l := m.links[id]
		if len(l.acks) > 0 && !now.Before(l.ackAt) {
			m.acknowledge(l, 0, l.acks)
			l.acks = nil
		}
		m.retransmit(now, l)
	}
	out := m.out
	m.out = nil
	return out
}

// age floods what has reached MaxAge here (RFC 2328 section 14).
func (m *Machine) age(now time.Time, w Where, db *lsdb.DB) {
	for _, e := range db.Aged(now) {
		if e.AgeSeconds() < packet.MaxAge { // what came like this was flooded then
			m.flush(now, w, e)
		}
	}
}

// bury removes the LSAs at MaxAge that everybody knows of, when no neighbour is being told what there is
// (RFC 2328 section 14).
func (m *Machine) bury(now time.Time) {
	var dead []dying // most wait for acknowledgments: only those that don't are put in order
	for d := range m.dying {
		if o := m.ownOf(d); o != nil && !o.wrap || m.exchanging(d.Where) || m.waits(d.Where, d.Key) {
			continue // what is still wanted is made soon, and must go on from this number
		}
		dead = append(dead, d)
	}
	slices.SortFunc(dead, dying.compare)
	for _, d := range dead {
		delete(m.dying, d)
		m.DB(d.Where).Remove(d.Key)
		m.seen(d.Where, d.Key)
		if o := m.ownOf(d); o != nil {
			o.wrap, o.due = false, now
			m.make(now, d.Where, o)
		}
	}
}

// ownOf gives the own LSA that is dying; nil when it is another's, or not wanted any more.
func (m *Machine) ownOf(d dying) *own {
	if d.Adv != m.cfg.Router {
		return nil
	}
	return m.own[ownKey{d.Where, d.Type, d.ID}]
}

func (m *Machine) waits(w Where, k packet.Key) (yes bool) {
	m.eachLink(w, func(l *link) {
		for _, p := range l.peers {
			_, waits := p.waits[k]
			yes = yes || waits
		}
	})
	return yes
}

// retransmit sends again what a neighbour has not acknowledged (RFC 2328 section 13.6).
func (m *Machine) retransmit(now time.Time, l *link) {
	for _, router := range slices.Sorted(maps.Keys(l.peers)) {
		p := l.peers[router]
		if len(p.waits) == 0 || now.Before(p.again) {
			continue
		}
		p.again = now.Add(m.cfg.Retransmit)
		var list []*lsdb.Entry
		for _, k := range slices.SortedFunc(maps.Keys(p.waits), packet.Key.Compare) {
			w, _ := m.where(l, k.Type)
			if e := m.DB(w).Get(k); e != nil {
				list = append(list, e)
			} else {
				delete(p.waits, k)
			}
		}
		m.count.Retransmitted += uint64(len(list))
		m.sendLSAs(now, l, router, list)
	}
}

// Wake is when Tick has something to do; zero when nothing will be.
func (m *Machine) Wake() (at time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, o := range m.own {
		earlier(o.next(m.cfg.Refresh))
	}
	m.databases(func(_ Where, db *lsdb.DB) { earlier(db.Wake()) })
	for _, l := range m.links {
		if len(l.acks) > 0 {
			earlier(l.ackAt)
		}
		for _, p := range l.peers {
			if len(p.waits) > 0 {
				earlier(p.again)
			}
		}
	}
	return at
}
