package evidence

import (
	"sync/atomic"

	pncv1 "pncd/api/pnc/v1"
)

// Counters counts outcomes, and what was received, exactly. The zero value is ready; all methods may
// be called from any goroutine and none waits.
type Counters struct {
	outcomes [maxOutcomes]paddedCounter
	received [PartProxy + 1]paddedCounter
}

// paddedCounter fills a cache line, so that the two parts don't slow each other down.
type paddedCounter struct {
	atomic.Uint64
	_ [56]byte
}

// Count adds n to an outcome. A number that the enum does not have is counted as unspecified, so that
// it shows.
func (c *Counters) Count(o Outcome, n uint64) {
	if PartOf(o) == PartNone {
		o = pncv1.Outcome_OUTCOME_UNSPECIFIED
	}
	c.outcomes[o].Add(n)
}

// Received adds n to what a part received: congestion events or notifications. Whoever adds to it
// gives each of them exactly one outcome before long.
func (c *Counters) Received(p Part, n uint64) {
	if p > PartProxy {
		p = PartNone
	}
	c.received[p].Add(n)
}

// Outcome reads one outcome's counter.
func (c *Counters) Outcome(o Outcome) uint64 {
	if o < 0 || o >= maxOutcomes {
		return 0
	}
	return c.outcomes[o].Load()
}

// TotalReceived reads what a part received.
func (c *Counters) TotalReceived(p Part) uint64 {
	if p > PartProxy {
		return 0
	}
	return c.received[p].Load()
}

// Sum adds up the outcomes of a part. It equals TotalReceived whenever nothing is being decided.
func (c *Counters) Sum(p Part) uint64 {
	var sum uint64
	for o := range c.outcomes {
		if PartOf(Outcome(o)) == p && p != PartNone {
			sum += c.outcomes[o].Load()
		}
	}
	return sum
}

// Count is one counter with its name and help text.
type Count struct {
	Part    Part
	Outcome Outcome // unspecified for the counter "received"
	Name    string
	Value   uint64
	Help    string
}

var receivedHelp = [...]string{
	PartCongestionNode: "Congestion events received from the detectors.",
	PartProxy:          "Notifications that reached this proxy's sockets, those that the kernel dropped there included.",
}

// Snapshot reads all counters, by part and outcome, each part's "received" first.
func (c *Counters) Snapshot() []Count {
	var all []Count
	for _, p := range []Part{PartCongestionNode, PartProxy} {
		all = append(all, Count{Part: p, Name: "received", Value: c.TotalReceived(p), Help: receivedHelp[p]})
		for _, o := range Outcomes(p) {
			all = append(all, Count{Part: p, Outcome: o, Name: Name(o), Value: c.Outcome(o), Help: Help(o)})
		}
	}
	return all
}

// ToProto is the counter as the API gives it.
func (c Count) ToProto() *pncv1.Counter {
	return &pncv1.Counter{Part: c.Part.String(), Name: c.Name, Value: c.Value, Help: c.Help}
}
