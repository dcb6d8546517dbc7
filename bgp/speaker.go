package bgp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
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
	refused string // the last error about announcements that was logged
	coming  coming

	dynamic    map[netip.Addr]*dynamic
	turnedAway map[netip.Prefix]uint64 // by range
	turnedAt   time.Time               // when one was logged
}

// NewSpeaker makes a speaker on GoBGP. There can be one in a process, and it runs once. The clock
// may be nil for the system's. Nothing is opened before Run, except that GobgpSocket is prepared.
func NewSpeaker(cfg Config, sink RouteSink, clock func() time.Time, log logrus.FieldLogger) (*Speaker, error) {
	full, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	eng := engine.New(engine.Config{
		RouterID: full.RouterID, AS: full.AS, ListenPort: full.ListenPort,
		ListenAddresses: full.ListenAddresses, Log: log, Own: full.Restart.engine(), GobgpSocket: full.GobgpSocket, Descr: full.Descr,
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
		dynamic: map[netip.Addr]*dynamic{}, turnedAway: map[netip.Prefix]uint64{},
	}
	s.rib.importing(full.Contexts)
	return s, nil
}

// Ready is closed when the speaker listens and its sessions are being kept.
func (s *Speaker) Ready() <-chan struct{} { return s.ready }

// Run keeps the sessions until ctx ends. It then withdraws what is announced, waits for the
// withdrawals to go out, closes the sessions and removes the learned routes from the sink. With
// OwnRestart.Keep it closes the sessions without a word.
// An error says which socket, key or minimum TTL couldn't be had.
func (s *Speaker) Run(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return errors.Join(err, s.stop())
	}
	s.follow(ctx)
	close(s.ready)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.stop()
		case <-s.eng.Events():
			n := s.handle()
			s.reap(ctx)
			s.follow(ctx)
			if n >= bulk {
				s.pause(ctx, n)
			}
		case a := <-s.eng.Knocks():
			s.admit(ctx, a)
		case <-tick.C:
			s.tick()
			s.reap(ctx)
			s.follow(ctx)
			s.comeBack(ctx)
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
	if len(s.cfg.Ranges) > 0 {
		if err := s.eng.SetRanges(s.cfg.engineRanges()); err != nil {
			return err
		}
	}
	if err := s.eng.SetStations(s.cfg.Stations); err != nil {
		return err
	}
	s.running = true
	s.coming = s.cfg.Restart.begin(s.clock())
	s.noteSessions()
	return nil
}

// stop uses a context of its own: the one of Run has ended.
func (s *Speaker) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	s.mu.Lock()
	keep := s.cfg.Restart.Keep
	s.mu.Unlock()
	end := s.eng.Stop
	if keep {
		end = s.eng.Leave
	}
	err := end(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	s.deliver(s.rib.dropAll())
	s.established.Store(0)
	return err
}

// A batch for the sink has mostEvents at most, which bounds what it takes besides the routes. After bulk
// events or more at once, as at the begin of a session, the speaker lets more come together for bulkPause, and twice as
// long after fewer than largeBulk: a route table has less to do for one large change than for many small ones.
const (
	bulk       = 64
	largeBulk  = 4096
	bulkPause  = 50 * time.Millisecond
	mostEvents = 1 << 16
)

// pause waits after so many events.
func (s *Speaker) pause(ctx context.Context, n int) {
	d := bulkPause
	if n < largeBulk {
		d *= 2
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// handle takes in what the engine reports, tells the sink, and notes what announcements have to follow. The
// events are taken under the lock: those of a session must not get past its removal by a request. It gives how
// many there were.
func (s *Speaker) handle() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.eng.Take()
	for some := range slices.Chunk(events, mostEvents) {
		s.deliver(s.rib.apply(s.clock(), some))
	}
	s.noteSessions()
	s.logStates(events)
	s.orig.notice(events)
	return len(events)
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

// tick ends what is bound by time: stale routes and leases. What failed is due again.
func (s *Speaker) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out := s.rib.expire(s.clock()); len(out.updates) > 0 {
		s.deliver(out)
		s.orig.touchFollowers()
	}
	for _, p := range s.orig.expire(s.clock()) {
		s.log.WithField("prefix", p.String()).Warn("bgp: the lease of an advertisement has ended; it is withdrawn")
	}
	s.orig.retry()
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

// follow originates. What fails is due again at the next tick; an error that stays is logged once.
func (s *Speaker) follow(ctx context.Context) {
	err := s.originate(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := err.Error(); text != s.refused {
		s.refused = text
		s.log.WithError(err).Error("bgp: announcements not up to date; trying again every second")
	}
}

// batch is how many prefixes are decided about and told to the engine while s.mu is held: many take as long
// as the engine needs for them, and others are waiting meanwhile.
const batch = 64

// originate brings the engine's announcements in line with what should be announced. Before Run there is
// nothing to do: the start originates. It must not be called with s.mu held.
func (s *Speaker) originate(ctx context.Context) error {
	var all failures
	for ctx.Err() == nil && s.originateSome(ctx, &all) {
	}
	return all.err()
}

// originateSome reports whether there is more to do.
func (s *Speaker) originateSome(ctx context.Context, all *failures) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	steps := s.orig.next(batch, s.rib, func(peer netip.Addr, prefix engine.VPNPrefix) ([]engine.RawPath, error) {
		return s.eng.Paths(ctx, peer, prefix)
	})
	for _, st := range steps {
		err := st.err
		switch {
		case st.announce != nil:
			err = s.eng.Announce(ctx, []engine.Announcement{*st.announce})
		case st.withdraw != nil:
			err = s.eng.Withdraw(ctx, []engine.VPNPrefix{*st.withdraw})
		}
		s.orig.done(st, err)
		all.add(err)
	}
	return len(s.orig.dirty) > 0
}

// failures are errors of which there may be as many as there are prefixes.
type failures struct {
	first error
	more  int
}

func (f *failures) add(err error) {
	switch {
	case err == nil:
	case f.first == nil:
		f.first = err
	default:
		f.more++
	}
}

func (f *failures) err() error {
	if f.more > 0 {
		return fmt.Errorf("%w (and %d more)", f.first, f.more)
	}
	return f.first
}
