package learner

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
)

// State is where the conversation with the daemon stands.
type State uint8

// The states.
const (
	Down        State = iota
	Registering       // for changes
	Probing           // whether there is an OSPF instance
	Syncing           // the database is coming
	Synced
)

// String gives the state's name.
func (s State) String() string {
	return [...]string{"down", "registering", "waiting for an OSPF instance", "syncing", "synced"}[min(s, Synced)]
}

// ErrSilent is given when the daemon owes an answer for too long.
var ErrSilent = errors.New("ospf api: the daemon doesn't answer")

// ErrProtocol is given when the daemon says what it must not.
var ErrProtocol = errors.New("ospf api: not what the protocol says")

// RefusedError is given when the daemon refuses a request.
type RefusedError struct {
	Request message.Type
	Code    message.Code
}

// Error says which, and how.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("ospf api: the daemon refuses %s: %s", e.Request, e.Code)
}

// Out is a request to send.
type Out struct {
	Sequence uint32
	Request  message.Request
}

// Message gives the request with its header.
func (o Out) Message() message.Message {
	return message.Message{Sequence: o.Sequence, Body: o.Request}
}

// Machine is a learner. It is not safe for concurrent use. An error of its methods means that the connection is of
// no use any more: the caller closes it, and says so by Disconnected.
type Machine struct {
	cfg      Config
	state    State
	sequence uint32    // of the next request
	waits    *Out      // sent, not answered
	heard    time.Time // when the daemon last said something, or was asked

	addresses map[netip.Addr]bool // interfaces to probe for
	round     []netip.Addr        // of them, those not asked for in this round
	probeAt   time.Time           // next round
	probeWait time.Duration
	syncAsked bool   // the database was asked for
	markAt    uint32 // sequence number of the question whose answer marks the end of the database
	marked    bool   // it has come

	routerID   packet.ID
	generation uint64
	areas      map[packet.ID]*area
	lost       time.Time // when the database was last known to be the daemon's; zero: it is
	believed   bool
	learned    []igp.Learned
	counters   Counters
}

// New makes a learner that has no connection.
func New(c Config) (*Machine, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	return &Machine{cfg: c, routerID: c.RouterID, areas: map[packet.ID]*area{}, counters: newCounters()}, nil
}

// Connected says that there is a connection, with the sequence number of the first request, which should be one that
// nobody can guess, and addresses that the router may have.
func (m *Machine) Connected(now time.Time, sequence uint32, addresses []netip.Addr) {
	m.state, m.waits, m.heard, m.syncAsked, m.marked, m.markAt = Registering, nil, now, false, false, 0
	m.sequence = max(sequence&message.MaxSequence, message.MinSequence)
	m.addresses, m.round, m.probeAt, m.probeWait = map[netip.Addr]bool{}, nil, now, firstProbe
	m.generation++
	for _, a := range slices.Concat(m.cfg.Addresses, addresses) {
		m.address(a)
	}
	m.counters.Connections++
}

// Disconnected says that the connection is gone.
func (m *Machine) Disconnected(now time.Time) {
	if m.state == Synced {
		m.lost = now
	}
	m.state, m.waits = Down, nil
}

// address adds one to probe for.
func (m *Machine) address(a netip.Addr) {
	if a = a.Unmap(); a.Is4() && !a.IsLoopback() && !a.IsUnspecified() && len(m.addresses) < maxAddresses {
		m.addresses[a] = true
	}
}

// news says that something happened at an interface: there is an instance, or soon is, perhaps in the default VRF.
func (m *Machine) news(now time.Time, a netip.Addr) {
	m.address(a)
	if m.state == Probing {
		m.probeAt, m.probeWait = now, firstProbe
	}
}

// State is where the conversation stands.
func (m *Machine) State() State { return m.state }

// Owed reports that the daemon has not answered, or not told its whole database yet.
func (m *Machine) Owed() bool { return m.waits != nil || m.state == Syncing }

// Reply takes a message of the connection for requests.
func (m *Machine) Reply(now time.Time, in message.Message) error {
	r, ok := in.Body.(message.Reply)
	if !ok || m.waits == nil || in.Sequence != m.waits.Sequence {
		return fmt.Errorf("%w: %s with sequence number %d in place of a reply", ErrProtocol, in.Body.Type(), in.Sequence)
	}
	asked := m.waits.Request
	m.waits, m.heard = nil, now
	m.counters.Received[in.Body.Type()]++
	if _, probe := asked.(message.InstanceProbe); probe {
		switch r.Code {
		case message.OpaqueNotRegistered:
			m.state, m.round = Syncing, nil
			return nil
		case message.NoSuchInterface:
			return nil
		}
	} else if r.Code == message.OK {
		if m.state == Registering {
			m.state = Probing
		}
		m.synced()
		return nil
	}
	return &RefusedError{asked.Type(), r.Code}
}

