// Package learn says what an area's database means for the rest of the program: the prefixes that its routers
// announce with extended attributes, with the P flag or without, as long as SPF reaches the router (RFC 5250
// section 5). It joins igp/ospf/spf and igp/ospf/marks to a database.
//
// It is pure, with the time passed in, and only reads: where the database comes from is another's business.
package learn

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/spf"
)

// Config is how an area is read.
type Config struct {
	Version packet.Version
	Router  packet.ID // that paths are counted from
	Own     bool      // what that router says itself is learned, too
	Carrier marks.Carrier
	SPF     backoff.Config // of the runs of SPF; zero: the default
}

// Area is what was learned from one area. It is not safe for concurrent use.
type Area struct {
	cfg     Config
	id      packet.ID
	graph   *spf.Area
	spfDue  time.Time
	spfRan  time.Time
	pace    backoff.State
	routers map[packet.ID]marks.Said            // what each says of prefixes
	told    map[packet.ID]map[netip.Prefix]told // what the rest of the program knows
	changed map[packet.ID]bool                  // routers whose LSAs did
	dirty   map[packet.ID]bool                  // to be told anew

	unreadable uint64
}

// told is what of igp.Learned differs between the prefixes of a router.
type told struct {
	proxy     netip.Addr
	cost      uint32
	p, leaked bool
}

// New makes an area that nothing was learned from.
func New(c Config, id packet.ID) *Area {
	c.SPF = c.SPF.OrDefault()
	return &Area{
		cfg: c, id: id, graph: spf.New(c.Version, c.Router), routers: map[packet.ID]marks.Said{},
		told: map[packet.ID]map[netip.Prefix]told{}, changed: map[packet.ID]bool{}, dirty: map[packet.ID]bool{},
	}
}

// Changed says that an LSA of a router came, went, or has other contents.
func (a *Area) Changed(router packet.ID) { a.changed[router] = true }

// Learn reads what changed in the area's database, runs SPF when it is due, and gives what is different for the rest
// of the program, in order.
func (a *Area) Learn(now time.Time, db *lsdb.DB) []igp.Learned {
	links := false
	for router := range a.changed {
		links = a.read(now, db, router) || links
	}
	clear(a.changed)
	if links && a.spfDue.IsZero() {
		a.spfDue = a.pace.Next(now, a.cfg.SPF) // links that flap must not keep the processor busy
	}
	if !a.spfDue.IsZero() && !a.spfDue.After(now) {
		a.spfDue, a.spfRan = time.Time{}, now
		a.pace.Ran(now, a.cfg.SPF)
		a.graph.Run()
		a.compareAll()
	}
	return a.tell()
}

// read takes what a router says now. It reports whether SPF has to run.
func (a *Area) read(now time.Time, db *lsdb.DB, router packet.ID) (links bool) {
	var lsas []packet.LSA
	for e := range db.ByRouter(router) {
		if e.Age(now) < packet.MaxAge {
			lsas = append(lsas, e.LSA)
		}
	}
	links, err := a.graph.Set(router, lsas)
	if err != nil {
		a.unreadable++
	}
	if router == a.cfg.Router && !a.cfg.Own {
		return links
	}
	a.dirty[router] = true
	if len(lsas) == 0 {
		delete(a.routers, router)
		return links
	}
	said, _ := marks.Read(marks.Config{Version: a.cfg.Version, Carrier: a.cfg.Carrier}, router, lsas)
	a.unreadable += uint64(said.Unreadable)
	a.routers[router] = said
	return links
}

// Retime changes how runs of SPF are spaced.
func (a *Area) Retime(spf backoff.Config) { a.cfg.SPF = spf.OrDefault() }

// Wake is when Learn has something to do although nothing changes; zero: never.
func (a *Area) Wake() time.Time { return a.spfDue }

// compareAll makes Learn compare all that routers say with what was told.
func (a *Area) compareAll() {
	for router := range a.routers {
		a.dirty[router] = true
	}
}

// Replay gives everything that was told and still holds once more, in order.
func (a *Area) Replay() (out []igp.Learned) {
	for _, l := range a.Told() {
		out = append(out, l)
	}
	slices.SortFunc(out, compare)
	return out
}

// Told iterates over what was told and still holds, with its routers, in no order.
func (a *Area) Told() iter.Seq2[packet.ID, igp.Learned] {
	return func(yield func(packet.ID, igp.Learned) bool) {
		for router, prefixes := range a.told {
			for p, v := range prefixes {
				if !yield(router, a.learned(router, p, v)) {
					return
				}
			}
		}
	}
}

// Leave tells that everything that was learned is gone. Learn tells it anew, if it is asked again.
func (a *Area) Leave() (out []igp.Learned) {
	for router, prefixes := range a.told {
		for p := range prefixes {
			out = append(out, a.gone(router, p))
		}
	}
	clear(a.told)
	a.compareAll()
	slices.SortFunc(out, compare)
	return out
}

func (a *Area) gone(router packet.ID, p netip.Prefix) igp.Learned {
	return igp.Learned{Prefix: p, Originator: router.String(), Area: uint32(a.id), Gone: true}
}

func (a *Area) learned(router packet.ID, p netip.Prefix, v told) igp.Learned {
	return igp.Learned{Prefix: p, Originator: router.String(), Area: uint32(a.id), Cost: v.cost, Leaked: v.leaked, P: v.p, Proxy: v.proxy}
}

// tell compares what the dirty routers say, and whether they are reachable, with what was told.
func (a *Area) tell() (out []igp.Learned) {
	for router := range a.dirty {
		before, now := a.told[router], a.says(router)
		for p := range before {
			if _, still := now[p]; !still {
				out = append(out, a.gone(router, p))
			}
		}
		for p, v := range now {
			if old, ok := before[p]; !ok || old != v {
				out = append(out, a.learned(router, p, v))
			}
		}
		a.told[router] = now
		if len(now) == 0 {
			delete(a.told, router)
		}
	}
	clear(a.dirty)
	slices.SortFunc(out, compare)
	return out
}

// says is what a router says as long as it is reachable.
func (a *Area) says(router packet.ID) map[netip.Prefix]told {
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

// compare puts what was learned in order.
func compare(a, b igp.Learned) int {
	return cmp.Or(a.Prefix.Compare(b.Prefix), cmp.Compare(a.Originator, b.Originator), cmp.Compare(a.Area, b.Area))
}

// Status is what an operator asks for.
type Status struct {
	Routers    int // that say something
	Reachable  int // of them
	Prefixes   int // with extended attributes, of routers that are reachable
	Marked     int // of those, with the P flag
	SPFRuns    uint64
	SPFRan     time.Time
	Unreadable uint64 // times that LSAs couldn't be read
}

// Status reads the state.
func (a *Area) Status() Status {
	st := Status{Routers: len(a.routers), SPFRuns: a.graph.Runs(), SPFRan: a.spfRan, Unreadable: a.unreadable}
	for router := range a.routers {
		if a.graph.Cost(router) != spf.Unreachable {
			st.Reachable++
		}
	}
	for _, prefixes := range a.told {
		st.Prefixes += len(prefixes)
		for _, v := range prefixes {
			if v.p {
				st.Marked++
			}
		}
	}
	return st
}

// Cost gives the cost of the path to a router, as of the last run of SPF; spf.Unreachable when there is none.
func (a *Area) Cost(router packet.ID) uint32 { return a.graph.Cost(router) }

// InterArea is the cost of the path to a router of another area, by border routers of this one; spf.Unreachable when
// there is none.
func (a *Area) InterArea(router packet.ID) uint32 { return a.graph.InterArea(router) }
