package notifier

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// Resolver answers which proxy serves a sender, without waiting: from a snapshot of the capability
// table. The hash identifies the flow.
type Resolver interface {
	Resolve(context string, sender netip.Addr, hash uint64) pnc.Resolution
}

// ResolverFunc is a function as a Resolver.
type ResolverFunc func(context string, sender netip.Addr, hash uint64) pnc.Resolution

// Resolve calls the function.
func (f ResolverFunc) Resolve(context string, sender netip.Addr, hash uint64) pnc.Resolution {
	return f(context, sender, hash)
}

// Sender puts whole IP packets on the wire. It returns how many of the first ones left; when that is
// not all, err is why the next one did not.
type Sender interface {
	Send(packets [][]byte) (sent int, err error)
}

// Deps is what a Notifier works with. All are required.
type Deps struct {
	Resolver Resolver
	Sender   Sender
	Recorder *evidence.Recorder
	Random   func() uint64 // starts the event numbers
}

// Notifier turns congestion events into notifications. Its methods may be called from any goroutine.
type Notifier struct {
	sender   Sender
	recorder *evidence.Recorder
	enabled  atomic.Bool

	mu      sync.Mutex // held while an event is decided and sent: detectors are few and sending is short
	core    *core
	record  evidence.Record
	packets [1][]byte
}

// New returns a Notifier that is not enabled. It fails when the configuration is out of range.
func New(cfg Config, deps Deps) (*Notifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	switch {
	case deps.Resolver == nil:
		return nil, errors.New("notifier: Resolver: not given")
	case deps.Sender == nil:
		return nil, errors.New("notifier: Sender: not given")
	case deps.Recorder == nil:
		return nil, errors.New("notifier: Recorder: not given")
	case deps.Random == nil:
		return nil, errors.New("notifier: Random: not given")
	}
	return &Notifier{
		sender: deps.Sender, recorder: deps.Recorder,
		core: newCore(cfg, deps.Resolver.Resolve, deps.Random),
	}, nil
}

// SetEnabled switches notifying on or off. Off, each event ends in the outcome disabled; an event that
// is being decided is waited for, so that nothing is sent once SetEnabled(false) has returned.
func (n *Notifier) SetEnabled(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enabled.Store(on)
}

// Enabled reports whether notifying is on.
func (n *Notifier) Enabled() bool { return n.enabled.Load() }

// Reconfigure changes the configuration of a running Notifier, except for MaxFlows; pacing state and
// event numbers stay. On an error nothing has changed.
func (n *Notifier) Reconfigure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.core.reconfigure(cfg)
	return nil
}

// Handle takes one congestion event to its outcome: one counter, one record. It does not allocate
// unless sending fails.
func (n *Notifier) Handle(ev *Event, now time.Time) evidence.Outcome {
	n.recorder.Received(evidence.PartCongestionNode, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	rec := &n.record
	if !n.enabled.Load() {
		ev.describe(now, rec)
		rec.Outcome = pncv1.Outcome_OUTCOME_DISABLED
	} else if packet := n.core.decide(ev, now, rec); packet != nil {
		n.core.settle(rec, n.send(packet))
	}
	n.recorder.Record(rec)
	return rec.Outcome
}

var errNotSent = errors.New("the packet was not sent")

func (n *Notifier) send(packet []byte) error {
	n.packets[0] = packet
	sent, err := n.sender.Send(n.packets[:])
	if sent == 1 {
		return nil
	}
	if err == nil {
		err = errNotSent
	}
	return err
}

// Stats describes the bounded state.
type Stats struct {
	Flows        int    // flows that pacing remembers
	FlowsEvicted uint64 // flows that made room for others
	Proxies      int    // proxies with an event number
}

// Stats reads the bounded state.
func (n *Notifier) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Stats{
		Flows: n.core.flows.Len(), FlowsEvicted: n.core.flows.Evicted(), Proxies: n.core.proxies.Len(),
	}
}
