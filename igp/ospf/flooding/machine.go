package flooding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// Config says how the machine behaves. Zero values are the defaults, the architectural constants of RFC 2328
// appendix B where there is one.
type Config struct {
	Version packet.Version
	Router  packet.ID

	MinLSInterval time.Duration // at least so long between two instances of an own LSA: 5 s
	MinLSArrival  time.Duration // and between two instances of another's that are taken: 1 s
	Refresh       time.Duration // own LSAs are made again after this: 1800 s
	Retransmit    time.Duration // RxmtInterval: 5 s
	AckDelay      time.Duration // of delayed acknowledgments, below RxmtInterval: 1 s
	TransmitDelay uint16        // InfTransDelay, seconds: 1
	MaxLSAs       int           // of each database: lsdb.DefaultMaxLSAs
}

func (c Config) withDefaults() Config {
	c.MinLSInterval = cmp.Or(c.MinLSInterval, 5*time.Second)
	c.MinLSArrival = cmp.Or(c.MinLSArrival, time.Second)
	c.Refresh = cmp.Or(c.Refresh, 1800*time.Second)
	c.Retransmit = cmp.Or(c.Retransmit, 5*time.Second)
	c.AckDelay = cmp.Or(c.AckDelay, time.Second)
	c.TransmitDelay = cmp.Or(c.TransmitDelay, 1)
	return c
}

// InterfaceID names an interface.
type InterfaceID int

// Peer is a neighbour as the update process sees it.
type Peer interface {
	Router() packet.ID
	// Flooding: the state is Exchange, Loading or Full.
	Flooding() bool
	Full() bool
	// Requested gives what is on the link state request list; Satisfy takes it off.
	Requested(packet.Key) (packet.Header, bool)
	Satisfy(packet.Key)
	// Opaque: it takes opaque LSAs (the O bit of its database descriptions, RFC 5250 section 3.1).
	Opaque() bool
	// Designated: it is the Designated Router or the Backup of its network.
	Designated() bool
}

// Area is what an area takes.
type Area struct {
	ID packet.ID
	// Stub: neither a stub area nor an NSSA takes LSAs of the domain's scope.
	Stub bool
	NSSA bool // type 7 LSAs are taken
}

// Send is a packet to send: to a neighbour, or to all on the interface when To is zero.
type Send struct {
	Interface InterfaceID
	To        packet.ID
	Body      packet.Body
}

// Counters count what became of LSAs that arrived, and what was done.
type Counters struct {
	Stored, Duplicate, Outdated uint64
	BadChecksum                 uint64
	Unsupported                 uint64 // reserved scope, or a type that the area doesn't take
	TooSoon                     uint64 // within MinLSArrival
	UnknownMaxAge               uint64 // acknowledged, not stored
	Full                        uint64 // the database is full
	OwnNewer                    uint64 // own ones of another life
	BadRequest                  uint64 // asked for, and then not newer than what is there
	Retransmitted               uint64
	Acknowledged                uint64
	UnexpectedAcks              uint64 // of an instance that isn't waited for
}

// ErrBadRequest is the event BadLSReq: the neighbour's description and its LSAs contradict each other, and the
// exchange with it begins again (RFC 2328 section 13, step 6).
var ErrBadRequest = errors.New("ospf: an LSA on the request list came, and is not newer than the one in the database")

// Machine is the update process of one router. It is not safe for concurrent use.
type Machine struct {
	cfg    Config
	domain *lsdb.DB
	areas  map[packet.ID]*area
	links  map[InterfaceID]*link
	order  []InterfaceID
	own    map[ownKey]*own
	dying  map[dying]struct{} // LSAs at MaxAge, until they are removed
	out    []Send
	count  Counters
	seen   func(Where, packet.Key) // what changed, for those who read the databases
}

// dying is an LSA at MaxAge.
type dying struct {
	Where
	packet.Key
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
}

type peer struct {
	Peer
	waits map[packet.Key]packet.Header // the link state retransmission list
	again time.Time                    // when it is sent again
}

// Where names a database: that of a link, of an area or of the domain.
type Where struct {
	Scope packet.Scope
	Area  packet.ID
	Link  InterfaceID
}

// New makes a machine without areas and interfaces.
func New(c Config) *Machine {
	c = c.withDefaults()
	return &Machine{
		cfg: c, domain: lsdb.New(c.MaxLSAs), areas: map[packet.ID]*area{}, links: map[InterfaceID]*link{}, own: map[ownKey]*own{},
		dying: map[dying]struct{}{},
		seen:  func(Where, packet.Key) {},
	}
}

// Retime changes the times. Version, router and the bound of databases stay.
func (m *Machine) Retime(c Config) {
	c.Version, c.Router, c.MaxLSAs = m.cfg.Version, m.cfg.Router, m.cfg.MaxLSAs
	m.cfg = c.withDefaults()
}

