package neighbor

import "time"

// Grace is a neighbour's wish to be helped through a restart, with what the owner knows of it (RFC 3623 section
// 3.1, RFC 5187 section 3.1).
type Grace struct {
	Period time.Duration // of the grace LSA
	Age    time.Duration // of the grace LSA: how long ago the period began
	// Changed says that LSAs other than periodic refreshes wait on the neighbour's retransmission list: the
	// topology has changed since it restarted.
	Changed bool
	Allowed bool // local policy
}

// Refusal says why a neighbour is not helped.
type Refusal uint8

// The refusals.
const (
	RefusalNone    Refusal = iota
	RefusalState           // the adjacency is not full
	RefusalChanged         // the topology has changed since the restart
	RefusalExpired         // the grace period is over
	RefusalPolicy          // not allowed by configuration
)

// String gives the name that counters use.
func (r Refusal) String() string {
	return [...]string{"none", "state", "changed", "expired", "policy"}[r]
}

// Help enters helper mode, or renews it: until the grace period ends the neighbour is not taken down for want
// of hellos, nor for hellos that don't name this system.
func (m *Machine) Help(now time.Time, g Grace) Refusal {
	m.now = now
	renewed := !m.helping.IsZero()
	switch {
	case m.state != Full && !renewed:
		return RefusalState
	case g.Changed && !renewed:
		return RefusalChanged
	case g.Period <= g.Age:
		return RefusalExpired
	case !g.Allowed:
		return RefusalPolicy
	}
	m.helping = now.Add(g.Period - g.Age)
	return RefusalNone
}

// Helping gives the end of the grace period; zero when the neighbour does not restart.
func (m *Machine) Helping() time.Time { return m.helping }

// HelpEnds leaves helper mode: the grace LSA was flushed, or the topology changed (RFC 3623 section 3.2). A
// neighbour that is silent, or doesn't know this system, goes down the usual way.
func (m *Machine) HelpEnds(now time.Time) {
	m.now = now
	if m.helping.IsZero() {
		return
	}
	m.helping = time.Time{}
	if m.oneWay {
		m.oneWay = false
		m.OneWay(now)
	}
}

func (m *Machine) tickHelper() {
	if due(m.helping, m.now) {
		m.HelpEnds(m.now)
	}
}
