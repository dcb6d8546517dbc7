package speaker

import (
	"maps"
	"net/netip"
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/learn"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/spf"
)

// Status is what an operator asks for.
type Status struct {
	Version     packet.Version
	Router      packet.ID
	Areas       []AreaStatus // by ID
	Links       []LinkStatus // by name
	External    int          // LSAs of the domain's scope
	GraceErrors uint64       // grace LSAs whose body couldn't be read
	Malformed   uint64       // LSAs that were left out: their body breaks the format of their type
	Counters    flooding.Counters
	// Received counts packets by type, 0 for those that can't be read. Their sum is Used and all Drops.
	Received map[packet.Type]uint64
	Used     uint64
	Drops    map[Drop]uint64

	// Of the shell: packets lost before the machine because too many waited, here or in the kernel; packets not
	// sent.
	QueueOverflow, SendErrors uint64
}

// AreaStatus is one area.
type AreaStatus struct {
	ID           packet.ID
	Kind         AreaKind
	LSAs         int
	learn.Status       // without this router itself
	Error        error // why the own LSAs are not what they should be
}

// LinkStatus is one link.
type LinkStatus struct {
	Name      string
	Area      packet.ID
	Broadcast bool
	Link      Link
	State     iface.State
	DR, BDR   packet.ID // addresses in OSPFv2, router IDs in OSPFv3
	LSAs      int       // of the link's scope
	Neighbors []NeighborStatus
	Refused   map[iface.Reason]uint64 // packets, by reason
	Dropped   map[Drop]uint64         // packets before that: malformed, checksum, authentication, replay
	// Last says of the last packet that was refused or dropped why, and from where; empty without any.
	Last string
}

// NeighborStatus is one neighbour.
type NeighborStatus struct {
	Router         packet.ID
	Address        netip.Addr
	Priority       uint8
	State          neighbor.State
	Since          time.Time
	Expires        time.Time // of the inactivity timer
	Helping        time.Time // the end of its grace period; zero: it doesn't restart
	DR, BDR        packet.ID
	Interface      uint32 // OSPFv3
	Requests       int    // length of the link state request list
	Retransmission int    // and of the retransmission list
	Dropped        map[neighbor.Reason]uint64
}

// LSAStatus is one LSA of a database.
type LSAStatus struct {
	flooding.Where
	LinkName  string // of the link whose scope it has
	LSA       packet.LSA
	Age       uint16 // now, seconds
	Own       bool
	Reachable bool // SPF reaches its router in the area
}

// Status reads the router's state.
func (m *Machine) Status(now time.Time) Status {
	st := Status{
		Version: m.cfg.Version, Router: m.cfg.Router, External: m.flood.DB(flooding.Where{Scope: packet.ScopeAS}).Len(),
		GraceErrors: m.graceErrors, Malformed: m.malformed, Counters: m.flood.Counters(),
		Received: maps.Clone(m.received), Used: m.used, Drops: map[Drop]uint64{},
	}
	for d := Drop(1); d < dropCount; d++ {
		st.Drops[d] = m.drops[d]
	}
	for _, id := range m.areaIDs() {
		st.Areas = append(st.Areas, m.areaStatus(m.areas[id]))
	}
	for _, name := range m.order {
		st.Links = append(st.Links, m.linkStatus(m.links[name]))
	}
	return st
}

func (m *Machine) areaStatus(a *area) AreaStatus {
	return AreaStatus{
		ID: a.id, Kind: m.cfg.kind(a.id), LSAs: m.flood.DB(flooding.Where{Scope: packet.ScopeArea, Area: a.id}).Len(),
		Status: a.Status(), Error: a.err,
	}
}

func (m *Machine) linkStatus(l *link) LinkStatus {
	st := LinkStatus{Name: l.cfg.Name, Area: l.cfg.Area, Broadcast: l.cfg.Broadcast, Link: l.state, Refused: map[iface.Reason]uint64{}, Dropped: map[Drop]uint64{}, Last: l.last.String()}
	for _, d := range []Drop{DropMalformed, DropChecksum, DropAuthentication, DropReplay} {
		st.Dropped[d] = l.dropped[d]
	}
	if !l.running() {
		return st
	}
	st.State = l.iface.State()
	st.DR, st.BDR = l.iface.Designated()
	st.LSAs = m.flood.DB(flooding.Where{Scope: packet.ScopeLink, Link: l.id}).Len()
	for _, r := range iface.Reasons() {
		st.Refused[r] = l.iface.Dropped(r)
	}
	for _, n := range l.iface.Neighbors() {
		state, since := n.State()
		ns := NeighborStatus{
			Router: n.Router(), Address: n.Address, Priority: n.Priority, State: state, Since: since, Expires: n.Expires(), Helping: n.Helping(),
			DR: n.DR, BDR: n.BDR, Interface: n.Interface, Requests: n.Requests(), Retransmission: m.flood.Waiting(l.id, n.Router()),
			Dropped: map[neighbor.Reason]uint64{},
		}
		for _, r := range neighbor.Reasons() {
			ns.Dropped[r] = n.Dropped(r)
		}
		st.Neighbors = append(st.Neighbors, ns)
	}
	return st
}

// Database reads all LSAs: of the links, of the areas and of the domain, in order.
func (m *Machine) Database(now time.Time) (out []LSAStatus) {
	add := func(w flooding.Where, name string) {
		db := m.flood.DB(w)
		if db == nil {
			return
		}
		for e := range db.All() {
			out = append(out, LSAStatus{Where: w, LinkName: name, LSA: e.LSA, Age: e.Age(now), Own: e.Adv == m.cfg.Router, Reachable: m.reachable(w, e.Adv)})
		}
	}
	for _, name := range m.order {
		l := m.links[name]
		add(flooding.Where{Scope: packet.ScopeLink, Area: l.cfg.Area, Link: l.id}, name)
	}
	for _, id := range m.areaIDs() {
		add(flooding.Where{Scope: packet.ScopeArea, Area: id}, "")
	}
	add(flooding.Where{Scope: packet.ScopeAS}, "")
	return out
}

// reachable reports whether SPF reaches a router in the area of a database; for that of the domain in any area, or
// beyond it by a border router.
func (m *Machine) reachable(w flooding.Where, router packet.ID) bool {
	for id, a := range m.areas {
		domain := w.Scope == packet.ScopeAS
		if (domain || id == w.Area) && a.Cost(router) != spf.Unreachable || domain && a.InterArea(router) != spf.Unreachable {
			return true
		}
	}
	return false
}
