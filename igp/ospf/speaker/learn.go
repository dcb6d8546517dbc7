package speaker

import (
	"net/netip"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/spf"
)

// area is what follows from an area's database.
type area struct {
	id      packet.ID
	graph   *spf.Area
	spfDue  time.Time
	spfRan  time.Time
	pace    backoff.State
	routers map[packet.ID]marks.Said            // what each says of prefixes, without this one
	told    map[packet.ID]map[netip.Prefix]told // what the rest of the program knows
	changed map[packet.ID]bool                  // routers whose LSAs did
	dirty   map[packet.ID]bool                  // to be told anew

	unreadable uint64
	err        error
}

// told is what of igp.Learned differs between the prefixes of a router.
type told struct {
	proxy     netip.Addr
	cost      uint32
	p, leaked bool
}

// touch is an LSA whose contents changed, that came or went.
type touch struct {
	flooding.Where
	packet.Key
}

func newArea(c Config, id packet.ID) *area {
	return &area{
		id: id, graph: spf.New(c.Version, c.Router), routers: map[packet.ID]marks.Said{},
		told: map[packet.ID]map[netip.Prefix]told{}, changed: map[packet.ID]bool{}, dirty: map[packet.ID]bool{},
	}
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
				a.changed[t.Adv] = true
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
		a.read(m, now)
		before := len(m.learned)
		m.learned = append(m.learned, a.tell()...)
		again = again || len(m.learned) > before
	}
	if again && m.cfg.Reoriginate {
		m.refreshMarks(now)
	}
}

// read takes what routers say anew from the LSAs of those that changed, and runs SPF when it is due.
func (a *area) read(m *Machine, now time.Time) {
	db := m.flood.DB(flooding.Where{Scope: packet.ScopeArea, Area: a.id})
	links := false
	for router := range a.changed {
		var lsas []packet.LSA
		for e := range db.ByRouter(router) {
			if e.Age(now) < packet.MaxAge {
				lsas = append(lsas, e.LSA)
			}
		}
		differ, err := a.graph.Set(router, lsas)
		if err != nil {
			a.unreadable++
		}
		links = links || differ
		if router == m.cfg.Router {
			continue
		}
		a.dirty[router] = true
		if len(lsas) == 0 {
			delete(a.routers, router)
			continue
		}
		said, _ := marks.Read(marks.Config{Version: m.cfg.Version, Carrier: m.cfg.Carrier}, router, lsas)
		a.unreadable += uint64(said.Unreadable)
		a.routers[router] = said
	}
	clear(a.changed)
	if links && a.spfDue.IsZero() {
		a.spfDue = a.pace.Next(now, m.cfg.SPF) // links that flap must not keep the processor busy
	}
	if !a.spfDue.IsZero() && !a.spfDue.After(now) {
		a.spfDue, a.spfRan = time.Time{}, now
		a.pace.Ran(now, m.cfg.SPF)
		a.graph.Run()
		for router := range a.routers {
			a.dirty[router] = true
		}
	}
}

// tell compares what the dirty routers say, and whether they are reachable, with what was told.
func (a *area) tell() (out []igp.Learned) {
	for router := range a.dirty {
		before, now := a.told[router], a.says(router)
		l := igp.Learned{Originator: router.String(), Area: uint32(a.id)}
		for p := range before {
			if _, still := now[p]; !still {
				l.Prefix, l.Gone = p, true
				out = append(out, l)
			}
		}
		l.Gone = false
		for p, v := range now {
			if old, ok := before[p]; !ok || old != v {
				l.Prefix, l.Cost, l.Leaked, l.P, l.Proxy = p, v.cost, v.leaked, v.p, v.proxy
				out = append(out, l)
			}
		}
		a.told[router] = now
		if len(now) == 0 {
			delete(a.told, router)
		}
	}
	clear(a.dirty)
	slices.SortFunc(out, compareLearned)
	return out
}

// says is what a router says as long as it is reachable.
func (a *area) says(router packet.ID) map[netip.Prefix]told {
	said, ok := a.routers[router]
	cost := a.graph.Cost(router)
	if !ok || cost == spf.Unreachable || len(said.Prefixes) == 0 {
		return nil
	}
	now := make(map[netip.Prefix]told, len(said.Prefixes))
	for p, e := range said.Prefixes {
		now[p] = told{proxy: e.Proxy, cost: cost, p: e.P, leaked: e.Leaked}
	}
	return now
}

// leave forgets an area, and tells that what was learned there is gone.
func (m *Machine) leave(id packet.ID) {
	a := m.areas[id]
	if a == nil {
		return
	}
	for router := range a.told {
		a.dirty[router] = true
	}
	clear(a.routers)
	m.learned = append(m.learned, a.tell()...)
	delete(m.areas, id)
}

// crossing adds the marks of other areas that belong into this one (RFC 2328 section 12.4.3 does so with
// prefixes): what a router of another area marks goes into every area, and what crossed into the backbone goes
// on into the others. A loop is not possible: from an area that is not the backbone nothing comes back that
// crossed a border. Of several marks for a prefix the one with the least cost goes, then the lowest router ID.
func (m *Machine) crossing(into packet.ID, out map[netip.Prefix]mark) {
	type best struct {
		cost   uint32
		router packet.ID
	}
	have := map[netip.Prefix]best{}
	for id, a := range m.areas {
		if id == into {
			continue
		}
		for router, list := range a.told {
			for p, v := range list {
				if !v.p || !v.proxy.IsValid() || v.leaked && id != packet.Backbone {
					continue
				}
				b, there := have[p]
				if there && (b.cost < v.cost || b.cost == v.cost && b.router < router) {
					continue
				}
				have[p] = best{v.cost, router}
				out[p] = mark{proxy: v.proxy, interArea: true}
			}
		}
	}
}
