package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"
	"github.com/sirupsen/logrus"

	"pncd/bgp/bmp"
	"pncd/bgp/relay"
)

// Config is what an engine needs to know before it starts.
type Config struct {
	RouterID        netip.Addr   // BGP Identifier, IPv4
	AS              uint32       // autonomous system
	ListenPort      int          // -1: don't listen
	ListenAddresses []netip.Addr // none: 0.0.0.0 and ::
	Own             OwnRestart
	GobgpSocket     string // unix socket of GoBGP's own API, for reading; empty: none
	Descr           string // of this program, for BMP stations (sysDescr); empty: its name
	Log             logrus.FieldLogger
}

// GoBGP is the Engine that osrg/gobgp gives.
type GoBGP struct {
	cfg  Config
	srv  *server.BgpServer
	log  *logger
	stop context.CancelFunc // ends the watches

	inside *inside
	relay  *relay.Relay // from Start on
	api    *apiSocket   // nil without

	stations *bmp.Stations

	reader pathReader // of the watch's goroutine, as batch
	batch  []Event
	knocks chan netip.Addr

	mu        sync.Mutex
	started   bool
	stopped   bool
	peers     map[netip.Addr]*peerState
	announced map[VPNPrefix]Announcement // unicast ones have no RD
	replays   map[*replay]struct{}       // under way
	complete  bool                       // EndOfRIB was called
	queue     queue
	held      bool // no peer is read until the queue is taken

	watching atomic.Bool // the watch's callback runs

	conversionErrors, callbackPanics atomic.Uint64
}

// peerState is what is remembered about a session that GoBGP doesn't tell.
type peerState struct {
	cfg        Peer
	inside     netip.Addr // by which GoBGP knows it; doesn't change
	state      State
	since      time.Time
	lastError  string
	noted      bool // lastError is of this session
	final      bool // lastError stays: the session is down until the peer is added anew
	faulty     bool // the session is being ended for what the peer sent, and lastError says what that was
	keyless    bool // GoBGP couldn't set the key of the connection over loopback
	flaps      uint64
	extended   bool // IPv4 prefixes with an IPv6 next hop may go to it
	restarting bool // GoBGP said that it keeps the routes through a graceful restart
	restart    Restart
}

var _ Engine = (*GoBGP)(nil)

