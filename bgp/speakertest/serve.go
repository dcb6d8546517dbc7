// Package speakertest runs speakers in processes of their own for tests: there can be one GoBGP in a
// process. A test binary that calls Serve first becomes a speaker when Env is set; a test starts such
// processes with Launch, in a network namespace or not, and asks them.
//
// It is not for production use, and holds no test itself.
package speakertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"pncd/bgp"
	"pncd/pnc"
)

// Env is the environment variable that holds the configuration of a speaker, in JSON.
const Env = "PNCD_TEST_SPEAKER"

// Request is what a test asks of a speaker. An empty one only asks for the state.
type Request struct {
	Enable    *bool
	Advertise *bgp.OriginateConfig
	Withdraw  *netip.Prefix
	Context   string // of Withdraw
	Configure *bgp.Config
	Refresh   *Refresh
	Stop      bool
}

// Refresh asks for a neighbour's routes again, or sends it ours.
type Refresh struct {
	Neighbor netip.Addr
	In, Out  bool
}

// Answer is the state after a request was done.
type Answer struct {
	Error          string
	PID            int         // of the speaker's process
	Routes         []pnc.Route // sorted by prefix, peer and path identifier
	Disregarded    []pnc.Event // oldest first
	Neighbors      []bgp.NeighborStatus
	Advertisements []bgp.AdvertisementStatus
	Counters       bgp.Counters
}

// Serve runs a speaker until its standard input ends, when Env asks for one, and then exits; else it
// returns at once. Requests come as JSON on standard input, a line each; answers go out likewise.
func Serve() {
	if text := os.Getenv(Env); text != "" {
		if err := serve(text); err != nil {
			json.NewEncoder(os.Stdout).Encode(Answer{Error: err.Error()})
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func serve(text string) error {
	var cfg bgp.Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(logrus.DebugLevel)
	sink := &memory{routes: map[pnc.RouteID]pnc.Route{}}
	sp, err := bgp.NewSpeaker(cfg, sink, nil, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- sp.Run(ctx) }()
	select {
	case <-sp.Ready():
	case err := <-ended:
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(Answer{})
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20) // a configuration can be long
	for in.Scan() {
		var r Request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return fmt.Errorf("request %q: %w", in.Text(), err)
		}
		out.Encode(do(sp, sink, r, func() error {
			cancel()
			return errors.Join(<-ended, leaks())
		}))
		if r.Stop {
			return nil
		}
	}
	cancel()
	return <-ended
}

func do(sp *bgp.Speaker, sink *memory, r Request, stop func() error) Answer {
	var err error
	switch {
	case r.Enable != nil:
		err = sp.SetOriginating(*r.Enable)
	case r.Advertise != nil:
		err = sp.Advertise(*r.Advertise, 0)
	case r.Withdraw != nil:
		err = sp.Withdraw(r.Context, *r.Withdraw)
	case r.Configure != nil:
		err = sp.Reconfigure(*r.Configure)
	case r.Refresh != nil:
		_, err = sp.Refresh(context.Background(), r.Refresh.Neighbor, r.Refresh.In, r.Refresh.Out)
	case r.Stop:
		err = stop()
	}
	a := Answer{PID: os.Getpid(), Neighbors: sp.Neighbors(), Advertisements: sp.Advertisements(), Counters: sp.Counters()}
	if err != nil {
		a.Error = err.Error()
	}
	a.Routes, a.Disregarded = sink.read()
	return a
}

// leaks finds goroutines that outlive the speaker. GoBGP's Serve never returns.
func leaks() error {
	return goleak.Find(goleak.IgnoreAnyFunction("github.com/osrg/gobgp/v3/pkg/server.(*BgpServer).Serve"))
}

// memory is a sink that remembers.
type memory struct {
	mu     sync.Mutex
	routes map[pnc.RouteID]pnc.Route
	events []pnc.Event
}

// Apply is RouteSink's.
func (m *memory) Apply(_ time.Time, us ...pnc.Update) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range us {
		if u.Withdraw {
			delete(m.routes, u.Route.ID())
		} else {
			m.routes[u.Route.ID()] = u.Route
		}
	}
}

// Disregard is RouteSink's.
func (m *memory) Disregard(_ time.Time, e pnc.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
}

func (m *memory) read() (routes []pnc.Route, events []pnc.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.routes {
		routes = append(routes, r)
	}
	slices.SortFunc(routes, func(x, y pnc.Route) int {
		if c := x.Prefix.Compare(y.Prefix); c != 0 {
			return c
		}
		if c := strings.Compare(x.Peer, y.Peer); c != 0 {
			return c
		}
		return int(int64(x.PathID) - int64(y.PathID))
	})
	return routes, slices.Clone(m.events)
}