// OnChange sets who is told of each LSA whose contents changed, came or went.
func (m *Machine) OnChange(f func(Where, packet.Key)) { m.seen = f }

// Counters gives the counts.
func (m *Machine) Counters() Counters { return m.count }

// SetInterface adds an interface, whose packets' bodies may have so many octets, and its area, or changes them.
func (m *Machine) SetInterface(id InterfaceID, a Area, size int) {
	at := m.areas[a.ID]
	if at == nil {
		at = &area{db: lsdb.New(m.cfg.MaxLSAs)}
		m.areas[a.ID] = at
	}
	at.Area = a
	if l := m.links[id]; l != nil {
		before := l.area
		l.area, l.size = at, size
		m.leave(before)
		return
	}
	m.links[id] = &link{id: id, area: at, size: size, db: lsdb.New(m.cfg.MaxLSAs), peers: map[packet.ID]*peer{}}
	m.order = append(m.order, id)
	slices.Sort(m.order)
}

// RemoveInterface forgets an interface with its neighbours, its link-scope LSAs, and its area if it was the
// last one.
func (m *Machine) RemoveInterface(id InterfaceID) {
	l := m.links[id]
	if l == nil {
		return
	}
	delete(m.links, id)
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
		l.peers[p.Router()] = &peer{Peer: p, waits: map[packet.Key]packet.Header{}}
	}
}

// RemovePeer forgets a neighbour, as when it falls below Exchange: its retransmission list goes with it.
func (m *Machine) RemovePeer(id InterfaceID, router packet.ID) {
	if l := m.links[id]; l != nil {
		delete(l.peers, router)
	}
}

// DB gives a database; nil when there is no such area or interface.
func (m *Machine) DB(w Where) *lsdb.DB {
	switch w.Scope {
	case packet.ScopeLink:
		if l := m.links[w.Link]; l != nil {
			return l.db
		}
	case packet.ScopeArea:
		if a := m.areas[w.Area]; a != nil {
			return a.db
		}
	case packet.ScopeAS:
		return m.domain
	}
	return nil
}

// where gives the database that an LSA on a link belongs to, and false when nothing there takes it
// (RFC 2328 section 13 steps 2 and 3, RFC 5250 section 3.1, RFC 3101 section 2.2, RFC 5340 section 4.5.1).
func (m *Machine) where(l *link, t packet.LSType) (Where, bool) {
	switch s := t.Scope(m.cfg.Version); s {
	case packet.ScopeLink:
		return Where{Scope: s, Link: l.id}, true
	case packet.ScopeArea:
		return Where{Scope: s, Area: l.area.ID}, !t.NSSA(m.cfg.Version) || l.area.NSSA
	case packet.ScopeAS:
		return Where{Scope: s}, !l.area.Stub && !l.area.NSSA
	}
	return Where{}, false
}

// WhereOf gives the database that LSAs of a type belong to on an interface, and false when nothing there takes
// them.
func (m *Machine) WhereOf(id InterfaceID, t packet.LSType) (Where, bool) {
	if l := m.links[id]; l != nil {
		return m.where(l, t)
	}
	return Where{}, false
}

// Reaching lists the databases whose LSAs go out on an interface: that of the link, of its area, and of the
// domain unless it is a stub area or an NSSA.
func (m *Machine) Reaching(id InterfaceID) (all []Where) {
	l := m.links[id]
	if l == nil {
		return nil
	}
	all = []Where{{Scope: packet.ScopeLink, Link: id}, {Scope: packet.ScopeArea, Area: l.area.ID}}
	if w := (Where{Scope: packet.ScopeAS}); w.reaches(l) {
		all = append(all, w)
	}
	return all
}

// reaches reports whether LSAs of a database go out on a link.
func (w Where) reaches(l *link) bool {
	switch w.Scope {
	case packet.ScopeLink:
		return l.id == w.Link
	case packet.ScopeArea:
		return l.area.ID == w.Area
	}
	return !l.area.Stub && !l.area.NSSA
}

// eachLink calls f for the links that LSAs of a database go out on, in order.
func (m *Machine) eachLink(w Where, f func(*link)) {
	for _, id := range m.order {
		if l := m.links[id]; w.reaches(l) {
			f(l)
		}
	}
}

// exchanging reports whether a neighbour that sees the database is in state Exchange or Loading.
func (m *Machine) exchanging(w Where) (yes bool) {
	m.eachLink(w, func(l *link) {
		for _, p := range l.peers {
			yes = yes || p.Flooding() && !p.Full()
		}
	})
	return yes
}

func (m *Machine) send(id InterfaceID, to packet.ID, b packet.Body) {
	m.out = append(m.out, Send{id, to, b})
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
