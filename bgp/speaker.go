package bgp

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/bgp/engine"
	"pncd/pnc"
)

// RouteSink gets what is learned; *pnc.Table is one.
type RouteSink interface {
	// Apply applies a batch of updates as one change.
	Apply(now time.Time, updates ...pnc.Update)
	// Disregard records that a PNC was seen and is not believed.
	Disregard(now time.Time, e pnc.Event)
}

// What a Speaker answers to requests that it can't fulfil.
var (
	// ErrRestart says that a change needs a restart of the program.
	ErrRestart = errors.New("needs a restart")
	// ErrDisabled says that the mechanism is off, so nothing is originated.
	ErrDisabled = errors.New("the mechanism is disabled")
	// ErrNotAdvertised says that there is nothing to withdraw.
	ErrNotAdvertised = errors.New("not advertised by request")
	// ErrConfigured says that a prefix is announced by configuration and not by request.
	ErrConfigured = errors.New("announced by configuration")
	// ErrNotRunning says that the speaker doesn't run.
	ErrNotRunning = errors.New("the BGP speaker isn't running")
)

// stopTimeout bounds how long a clean stop waits for the withdrawals to go out.
const stopTimeout = 5 * time.Second

// Speaker keeps the sessions, learns and announces. Its methods are safe for concurrent use.
type Speaker struct {
	eng   engine.Engine
	sink  RouteSink
	clock func() time.Time
	log   logrus.FieldLogger
	ready chan struct{} // closed when the sessions are being kept

	established, configured atomic.Int32 // sessions; written under mu, read without

	mu      sync.Mutex
	cfg     Config // complete: defaults filled in
	running bool
	rib     *rib
	orig    *originator
	vpn     vpnOriginator
}

// NewSpeaker makes a speaker on GoBGP. There can be one in a process, and it runs once. The clock
// may be nil for the system's. Nothing is opened before Run.
func NewSpeaker(cfg Config, sink RouteSink, clock func() time.Time, log logrus.FieldLogger) (*Speaker, error) {
	full, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	eng := engine.New(engine.Config{
		RouterID: full.RouterID, AS: full.AS, ListenPort: full.ListenPort,
		ListenAddresses: full.ListenAddresses, Log: log,
	})
	return NewSpeakerOn(eng, full, sink, clock, log)
}

// NewSpeakerOn makes a speaker on any engine.
func NewSpeakerOn(eng engine.Engine, cfg Config, sink RouteSink, clock func() time.Time, log logrus.FieldLogger) (*Speaker, error) {
	full, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if clock == nil {
		clock = time.Now
	}
	if log == nil {
		log = logrus.StandardLogger()
	}
	s := &Speaker{
		eng: eng, sink: sink, clock: clock, log: log, cfg: full, ready: make(chan struct{}),
		rib: newRIB(learnPolicy(full)), orig: newOriginator(full),
		vpn: vpnOriginator{current: map[engine.VPNPrefix]engine.Announcement{}},
	}
	s.rib.importing(full.Contexts)
	s.vpn.configure(full)
	return s, nil
}

// Ready is closed when the speaker listens and its sessions are being kept.
func (s *Speaker) Ready() <-chan struct{} { return s.ready }

// Run keeps the sessions until ctx ends. It then withdraws what is announced, waits for the
// withdrawals to go out, closes the sessions and removes the learned routes from the sink.
// An error says which socket, key or minimum TTL couldn't be had.
func (s *Speaker) Run(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return errors.Join(err, s.stop())
	}
	close(s.ready)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.stop()
		case <-s.eng.Events():
			s.handle(ctx, s.eng.Take())
		case <-tick.C:
			s.tick(ctx)
		}
	}
}

func (s *Speaker) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.eng.Start(ctx); err != nil {
		return err
	}
	for _, n := range s.cfg.Neighbors {
		if err := s.eng.AddPeer(ctx, s.cfg.peer(n)); err != nil {
			return err
		}
		s.rib.addPeer(n.Address, s.cfg.info(n))
	}
	s.running = true
	s.noteSessions()
	return s.originate(ctx)
}

// stop uses a context of its own: the one of Run has ended.
func (s *Speaker) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := s.eng.Stop(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	s.deliver(s.rib.dropAll())
	s.established.Store(0)
	return err
}

// handle takes in what the engine reports, tells the sink, and lets announcements follow.
func (s *Speaker) handle(ctx context.Context, events []engine.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliver(s.rib.apply(s.clock(), events))
	s.noteSessions()
	s.logStates(events)
	if s.orig.notice(events) {
		s.follow(ctx)
	}
}

// logStates tells what an operator wants to see of sessions: that one is up, or down again.
func (s *Speaker) logStates(events []engine.Event) {
	for _, ev := range events {
		if ev.Kind != engine.EventState {
			continue
		}
		log := s.log.WithFields(logrus.Fields{"neighbor": ev.Peer.String(), "state": ev.State.String()})
		switch {
		case ev.State == engine.StateEstablished:
			log.Info("bgp: session is up")
		case ev.State == engine.StateIdle && ev.Keep:
			log.Warn("bgp: session is down; the neighbour restarts, its routes stay as stale")
		case ev.State == engine.StateIdle:
			log.Warn("bgp: session is down")
		default:
			log.Debug("bgp: session state")
		}
	}
}

// tick ends what is bound by time: stale routes and leases. It tries announcements that failed again.
func (s *Speaker) tick(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.rib.expire(s.clock())
	if len(out.updates) > 0 {
		s.orig.touchFollowers()
	}
	s.deliver(out)
	for _, p := range s.orig.expire(s.clock()) {
		s.log.WithField("prefix", p.String()).Warn("bgp: the lease of an advertisement has ended; it is withdrawn")
	}
	if len(s.orig.dirty) > 0 || s.vpn.err != nil {
		s.follow(ctx)
	}
}

// follow originates, and leaves what fails to the next tick.
func (s *Speaker) follow(ctx context.Context) {
	if err := s.originate(ctx); err != nil && ctx.Err() == nil {
		s.log.WithError(err).Error("bgp: announcements not up to date; trying again")
	}
}

func (s *Speaker) deliver(out learned) {
	now := s.clock()
	if len(out.updates) > 0 {
		s.sink.Apply(now, out.updates...)
	}
	for _, e := range out.disregarded {
		s.sink.Disregard(now, e)
	}
}

// originate brings the engine's announcements in line with what should be announced. It needs s.mu.
func (s *Speaker) originate(ctx context.Context) error {
	c, err := s.orig.plan(s.rib, func(peer netip.Addr, prefix netip.Prefix) ([]engine.RawPath, error) {
		return s.eng.Paths(ctx, peer, prefix)
	})
	vpnErr := s.originateVPN(ctx)
	if err := errors.Join(s.eng.Announce(ctx, c.announce), s.eng.Withdraw(ctx, c.withdraw)); err != nil {
		return errors.Join(err, vpnErr)
	}
	s.orig.done(c)
	return errors.Join(err, vpnErr)
}

// originateVPN does so inside VPNs. It needs s.mu.
func (s *Speaker) originateVPN(ctx context.Context) error {
	announce, withdraw := s.vpn.plan(s.orig.vpnOff)
	err := errors.Join(s.eng.Announce(ctx, announce), s.eng.WithdrawVPN(ctx, withdraw))
	return s.vpn.done(announce, withdraw, err)
}
