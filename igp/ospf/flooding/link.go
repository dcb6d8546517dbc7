package flooding

import (
	"fmt"
	"slices"
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// InterfaceID names an interface.
type InterfaceID int

// Area is what an area takes.
type Area struct {
	ID packet.ID
	// Stub: neither a stub area nor an NSSA takes LSAs of the domain's scope.
	Stub bool
	NSSA bool // type 7 LSAs are taken
}

type area struct {
	Area
	db *lsdb.DB
}

type link struct {
	id    InterfaceID
	area  *area
	size  int // octets that a packet's body may have
	db    *lsdb.DB
	peers map[packet.ID]*peer
	acks  []packet.Header
	ackAt time.Time

	address    packet.ID     // OSPFv2: the interface's; 0: not known
	delay      uint16        // InfTransDelay, seconds
	retransmit time.Duration // RxmtInterval

	queue  []packet.Key // to be flooded here
	queued map[packet.Key]struct{}
	next   time.Time // nothing is flooded before
}

// clear forgets what is under way on the link.
func (l *link) clear() {
	l.queue, l.acks = nil, nil
	clear(l.queued)
	for router, p := range l.peers {
		l.peers[router] = newPeer(p.Peer)
	}
}

// SetInterface adds an interface, whose packets' bodies may have so many octets, and its area, or changes them.
func (m *Machine) SetInterface(id InterfaceID, a Area, size int) {
	at := m.areas[a.ID]
	if at == nil {
		at = &area{db: lsdb.New(m.cfg.MaxLSAs)}
		m.areas[a.ID] = at
	}
	l := m.links[id]
	if l == nil {
		at.Area = a
		m.links[id] = &link{
			id: id, area: at, size: size, delay: 1, retransmit: m.cfg.Retransmit, db: lsdb.New(m.cfg.MaxLSAs), peers: map[packet.ID]*peer{}, queued: map[packet.Key]struct{}{},
		}
		m.order = append(m.order, id)
		slices.Sort(m.order)
		return
	}
	m.checkAll(l) // what goes out there may become less
	before := l.area
	at.Area = a
	if l.area, l.size = at, size; before != at {
		l.clear()
		m.leave(before)
	}
}

// SetAddress tells the address of an interface of OSPFv2, as an ID. A network LSA that is named by it was this
// router's under another router ID, and is flushed (RFC 2328 section 13.4).
func (m *Machine) SetAddress(id InterfaceID, address packet.ID) {
	if l := m.links[id]; l != nil {
		l.address = address
	}
}

// SetTimes sets an interface's InfTransDelay, seconds, by which the age of what goes out there grows, and its
// RxmtInterval. Without, they are 1 s and that of the configuration.
func (m *Machine) SetTimes(id InterfaceID, delay uint16, retransmit time.Duration) {
	if l := m.links[id]; l != nil {
		l.delay, l.retransmit = delay, retransmit
	}
}

// RemoveInterface forgets an interface with its neighbours, its link-scope LSAs, and its area if it was the
// last one.
func (m *Machine) RemoveInterface(id InterfaceID) {
	l := m.links[id]
	if l == nil {
		return
	}
	delete(m.links, id)
	m.checkAll(l)
	m.order = slices.DeleteFunc(m.order, func(o InterfaceID) bool { return o == id })
	m.forget(func(w Where) bool { return w.Scope == packet.ScopeLink && w.Link == id })
	m.leave(l.area)
}

// leave forgets an area that no interface is in any more.
func (m *Machine) leave(a *area) {
	for _, l := range m.links {
		if l.area == a {
			return
		}
	}
	delete(m.areas, a.ID)
	m.forget(func(w Where) bool { return w.Scope == packet.ScopeArea && w.Area == a.ID })
}

// SetPeer adds a neighbour of an interface.
func (m *Machine) SetPeer(id InterfaceID, p Peer) {
	if l := m.links[id]; l != nil {
		l.peers[p.Router()] = newPeer(p)
		m.checkAll(l)
	}
}

// RemovePeer forgets a neighbour, as when it falls below Exchange: its retransmission list goes with it.
func (m *Machine) RemovePeer(id InterfaceID, router packet.ID) {
	if l := m.links[id]; l != nil {
		delete(l.peers, router)
		m.checkAll(l)
	}
}

// peerOf gives a neighbour that may exchange LSAs.
func (m *Machine) peerOf(id InterfaceID, router packet.ID) (*link, *peer, error) {
	l := m.links[id]
	if l == nil {
		return nil, nil, fmt.Errorf("ospf: interface %d is not there", id)
	}
	p := l.peers[router]
	if p == nil || !p.Flooding() {
		return nil, nil, fmt.Errorf("ospf: neighbour %s: its state is below Exchange (RFC 2328 section 13)", router)
	}
	return l, p, nil
}

// senderOf gives the neighbour that a packet came from, and counts the packet if there is none.
func (m *Machine) senderOf(id InterfaceID, router packet.ID) (*link, *peer, error) {
	l, p, err := m.peerOf(id, router)
	if err != nil {
		m.count.BelowExchange++
	}
	return l, p, err
}
