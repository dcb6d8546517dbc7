package learner

import (
	"time"

	"pncd/igp/ospf/learn"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
)

// area is the mirror of the database of one area, and what is learned from it.
type area struct {
	db    *lsdb.DB
	learn *learn.Area
	seen  map[packet.Key]uint64    // the connection that told the LSA last
	going map[packet.Key]time.Time // when a deletion takes effect
}

func (m *Machine) newArea(id packet.ID) *area {
	return &area{db: lsdb.New(m.cfg.MaxLSAs), learn: m.newLearn(id), seen: map[packet.Key]uint64{}, going: map[packet.Key]time.Time{}}
}

// change takes what the daemon tells of an LSA.
func (m *Machine) change(now time.Time, c message.LSAChange) {
	switch c.LSA.Type {
	case packet.V2Router, packet.V2Network, packet.V2Summary, packet.V2OpaqueArea:
	default:
		m.counters.Dropped[NotAsked]++
		return
	}
	if !c.LSA.ChecksumOK() {
		m.counters.Dropped[BadChecksum]++
		return
	}
	a := m.areas[c.Area]
	if c.Deleted || c.LSA.AgeSeconds() == packet.MaxAge {
		if a != nil {
			a.leave(c.LSA, now.Add(m.cfg.Settle))
		}
		return
	}
	if a == nil {
		a = m.newArea(c.Area)
		m.areas[c.Area] = a
	}
	if err := a.install(now, c.LSA, m.generation); err != nil {
		m.counters.Dropped[Full]++
	}
}

// install puts an LSA in the mirror. What the daemon tells last is what it has, so instances are not compared.
func (a *area) install(now time.Time, l packet.LSA, generation uint64) error {
	_, change, err := a.db.Install(now, l, false)
	if err != nil {
		return err
	}
	a.seen[l.Key] = generation
	delete(a.going, l.Key)
	if change != lsdb.Refreshed {
		a.learn.Changed(l.Adv)
	}
	return nil
}

// leave takes a deletion, unless the mirror has a later instance already. The daemon deletes an instance before it
// tells the one that replaces it, so a deletion waits a little for that.
func (a *area) leave(l packet.LSA, at time.Time) {
	e := a.db.Get(l.Key)
	if e == nil || e.Sequence > l.Sequence {
		return
	}
	if _, already := a.going[l.Key]; !already {
		a.going[l.Key] = at
	}
}

func (a *area) remove(k packet.Key) {
	if a.db.Remove(k) {
		a.learn.Changed(k.Adv)
	}
	delete(a.seen, k)
	delete(a.going, k)
}

// sweep removes what a connection did not tell.
func (a *area) sweep(generation uint64) {
	for k, g := range a.seen {
		if g != generation {
			a.remove(k)
		}
	}
}

// age removes what was deleted, and what nobody refreshed for an hour. The daemon tells LSAs with the age that they
// had when it stored them, so that it removes them itself before.
func (a *area) age(now time.Time) {
	for k, at := range a.going {
		if !at.After(now) {
			a.remove(k)
		}
	}
	for _, e := range a.db.Aged(now) {
		a.remove(e.Key)
	}
}

// wake is when age has something to do.
func (a *area) wake() time.Time {
	at := a.db.Wake()
	for _, t := range a.going {
		at = earlier(at, t)
	}
	return at
}

// earlier is the one that comes first; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
