package speaker

import (
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// Status is what an operator asks for.
type Status struct {
	Version  packet.Version
	Router   packet.ID
	Areas    []AreaStatus // by ID
	Links    []LinkStatus // by name
	External int          // LSAs of the domain's scope
	Counters flooding.Counters
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
	ID         packet.ID
	Kind       AreaKind
	LSAs       int
	Routers    int // that say something, without this one
	Reachable  int // of them
	Prefixes   int // with extended attributes, of routers that are reachable
	Marked     int // of those, with the P flag
	SPFRuns    uint64
	SPFRan     time.Time
	Unreadable uint64 // LSAs whose body couldn't be read
	Error      error  // why the own LSAs are not what they should be
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
}

// NeighborStatus is one neighbour.
type NeighborStatus struct {
	Router         packet.ID
	Address        string
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
