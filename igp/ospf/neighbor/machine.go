package neighbor

import (
	"time"

	"pncd/igp/ospf/packet"
)

// Machine is one neighbour. It is not safe for concurrent use.
type Machine struct {
	cfg    Config
	id     packet.ID
	db     Database
	now    time.Time // the latest that was passed in
	state  State
	since  time.Time
	wanted bool // an adjacency, as the interface decided last

	inactive time.Time // when the inactivity timer fires; zero: it does not run
	helping  time.Time // the end of the grace period; zero: the neighbour does not restart
	oneWay   bool      // while helping: the last hello didn't name this system

	exchange
	requests
	answers

	events  []Event
	dropped [reasonCount]uint64
}

// New makes the machine of a neighbour that nothing was heard of yet. id is its router ID.
func New(c Config, id packet.ID, db Database) *Machine {
	return &Machine{cfg: c.withDefaults(), id: id, db: db}
}

// Router is the neighbour's router ID.
func (m *Machine) Router() packet.ID { return m.id }

// State gives the state and since when it holds.
func (m *Machine) State() (State, time.Time) { return m.state, m.since }

// Expires is when the neighbour goes down without another hello; zero: it doesn't.
func (m *Machine) Expires() time.Time { return m.inactive }

// Flooding reports whether LSAs are flooded to the neighbour, and its updates and acknowledgments are taken
// (RFC 2328 sections 13 and 13.3): from Exchange on.
func (m *Machine) Flooding() bool { return m.state >= Exchange }

// Full reports whether the adjacency is complete.
func (m *Machine) Full() bool { return m.state == Full }

// Announced reports whether the router's own LSA names the neighbour: in Full, and as long as this system
// helps it to restart (RFC 3623 section 3).
func (m *Machine) Announced() bool { return m.state == Full || !m.helping.IsZero() }

// Dropped counts what was dropped, and the steps back, by reason.
func (m *Machine) Dropped(r Reason) uint64 { return m.dropped[r] }

// Events gives what changed since the last call.
func (m *Machine) Events() []Event {
	out := m.events
	m.events = nil
	return out
}

// Reconfigure changes the interface's parameters: they hold from the next packet on. A new MTU shows in the
// description that is sent next, be it sent again: the neighbour may drop it for the old one.
func (m *Machine) Reconfigure(c Config) {
	m.cfg = c.withDefaults()
	if m.sent != nil {
		m.sent.MTU = m.cfg.mtu()
	}
}

// Hello is HelloReceived: a hello passed the interface's checks.
func (m *Machine) Hello(now time.Time) {
	m.now = now
	m.inactive = now.Add(m.cfg.Dead)
	if m.state == Down {
		m.become(Init, ReasonNone)
	}
}

// TwoWay is 2-WayReceived: the hello names this system.
func (m *Machine) TwoWay(now time.Time) {
	m.now, m.oneWay = now, false
	if m.state != Init {
		return
	}
	if m.wanted {
		m.start(ReasonNone)
	} else {
		m.become(TwoWay, ReasonNone)
	}
}

// OneWay is 1-WayReceived: the hello doesn't name this system. A neighbour that restarts begins with such
// hellos, which a helper does not mind (RFC 3623 section 3).
func (m *Machine) OneWay(now time.Time) {
	m.now = now
	if !m.helping.IsZero() {
		m.oneWay = true
		return
	}
	if m.state >= TwoWay {
		m.dropped[ReasonOneWay]++
		m.become(Init, ReasonOneWay)
	}
}

// AdjOK is AdjOK?: whether an adjacency is wanted, which the interface decides (RFC 2328 section 10.4).
func (m *Machine) AdjOK(now time.Time, wanted bool) {
	m.now, m.wanted = now, wanted
	switch {
	case m.state == TwoWay && wanted:
		m.start(ReasonNone)
	case m.state > TwoWay && !wanted:
		m.helping = time.Time{}
		m.dropped[ReasonNotWanted]++
		m.become(TwoWay, ReasonNotWanted)
	}
}

// Kill ends the neighbour for a reason: ReasonKilled (KillNbr), ReasonLinkDown (LLDown).
func (m *Machine) Kill(now time.Time, why Reason) {
	m.now, m.inactive, m.helping, m.oneWay = now, time.Time{}, time.Time{}, false
	if m.state > Down {
		m.dropped[why]++
		m.become(Down, why)
	}
}

// again is SeqNumberMismatch, and BadLSReq: the exchange begins anew.
func (m *Machine) again(why Reason) Reason {
	m.dropped[why]++
	if m.state >= Exchange {
		m.start(why)
	}
	return why
}

// BadRequest is BadLSReq as the flooding machine finds it: the neighbour answers a request with an LSA that
// is older than what it described (RFC 2328 section 13, step 6).
func (m *Machine) BadRequest(now time.Time) {
	m.now = now
	m.again(ReasonBadRequest)
}

// become changes the state. What belongs to an exchange goes with it.
func (m *Machine) become(s State, why Reason) {
	from := m.state
	m.state, m.since = s, m.now
	if s <= ExStart {
		m.exchange.clear()
		m.requests.clear()
		m.answers.clear()
	}
	m.events = append(m.events, Event{from, s, why})
}

// Receive takes a database description or a link state request. It gives the reason when the packet, or a
// part of it, was dropped.
func (m *Machine) Receive(now time.Time, b packet.Body) Reason {
	m.now = now
	switch b := b.(type) {
	case *packet.Description:
		return m.receiveDescription(b)
	case *packet.Request:
		return m.receiveRequest(b)
	}
	return m.drop(ReasonWrongKind)
}

func (m *Machine) drop(why Reason) Reason {
	m.dropped[why]++
	return why
}

// Tick gives what is to be sent to the neighbour now, and ends what the time has ended.
func (m *Machine) Tick(now time.Time) (out []packet.Body) {
	m.now = now
	m.tickHelper()
	if m.helping.IsZero() && due(m.inactive, now) {
		m.Kill(now, ReasonInactive)
	}
	if d := m.tickDescription(); d != nil {
		out = append(out, d)
	}
	if r := m.tickRequest(); r != nil {
		out = append(out, r)
	}
	return append(out, m.tickAnswers()...)
}

// Wake is when Tick has something to do; zero: never.
func (m *Machine) Wake() (at time.Time) {
	inactive := m.inactive
	if !m.helping.IsZero() {
		inactive = m.helping
	}
	at = first(inactive, first(m.sendAt, first(m.freeAt, m.askAt)))
	if len(m.queue) > 0 {
		at = first(at, m.now)
	}
	return at
}

// due reports whether a timer that runs has fired.
func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// first is the earlier one of two times; zero ones don't count.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