// New makes an engine. GoBGP's own goroutine starts with it and never ends, which GoBGP offers no way
// to change. With GobgpSocket, a directory beside it is made, which Start or Stop removes.
func New(cfg Config) *GoBGP {
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	if len(cfg.ListenAddresses) == 0 {
		cfg.ListenAddresses = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	e := &GoBGP{
		cfg:       cfg,
		peers:     map[netip.Addr]*peerState{},
		announced: map[VPNPrefix]Announcement{},
		replays:   map[*replay]struct{}{},
		inside:    newInside(),
		queue:     newQueue(),
		knocks:    make(chan netip.Addr, knocksHeld),
	}
	e.log = newLogger(cfg.Log, e.noteLog, e.inside.translate)
	options := []server.ServerOption{server.LoggerOption(e.log)}
	if cfg.GobgpSocket != "" {
		guard := apiGuard{inside: e.inside, panicked: func() { e.callbackPanics.Add(1) }, log: cfg.Log}
		s, more := newAPISocket(cfg.GobgpSocket, guard)
		e.api, options = s, append(options, more...)
	}
	e.srv = server.NewBgpServer(options...)
	e.stations = bmp.New(e.bmpConfig())
	go e.srv.Serve()
	return e
}

// Start begins to listen and puts the leaf policies into force before any peer exists.
func (e *GoBGP) Start(ctx context.Context) error {
	e.mu.Lock()
	again := e.started
	e.started = true
	e.mu.Unlock()
	if again {
		return ErrStopped
	}
	at, err := e.startInside(ctx)
	if err != nil {
		return err
	}
	if err := e.startPolicies(ctx); err != nil {
		return fmt.Errorf("bgp engine: leaf policies: %w", err)
	}
	if err := e.startRelay(ctx, at); err != nil {
		return err
	}
	if e.api != nil {
		if err := e.api.open(ctx); err != nil {
			return fmt.Errorf("bgp engine: %w", err)
		}
	}
	watch, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	// The relay waits for states only, and must not wait for a table to be read.
	if err := e.srv.WatchEvent(watch, &api.WatchEventRequest{Peer: &api.WatchEventRequest_Peer{}}, e.watchRelay); err != nil {
		return err
	}
	return e.srv.WatchEvent(watch, &api.WatchEventRequest{
		Peer: &api.WatchEventRequest_Peer{},
		Table: &api.WatchEventRequest_Table{Filters: []*api.WatchEventRequest_Table_Filter{
			{Type: api.WatchEventRequest_Table_Filter_ADJIN},
			{Type: api.WatchEventRequest_Table_Filter_EOR},
		}},
	}, e.watch)
}

// Stop withdraws what was announced, waits until every session has sent it, and closes.
func (e *GoBGP) Stop(ctx context.Context) error { return e.end(ctx, false) }

// Leave closes without a word.
func (e *GoBGP) Leave(ctx context.Context) error { return e.end(ctx, true) }

func (e *GoBGP) end(ctx context.Context, keep bool) error {
	e.mu.Lock()
	if e.stopped || !e.started {
		unused := !e.started && !e.stopped
		e.stopped = true
		e.mu.Unlock()
		if unused && e.api != nil {
			e.api.close()
		}
		return nil
	}
	e.stopped = true
	var all []VPNPrefix
	for p := range e.announced {
		all = append(all, p)
	}
	if keep {
		all = nil
	}
	e.mu.Unlock()

	if keep && e.relay != nil {
		e.relay.Leave()
	}
	before, err := e.Status(ctx)
	if err == nil && len(all) > 0 {
		if err = e.withdraw(ctx, all); err == nil {
			err = e.drain(ctx, before)
		}
	}
	e.stations.Close()
	if e.stop != nil {
		e.stop()
	}
	if e.api != nil {
		e.api.close()
	}
	// GoBGP waits for each session's goroutines, and one that writes to a dead peer stays as long
	// as its hold time.
	closed := make(chan struct{})
	go func() {
		e.srv.Stop()
		if e.relay != nil {
			e.relay.Close()
		}
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("bgp engine: sessions not closed: %w", ctx.Err()))
	}
	return err
}

// drain waits until each established session that had announcements has sent another UPDATE, and no
// session sends any more: GoBGP doesn't tell when its queues are empty.
func (e *GoBGP) drain(ctx context.Context, before []PeerStatus) error {
	const quiet = 3 // polls without another UPDATE
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last uint64
	for calm := 0; calm < quiet; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("bgp engine: withdrawals not sent: %w", ctx.Err())
		case <-tick.C:
		}
		now, err := e.Status(ctx)
		if err != nil {
			return err
		}
		sent := map[netip.Addr]PeerStatus{}
		var sum uint64
		for _, s := range now {
			sent[s.Address] = s
			sum += s.SentUpdates
		}
		pending := false
		for _, b := range before {
			n := sent[b.Address]
			pending = pending || b.State == StateEstablished && b.Advertised > 0 &&
				n.State == StateEstablished && n.SentUpdates == b.SentUpdates
		}
		if pending || sum != last {
			calm, last = 0, sum
			continue
		}
		calm++
	}
	return nil
}

// Counters reads the counters.
func (e *GoBGP) Counters() Counters {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Counters{
		ConversionErrors: e.conversionErrors.Load(),
		CallbackPanics:   e.callbackPanics.Load(),
		EnginePanics:     e.log.panics.Load(),
		Coalesced:        e.queue.coalesced,
	}
}

// Events gets a value when Take has something to give.
func (e *GoBGP) Events() <-chan struct{} { return e.queue.ready }

// Take gives the events since the last call.
func (e *GoBGP) Take() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held {
		e.held = false
		e.relay.Hold(false)
	}
	return e.queue.take()
}
