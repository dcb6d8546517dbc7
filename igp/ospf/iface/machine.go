package iface

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// Neighbor is a router on the network.
type Neighbor struct {
	*neighbor.Machine
	Address   netip.Addr // packets for it go there
	Priority  uint8
	Interface uint32    // OSPFv3: its interface ID
	DR, BDR   packet.ID // whom it takes for them: addresses in OSPFv2, router IDs in OSPFv3
	self      packet.ID // how the fields above name it
	m         *Machine
}

// Designated reports whether the neighbour is Designated Router or Backup.
func (n *Neighbor) Designated() bool {
	return n.m.state == DROther && (n.self == n.m.dr || n.self == n.m.bdr)
}

// Event is a change of a neighbour.
type Event struct {
	Router  packet.ID
	Address netip.Addr
	neighbor.Event
}

// Send is a packet to send.
type Send struct {
	To   netip.Addr
	Body packet.Body
}

// Machine is one interface. It is not safe for concurrent use.
type Machine struct {
	cfg       Config
	db        neighbor.Database
	state     State
	neighbors map[packet.ID]*Neighbor // by router ID
	dr, bdr   packet.ID
	hello     time.Time // when the next one goes out
	events    []Event
	dropped   [reasonCount]uint64
}

// New makes an interface that is down.
func New(c Config, db neighbor.Database) *Machine {
	return &Machine{cfg: c.withDefaults(), db: db, neighbors: map[packet.ID]*Neighbor{}}
}

// State gives the interface's state.
func (m *Machine) State() State { return m.state }

// Designated gives the Designated Router and the Backup, 0 for none: interface addresses in OSPFv2, router IDs
// in OSPFv3.
func (m *Machine) Designated() (dr, bdr packet.ID) { return m.dr, m.bdr }

// Neighbors lists the neighbours by router ID.
func (m *Machine) Neighbors() (all []*Neighbor) {
	for _, id := range slices.Sorted(maps.Keys(m.neighbors)) {
		all = append(all, m.neighbors[id])
	}
	return all
}

// Neighbor gives the neighbour with a router ID; nil when there is none.
func (m *Machine) Neighbor(id packet.ID) *Neighbor { return m.neighbors[id] }

// Dropped counts the packets that were dropped, by reason.
func (m *Machine) Dropped(r Reason) uint64 { return m.dropped[r] }

// Events gives what changed since the last call.
func (m *Machine) Events() []Event {
	for _, n := range m.Neighbors() {
		m.collect(n)
	}
	out := m.events
	m.events = nil
	return out
}

func (m *Machine) collect(n *Neighbor) {
	for _, e := range n.Events() {
		m.events = append(m.events, Event{n.Router(), n.Address, e})
	}
}

// Up is InterfaceUp: the first hello goes out at once. A router of priority 0 does not wait on a broadcast network
// (RFC 2328 section 9.3): it has no say in who is Designated Router, and follows when that changes.
func (m *Machine) Up(now time.Time) {
	if m.state != Down {
		return
	}
	m.hello, m.state = now, PointToPoint
	if m.cfg.Broadcast {
		m.state = DROther
	}
}

// Down is InterfaceDown: all neighbours go.
func (m *Machine) Down(now time.Time) {
	for _, n := range m.Neighbors() {
		n.Kill(now, neighbor.ReasonLinkDown)
		m.forget(n)
	}
	m.state, m.dr, m.bdr, m.hello = Down, 0, 0, time.Time{}
}

func (m *Machine) forget(n *Neighbor) {
	m.collect(n)
	delete(m.neighbors, n.Router())
}

// Reconfigure changes MTU, overhead and retransmission while adjacencies are up; the rest of the configuration
// must be as it was. Neighbours that a hello has no room for any more are not named in it, and fall back by
// themselves.
func (m *Machine) Reconfigure(c Config) {
	m.cfg = c.withDefaults()
	for _, n := range m.neighbors {
		n.Reconfigure(m.cfg.Config)
	}
}

// Flood is where flooded updates and delayed acknowledgments go (RFC 2328 sections 13.3 and 13.5).
func (m *Machine) Flood() netip.Addr {
	if m.cfg.Broadcast {
		return AllDRouters(m.cfg.Version)
	}
	return AllSPFRouters(m.cfg.Version)
}

// Direct is where what is meant for one neighbour goes: descriptions, requests, retransmissions and direct
// acknowledgments. On point-to-point networks all goes to the group (RFC 2328 section 8.1).
func (m *Machine) Direct(n *Neighbor) netip.Addr {
	if m.cfg.Broadcast {
		return n.Address
	}
	return AllSPFRouters(m.cfg.Version)
}

// Tick gives what is to be sent now, and ends what the time has ended.
func (m *Machine) Tick(now time.Time) (out []Send) {
	if m.state == Down {
		return nil
	}
	for _, n := range m.Neighbors() {
		for _, b := range n.Tick(now) {
			out = append(out, Send{m.Direct(n), b})
		}
	}
	m.elect(now)
	if !m.hello.After(now) {
		m.hello = now.Add(m.cfg.Hello)
		out = append(out, Send{AllSPFRouters(m.cfg.Version), m.makeHello()})
	}
	return out
}

// Wake is when Tick has something to do; zero: never.
func (m *Machine) Wake() time.Time {
	if m.state == Down {
		return time.Time{}
	}
	at := m.hello
	for _, n := range m.neighbors {
		if w := n.Wake(); !w.IsZero() && w.Before(at) {
			at = w
		}
	}
	return at
}

func (m *Machine) makeHello() *packet.Hello {
	ids := slices.Sorted(maps.Keys(m.neighbors))
	h := &packet.Hello{
		Mask: m.cfg.mask(), Interface: m.cfg.Interface, Options: m.cfg.Options,
		Interval: uint16(m.cfg.Hello / time.Second), Dead: uint32(m.cfg.Dead / time.Second),
		DR: m.dr, BDR: m.bdr, Neighbors: ids[:min(len(ids), m.cfg.neighborsFit())],
	}
	if m.cfg.Version == packet.V2 {
		h.Options &^= packet.V2OptO // descriptions only
	}
	return h
}

// Leaving is the last hello: it names nobody, so that each neighbour ends its adjacency at once.
func (m *Machine) Leaving() *packet.Hello {
	h := m.makeHello()
	h.DR, h.BDR, h.Neighbors = 0, 0, nil
	return h
}
