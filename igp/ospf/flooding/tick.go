package flooding

import (
	"math"
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// Tick does what is due and gives the packets to send now.
func (m *Machine) Tick(now time.Time) []Send {
	m.now = now
	for _, k := range m.plan.Take(now, math.MaxInt) {
		m.make(now, k.Where, m.own[k])
	}
	m.databases(func(w Where, db *lsdb.DB) { m.age(now, w, db) })
	m.bury(now)
	for _, id := range m.order {
		l := m.links[id]
		m.sendQueue(now, l)
		if len(l.acks) > 0 && !now.Before(l.ackAt) {
			m.sendAcks(l)
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

// Wake is when Tick has something to do; zero when nothing will be. What waits only for a Tick is due at the time
// that was passed in last.
func (m *Machine) Wake() (at time.Time) {
	if len(m.out) > 0 || m.removable() {
		return m.now
	}
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	earlier(m.plan.Next())
	m.databases(func(_ Where, db *lsdb.DB) { earlier(db.Wake()) })
	for _, l := range m.links {
		if len(l.acks) > 0 {
			earlier(l.ackAt)
		}
		if len(l.queue) > 0 {
			earlier(later(m.now, l.next))
		}
		for _, p := range l.peers {
			earlier(p.next(m.cfg.Burst))
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