// Notify takes a message of the other connection.
func (m *Machine) Notify(now time.Time, in message.Message) error {
	if m.state == Down {
		return nil
	}
	m.heard = now
	m.counters.Received[in.Body.Type()]++
	switch b := in.Body.(type) {
	case message.LSAChange:
		m.change(now, b)
	case message.RouterID:
		if m.cfg.RouterID == 0 && b.ID != 0 {
			m.root(b.ID)
		}
		if in.Sequence == m.markAt && m.markAt != 0 {
			m.marked = true
			m.synced()
		}
	case message.NewInterface:
		m.news(now, b.Interface)
	case message.InterfaceState:
		m.news(now, b.Interface)
	case message.NeighborState:
		m.news(now, b.Interface)
	case message.Reply:
		return fmt.Errorf("%w: a reply on the connection for news", ErrProtocol)
	}
	return nil
}

// Unreadable counts a message that couldn't be parsed.
func (m *Machine) Unreadable() { m.counters.Dropped[Unreadable]++ }

// synced ends the synchronization when both answers to the last question are there: which comes first is not said.
func (m *Machine) synced() {
	if m.state != Syncing || !m.marked || m.waits != nil {
		return
	}
	m.state, m.believed, m.lost = Synced, true, time.Time{}
	m.counters.Syncs++
	for _, a := range m.areas {
		a.sweep(m.generation)
	}
}

// Tick gives what is to be sent now.
func (m *Machine) Tick(now time.Time) (out []Out, err error) {
	m.age(now)
	m.learn(now)
	if m.waits != nil || m.state == Syncing && m.markAt != 0 {
		if now.Sub(m.heard) >= m.cfg.ReplyTimeout {
			return nil, fmt.Errorf("%w in %s (%s)", ErrSilent, m.cfg.ReplyTimeout, m.state)
		}
		return nil, nil
	}
	if r := m.next(now); r != nil {
		m.waits, m.heard = &Out{m.sequence, r}, now
		if m.sequence++; m.sequence > message.MaxSequence {
			m.sequence = message.MinSequence
		}
		if r.Type() == message.TypeSyncRouterID {
			m.markAt = m.waits.Sequence
		}
		return []Out{*m.waits}, nil
	}
	return nil, nil
}

// filter is what is of interest: what reachability takes, what prefixes are marked in, and which addresses routers
// have.
var filter = message.Filter{Types: message.TypeMask(packet.V2Router, packet.V2Network, packet.V2Summary, packet.V2OpaqueArea), Origin: message.OriginAny}

// next is the request that is due when nothing else is.
func (m *Machine) next(now time.Time) message.Request {
	switch m.state {
	case Registering:
		return message.RegisterEvent{Filter: filter}
	case Probing:
		return m.probe(now)
	case Syncing:
		if m.syncAsked {
			return message.SyncRouterID{}
		}
		m.syncAsked = true
		return message.SyncLSDB{Filter: filter}
	case Synced:
		if now.Sub(m.heard) >= m.cfg.Keepalive {
			// To register again changes nothing, and is safe whatever happened to the daemon's instance.
			return message.RegisterEvent{Filter: filter}
		}
	}
	return nil
}

// probe asks for the next address of a round, when it is time.
func (m *Machine) probe(now time.Time) message.Request {
	if len(m.round) == 0 {
		if now.Before(m.probeAt) {
			return nil
		}
		m.round = slices.SortedFunc(maps.Keys(m.addresses), netip.Addr.Compare)
		m.probeAt = now.Add(m.probeWait)
		m.probeWait = min(2*m.probeWait, lastProbe)
		if len(m.round) == 0 {
			return nil
		}
	}
	a := m.round[0]
	m.round = m.round[1:]
	return message.InstanceProbe{Interface: a}
}

// Wake is when Tick has something to do without any news; zero: not known.
func (m *Machine) Wake() (at time.Time) {
	for _, a := range m.areas {
		at = earlier(at, a.wake())
		if m.state == Synced {
			at = earlier(at, a.learn.Wake())
		}
	}
	if m.believed && !m.lost.IsZero() {
		at = earlier(at, m.lost.Add(m.cfg.Hold))
	}
	switch {
	case m.state == Down:
	case m.waits != nil || m.state == Syncing && m.markAt != 0:
		at = earlier(at, m.heard.Add(m.cfg.ReplyTimeout))
	case m.state == Probing && len(m.round) == 0:
		at = earlier(at, m.probeAt)
	case m.state == Synced:
		at = earlier(at, m.heard.Add(m.cfg.Keepalive))
	default:
		at = earlier(at, m.heard) // at once
	}
	return at
}
