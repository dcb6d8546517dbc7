package learner

import (
	"maps"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/learn"
	"pncd/igp/ospf/packet"
)

// newLearn makes what an area's database is read with, as the host router sees it.
func (m *Machine) newLearn(id packet.ID) *learn.Area {
	return learn.New(learn.Config{Version: packet.V2, Router: m.routerID, Own: true, Carrier: m.cfg.Carrier, SPF: m.cfg.SPF}, id)
}

// root takes the ID of the host router. Another one sees other paths.
func (m *Machine) root(id packet.ID) {
	if id == m.routerID {
		return
	}
	m.routerID = id
	for _, areaID := range m.areaIDs() {
		a := m.areas[areaID]
		m.learned = append(m.learned, a.learn.Leave()...)
		a.learn = m.newLearn(areaID)
		for router := range a.db.Routers() {
			a.learn.Changed(router)
		}
	}
}

// age lets time pass in the mirror. When the daemon was away for too long, nothing that it said is believed.
func (m *Machine) age(now time.Time) {
	for _, a := range m.areas {
		a.age(now)
	}
	if !m.believed || m.lost.IsZero() || now.Before(m.lost.Add(m.cfg.Hold)) {
		return
	}
	m.believed = false
	for _, id := range m.areaIDs() {
		a := m.areas[id]
		m.learned = append(m.learned, a.learn.Leave()...)
		if m.state == Down { // else what comes now counts when it is complete
			delete(m.areas, id)
		}
	}
}

// learn reads what changed, as long as the mirror is the daemon's database. While it is not, what was told stands.
func (m *Machine) learn(now time.Time) {
	if m.state != Synced {
		return
	}
	for _, id := range m.areaIDs() {
		a := m.areas[id]
		m.learned = append(m.learned, a.learn.Learn(now, a.db)...)
		if a.db.Len() == 0 {
			delete(m.areas, id)
		}
	}
}

// Learned gives what changed since the last call, as of the last Tick.
func (m *Machine) Learned() []igp.Learned {
	out := m.learned
	m.learned = nil
	return out
}

// Replay makes Learned give everything that is believed once more.
func (m *Machine) Replay() {
	for _, id := range m.areaIDs() {
		m.learned = append(m.learned, m.areas[id].learn.Replay()...)
	}
}

// areaIDs lists the areas in order.
func (m *Machine) areaIDs() []packet.ID { return slices.Sorted(maps.Keys(m.areas)) }
