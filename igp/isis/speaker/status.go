package speaker

import (
	"maps"
	"time"

	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/flooding"
	"pncd/igp/isis/packet"
)

// Status is what an operator asks for.
type Status struct {
	System   packet.SystemID
	Areas    []packet.Area
	Hostname string
	Levels   []LevelStatus
	Circuits []CircuitStatus
	// Received counts PDUs by type, 0 for those that can't be read. Their sum is Used and all Drops.
	Received map[packet.PDUType]uint64
	Used     uint64
	Drops    map[Drop]uint64

	// Of the shell: frames lost before the machine because too many waited, here or in the kernel; frames not
	// sent.
	QueueOverflow, SendErrors uint64
}

// LevelStatus is one level.
type LevelStatus struct {
	Level      uint8
	LSPs       int
	Systems    int    // that say something
	Reachable  int    // of them
	Prefixes   int    // of systems that are reachable
	Marked     int    // of those, with the P flag
	SPFRuns    uint64 // of the standard topology
	SPFRan     time.Time
	Unreadable uint64 // TLVs that couldn't be read
	NotFitting int    // own prefixes and links that fit no LSP
	Error      error  // why the own LSPs are not what they should be
	Counters   flooding.Counters
}

// CircuitStatus is one circuit.
type CircuitStatus struct {
	Name      string
	LAN       bool
	Levels    uint8
	Link      Link
	Running   bool
	Neighbors []NeighborStatus
	// Designated is the LAN's pseudonode by level.
	Designated map[uint8]packet.NodeID
	// Refused says that this system would be the LAN's designated one at a level, which it never is: the
	// circuit is not used there. It needs a router with a higher priority.
	Refused map[uint8]bool
	Hellos  map[adjacency.Reason]uint64 // refused, by reason
}

// NeighborStatus is a neighbour with its name.
type NeighborStatus struct {
	adjacency.Neighbor
	Hostname string
}

// Status reads the system's state.
func (m *Machine) Status(now time.Time) Status {
	st := Status{System: m.cfg.System, Areas: m.cfg.Areas, Hostname: m.cfg.Hostname, Received: maps.Clone(m.received), Used: m.used, Drops: map[Drop]uint64{}}
	for d := Drop(1); d < dropCount; d++ {
		st.Drops[d] = m.drops[d]
	}
	for _, l := range m.levels {
		st.Levels = append(st.Levels, l.status())
	}
	for _, name := range m.order {
		st.Circuits = append(st.Circuits, m.circuits[name].status(m))
	}
	return st
}

func (l *level) status() LevelStatus {
	g := l.graphs[packet.MTStandard]
	st := LevelStatus{
		Level: l.n, LSPs: l.flood.DB().Len(), Systems: len(l.nodes), Reachable: len(l.out), SPFRuns: g.Runs(), SPFRan: l.spfRan,
		Unreadable: l.unreadable, NotFitting: l.notFitting, Error: l.packErr, Counters: l.flood.Counters(),
	}
	for _, told := range l.out {
		st.Prefixes += len(told)
		for _, v := range told {
			if v.p {
				st.Marked++
			}
		}
	}
	return st
}

func (c *circuit) status(m *Machine) CircuitStatus {
	st := CircuitStatus{Name: c.cfg.Name, LAN: c.cfg.LAN, Levels: c.cfg.Levels, Link: c.link, Running: c.running(),
		Designated: map[uint8]packet.NodeID{}, Refused: map[uint8]bool{}, Hellos: map[adjacency.Reason]uint64{}}
	add := func(all []adjacency.Neighbor) {
		for _, n := range all {
			st.Neighbors = append(st.Neighbors, NeighborStatus{n, m.nameOf(n.System)})
		}
	}
	if c.p2p != nil {
		add(c.p2p.Neighbors())
		for _, r := range adjacency.Reasons() {
			st.Hellos[r] += c.p2p.Refused(r)
		}
	}
	for n, lan := range c.lans {
		add(lan.Neighbors())
		st.Designated[n], st.Refused[n] = c.designated[n], c.refused[n]
		for _, r := range adjacency.Reasons() {
			st.Hellos[r] += lan.Refused(r)
		}
	}
	return st
}

// nameOf is the host name of a system, as its LSPs say; empty when they don't.
func (m *Machine) nameOf(id packet.SystemID) string {
	for _, l := range m.levels {
		if s := l.nodes[id.Node(0)]; s != nil && s.name != "" {
			return s.name
		}
	}
	return ""
}

// LSPStatus is one LSP of the database.
type LSPStatus struct {
	ID        packet.LSPID
	Hostname  string
	Sequence  uint32
	Checksum  uint16
	Lifetime  uint16 // remaining, seconds
	Length    int    // octets
	Flags     uint8
	Own       bool
	Reachable bool // its system is, in the standard topology
	LSP       packet.LSP
	Flag      uint8 // the P flag's bit
}

// Database reads the LSPs of a level, in order.
func (m *Machine) Database(now time.Time, level uint8) (out []LSPStatus) {
	l := m.level(level)
	if l == nil {
		return nil
	}
	g := l.graphs[packet.MTStandard]
	for e := range l.flood.DB().All() {
		system := e.ID.Node().System()
		st := LSPStatus{ID: e.ID, Hostname: m.nameOf(system), Sequence: e.Sequence, Checksum: e.Checksum, Lifetime: e.Lifetime(now),
			Length: e.Size(), Flags: e.Flags, Own: system == m.cfg.System, Reachable: g.Cost(e.ID.Node()) != ^uint32(0), LSP: e.LSP(), Flag: m.cfg.Flag}
		if st.Own {
			st.Hostname = m.cfg.Hostname
		}
		out = append(out, st)
	}
	return out
}
