package flooding

import (
	"maps"
	"slices"
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// dying are the LSAs at MaxAge, until everybody knows of them and they are removed (RFC 2328 section 14).
type dying struct {
	all map[Where]map[packet.Key]struct{}
	// open are those of them for whose removal something has happened: most wait for acknowledgments, and are not
	// looked at before those come.
	open map[Where]map[packet.Key]struct{}
}

func newDying() dying {
	return dying{all: map[Where]map[packet.Key]struct{}{}, open: map[Where]map[packet.Key]struct{}{}}
}

func put(in map[Where]map[packet.Key]struct{}, w Where, k packet.Key) {
	if in[w] == nil {
		in[w] = map[packet.Key]struct{}{}
	}
	in[w][k] = struct{}{}
}

func remove(in map[Where]map[packet.Key]struct{}, w Where, k packet.Key) {
	if delete(in[w], k); len(in[w]) == 0 {
		delete(in, w)
	}
}

// mark notes whether an instance that was stored is to be removed.
func (d *dying) mark(w Where, e *lsdb.Entry) {
	if e.AgeSeconds() == packet.MaxAge {
		put(d.all, w, e.Key)
		put(d.open, w, e.Key)
		return
	}
	d.forget(w, e.Key)
}

func (d *dying) forget(w Where, k packet.Key) {
	remove(d.all, w, k)
	remove(d.open, w, k)
}

// check has the next Tick see whether an LSA is to be removed: a neighbour that it may have waited for is done.
func (m *Machine) check(w Where, k packet.Key) {
	if _, yes := m.dying.all[w][k]; yes {
		put(m.dying.open, w, k)
	}
}

// checkAll does so for all LSAs of a link: a neighbour there is gone.
func (m *Machine) checkAll(l *link) {
	for w, keys := range m.dying.all {
		if w.reaches(l) {
			m.dying.open[w] = maps.Clone(keys)
		}
	}
}

// removable reports whether bury has something to do.
func (m *Machine) removable() bool {
	for w := range m.dying.open {
		if !m.exchanging(w) {
			return true
		}
	}
	return false
}

// bury removes the LSAs at MaxAge that everybody knows of, when no neighbour is being told what there is
// (RFC 2328 section 14).
func (m *Machine) bury(now time.Time) {
	for _, w := range slices.SortedFunc(maps.Keys(m.dying.open), Where.compare) {
		if m.exchanging(w) {
			continue
		}
		open := m.dying.open[w]
		delete(m.dying.open, w)
		for _, k := range slices.SortedFunc(maps.Keys(open), packet.Key.Compare) {
			o := m.ownOf(w, k)
			if o != nil && !o.wrap || m.waits(w, k) {
				continue // what is still wanted is made soon, and must go on from this number
			}
			if o != nil && m.putOff(now, o) {
				// The first takes the place of the last at once: to a neighbour who asks for what isn't there the
				// adjacency would end.
				m.replan(ownKey{w, k.Type, k.ID}, o)
				continue
			}
			remove(m.dying.all, w, k)
			m.DB(w).Remove(k)
			m.seen(w, k)
			if o != nil {
				o.wrap, o.due = false, now
				m.make(now, w, o)
			}
		}
	}
}

// ownOf gives the own LSA of a key; nil when it is another's, or not wanted any more.
func (m *Machine) ownOf(w Where, k packet.Key) *own {
	if k.Adv != m.cfg.Router {
		return nil
	}
	return m.own[ownKey{w, k.Type, k.ID}]
}
