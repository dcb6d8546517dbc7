package learner

import (
	"maps"
	"slices"
	"time"

	"pncd/igp/ospf/learn"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/spf"
)

// Drop says why something that the daemon told was not taken.
type Drop uint8

// The reasons.
const (
	Unreadable  Drop = iota // the message breaks a rule of its format
	NotAsked                // an LSA of a type that nobody asked for
	BadChecksum             // of an LSA
	Full                    // the area has as many LSAs as it may
	dropCount
)

// Drops lists the reasons.
func Drops() []Drop {
	var all []Drop
	for d := range dropCount {
		all = append(all, d)
	}
	return all
}

// String gives the reason's name.
func (d Drop) String() string {
	return [...]string{"unreadable", "not asked for", "checksum", "full", "?"}[min(d, dropCount)]
}

// Counters count since the start.
type Counters struct {
	Connections uint64
	Syncs       uint64 // times that the whole database was there
	Received    map[message.Type]uint64
	Dropped     map[Drop]uint64
}

func newCounters() Counters {
	return Counters{Received: map[message.Type]uint64{}, Dropped: map[Drop]uint64{}}
}

// Status is what an operator asks for.
type Status struct {
	State    State
	RouterID packet.ID // of the host router; 0: not known yet
	Believed bool      // what was learned counts
	Areas    []AreaStatus
	Counters Counters
}

// AreaStatus is one area of the router.
type AreaStatus struct {
	ID   packet.ID
	LSAs int
	learn.Status
}

// Status reads the state.
func (m *Machine) Status() Status {
	st := Status{State: m.state, RouterID: m.routerID, Believed: m.believed, Counters: m.counters}
	st.Counters.Received, st.Counters.Dropped = maps.Clone(st.Counters.Received), maps.Clone(st.Counters.Dropped)
	for _, id := range m.areaIDs() {
		st.Areas = append(st.Areas, AreaStatus{id, m.areas[id].db.Len(), m.areas[id].learn.Status()})
	}
	return st
}

// LSAStatus is one LSA of the mirror.
type LSAStatus struct {
	packet.LSA
	Age       uint16 // now, seconds
	Reachable bool   // SPF reaches its router in the area
}

// LSAs lists the LSAs of an area with their state, in the order of their keys. They must not be changed.
func (m *Machine) LSAs(now time.Time, id packet.ID) (list []LSAStatus) {
	a := m.areas[id]
	if a == nil {
		return nil
	}
	for e := range a.db.All() {
		list = append(list, LSAStatus{LSA: e.LSA, Age: e.Age(now), Reachable: a.learn.Cost(e.Adv) != spf.Unreachable})
	}
	return list
}

// Database lists the LSAs of an area, in the order of their keys. They must not be changed.
func (m *Machine) Database(id packet.ID) (list []*lsdb.Entry) {
	a := m.areas[id]
	if a == nil {
		return nil
	}
	return slices.AppendSeq(list, a.db.All())
}
