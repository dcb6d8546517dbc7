package speaker

import (
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/learn"
	"pncd/igp/ospf/packet"
)

// area is what follows from an area's database.
type area struct {
	*learn.Area
	id  packet.ID
	err error
}

// touch is an LSA whose contents changed, that came or went.
type touch struct {
	flooding.Where
	packet.Key
}

func newArea(c Config, id packet.ID) *area {
	return &area{id: id, Area: learn.New(learn.Config{Version: c.Version, Router: c.Router, Carrier: c.Carrier, SPF: c.SPF}, id)}
}

// changed is told by the update process of an LSA whose contents changed, that came or went.
func (m *Machine) changed(w flooding.Where, k packet.Key) { m.touched = append(m.touched, touch{w, k}) }

// settle brings what the update process has changed to those whom it concerns.
func (m *Machine) settle(now time.Time) {
	for len(m.touched) > 0 {
		list := m.touched
		m.touched = nil
		for _, t := range list {
			if t.IsGrace(m.cfg.Version) {
				if l := m.byID(t.Link); l != nil {
					m.grace(now, l, t.Key)
				}
				continue
			}
			m.endHelp(now, t.Where, t.Key)
			if a := m.areas[t.Area]; a != nil && t.Scope == packet.ScopeArea {
				a.Changed(t.Adv)
			}
		}
	}
}

// learn brings changed LSAs to the graphs, and puts what is different for the rest of the program with what was
// learned.
func (m *Machine) learn(now time.Time) {
	again := false
	for _, id := range m.areaIDs() {
		a := m.areas[id]
		list := a.Learn(now, m.flood.DB(flooding.Where{Scope: packet.ScopeArea, Area: id}))
		m.learned = append(m.learned, list...)
		again = again || len(list) > 0
	}
	if again && m.cfg.Reoriginate {
		m.refreshMarks(now)
	}
}

// leave forgets an area, and tells that what was learned there is gone.
func (m *Machine) leave(id packet.ID) {
	if a := m.areas[id]; a != nil {
		m.learned = append(m.learned, a.Leave()...)
		delete(m.areas, id)
	}
}
