package flooding

import (
	"cmp"
	"errors"
	"time"

	"pncd/igp/due"
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
	MaxLSAs       int           // of each database: lsdb.DefaultMaxLSAs
	Burst         int           // LSAs flooded on an interface, or sent to a neighbour again, at once: 256
	BurstInterval time.Duration // and then none is flooded there for so long, below RxmtInterval: 25 ms
}

func (c Config) withDefaults() Config {
	c.MinLSInterval = cmp.Or(c.MinLSInterval, 5*time.Second)
	c.MinLSArrival = cmp.Or(c.MinLSArrival, time.Second)
	c.Refresh = cmp.Or(c.Refresh, 1800*time.Second)
	c.Retransmit = cmp.Or(c.Retransmit, 5*time.Second)
	c.AckDelay = cmp.Or(c.AckDelay, time.Second)
	c.Burst = cmp.Or(c.Burst, 256)
	c.BurstInterval = cmp.Or(c.BurstInterval, 25*time.Millisecond)
	return c
}

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
	Full                        uint64 // the database is full: neither stored nor acknowledged
	BelowExchange               uint64 // updates and acknowledgments of those with whom nothing is exchanged
	OwnNewer                    uint64 // own ones of another life
	BadRequest                  uint64 // asked for, and then not newer than what is there
	Withheld                    uint64 // Extended Prefix LSAs of the domain's scope: stored, passed on to nobody
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
	plan   *due.Queue[ownKey] // when own LSAs are made
	dying  dying
	now    time.Time // the latest that was passed in
	out    []Send
	count  Counters
	seen   func(Where, packet.Key) // what changed, for those who read the databases
}

// New makes a machine without areas and interfaces.
func New(c Config) *Machine {
	c = c.withDefaults()
	return &Machine{
		cfg: c, domain: lsdb.New(c.MaxLSAs), areas: map[packet.ID]*area{}, links: map[InterfaceID]*link{}, own: map[ownKey]*own{},
		plan: due.New(ownKey.compare), dying: newDying(),
		seen: func(Where, packet.Key) {},
	}
}

// Retime changes the times. Version, router and the bound of databases stay.
func (m *Machine) Retime(c Config) {
	c.Version, c.Router, c.MaxLSAs = m.cfg.Version, m.cfg.Router, m.cfg.MaxLSAs
	m.cfg = c.withDefaults()
	for k, o := range m.own {
		m.replan(k, o)
	}
}

// OnChange sets who is told of each LSA whose contents changed, came or went.
func (m *Machine) OnChange(f func(Where, packet.Key)) { m.seen = f }

// Counters gives the counts.
func (m *Machine) Counters() Counters { return m.count }

func (m *Machine) send(id InterfaceID, to packet.ID, b packet.Body) {
	m.out = append(m.out, Send{id, to, b})
}
