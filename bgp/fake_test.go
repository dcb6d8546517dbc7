package bgp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"pncd/bgp/engine"
	"pncd/internal/testwait"
	"pncd/pnc"
)

// fake is an engine that does as it is told and remembers what was asked of it.
type fake struct {
	mu        sync.Mutex
	asked     []string
	failPeer  map[netip.Addr]error
	failStart error
	failNext  error // of the next Announce
	events    []engine.Event
	ready     chan struct{}
	announced map[engine.VPNPrefix]engine.Announcement
	paths     map[engine.VPNPrefix][]engine.RawPath // what the neighbours sent
	ranges    []engine.Range
	stations  []engine.Station
	knocks    chan netip.Addr
	slow      func() // called in Announce, if set
}

func newFake() *fake {
	return &fake{failPeer: map[netip.Addr]error{}, ready: make(chan struct{}, 1), knocks: make(chan netip.Addr, 1000), announced: map[engine.VPNPrefix]engine.Announcement{}, paths: map[engine.VPNPrefix][]engine.RawPath{}}
}

func (f *fake) note(format string, args ...any) {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func (f *fake) Start(context.Context) error { return f.failStart }

func (f *fake) AddPeer(_ context.Context, p engine.Peer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failPeer[p.Address]; err != nil {
		return err
	}
	f.note("add %s", p.Address)
	return nil
}

func (f *fake) RemovePeer(_ context.Context, a netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("remove %s", a)
	return nil
}

func (f *fake) SetRanges(list []engine.Range) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ranges = list
	return nil
}

func (f *fake) Knocks() <-chan netip.Addr { return f.knocks }

func (f *fake) Refuse(a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("refuse %s", a)
}

func (f *fake) SetStations(list []engine.Station) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stations = list
	return nil
}

func (f *fake) Stations() (out []engine.StationStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.stations {
		out = append(out, engine.StationStatus{Station: s})
	}
	return out
}

func (f *fake) Shutdown(_ context.Context, a netip.Addr, why string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("shutdown %s: %s", a, why)
	return nil
}

func (f *fake) Announce(_ context.Context, as []engine.Announcement) error {
	if f.slow != nil {
		f.slow()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failNext; err != nil {
		f.failNext = nil
		return err
	}
	for _, a := range as {
		f.announced[keyOf(&a)] = a
	}
	return nil
}

func (f *fake) Withdraw(_ context.Context, ps []engine.VPNPrefix) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range ps {
		f.note("withdraw %s", p)
		delete(f.announced, p)
	}
	return nil
}

func (f *fake) Replay(_ context.Context, families []engine.Family) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("replay %v", families)
	return nil
}

func (f *fake) Paths(_ context.Context, _ netip.Addr, p engine.VPNPrefix) ([]engine.RawPath, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[p], nil
}

func (f *fake) Status(context.Context) ([]engine.PeerStatus, error) { return nil, nil }

func (f *fake) Events() <-chan struct{} { return f.ready }

func (f *fake) Take() []engine.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	evs := f.events
	f.events = nil
	return evs
}

func (f *fake) Counters() engine.Counters { return engine.Counters{} }

func (f *fake) Refresh(_ context.Context, a netip.Addr, in, out bool) ([]Family, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("refresh %s in %v out %v", a, in, out)
	return []Family{IPv4Unicast}, f.failPeer[a]
}

func (f *fake) EndOfRIB(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("end of RIB")
	return nil
}

func (f *fake) Leave(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("leave with %d announced", len(f.announced))
	return nil
}

func (f *fake) Stop(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("stop with %d announced", len(f.announced))
	return nil
}

func (f *fake) report(evs ...engine.Event) {
	f.mu.Lock()
	f.events = append(f.events, evs...)
	f.mu.Unlock()
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

func (f *fake) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fake) has(p netip.Prefix) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.announced[engine.VPNPrefix{Prefix: p}]
	return ok
}

// sink counts what is there.
type sink struct {
	mu     sync.Mutex
	routes map[pnc.RouteID]bool
}

func (s *sink) Apply(_ time.Time, us ...pnc.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range us {
		if u.Withdraw {
			delete(s.routes, u.Route.ID())
		} else {
			s.routes[u.Route.ID()] = true
		}
	}
}

func (s *sink) Disregard(time.Time, pnc.Event) {}

func (s *sink) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.routes)
}

// running is a speaker that runs on a fake engine until the test ends.
type running struct {
	*Speaker
	f    *fake
	sink *sink
	stop func() error
}

func run(t *testing.T, cfg Config) *running {
	t.Helper()
	return runAt(t, cfg, nil)
}

func runAt(t *testing.T, cfg Config, clock func() time.Time) *running {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	r := &running{f: newFake(), sink: &sink{routes: map[pnc.RouteID]bool{}}}
	var err error
	if r.Speaker, err = NewSpeakerOn(r.f, cfg, r.sink, clock, quiet); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	once := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	r.stop = once
	t.Cleanup(func() {
		once()
		goleak.VerifyNone(t)
	})
	select {
	case <-r.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("not ready")
	}
	return r
}

func TestASessionThatCannotBeSecuredIsAnErrorAndNotAWarning(t *testing.T) {
	for _, fault := range []error{engine.ErrMD5, engine.ErrTTLMin, engine.ErrListen} {
		f := newFake()
		if errors.Is(fault, engine.ErrMD5) || errors.Is(fault, engine.ErrTTLMin) {
			f.failPeer[addr("2001:db8::3")] = fault
		} else {
			f.failStart = fault
		}
		sp, err := NewSpeakerOn(f, sound(), &sink{routes: map[pnc.RouteID]bool{}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := sp.Run(context.Background()); !errors.Is(err, fault) {
			t.Errorf("Run gave %v, want %v", err, fault)
		}
		if log := f.log(); len(log) == 0 || !strings.HasPrefix(log[len(log)-1], "stop") {
			t.Errorf("%v: the engine wasn't stopped: %v", fault, log)
		}
	}
}

func TestReconfigureIsAllOrNothing(t *testing.T) {
	r := run(t, sound())
	if err := r.SetOriginating(true); err != nil || !r.f.has(pfx) {
		t.Fatalf("%v, announced %v", err, r.f.announced)
	}
	next := sound()
	next.Neighbors[0].Password = "secret"                                                                           // changes
	next.Neighbors[1] = NeighborConfig{Address: addr("192.0.2.4"), PeerAS: 65000}                                   // one goes, one comes
	next.Neighbors = append(next.Neighbors, NeighborConfig{Address: addr("192.0.2.5"), PeerAS: 65000, TTLMin: 255}) // fails
	next.Originate = nil
	r.f.failPeer[addr("192.0.2.5")] = engine.ErrTTLMin
	if err := r.Reconfigure(next); !errors.Is(err, engine.ErrTTLMin) {
		t.Fatalf("%v", err)
	}
	want := []string{"add 192.0.2.2", "add 2001:db8::3", // the start
		"remove 192.0.2.2", "remove 2001:db8::3", "add 192.0.2.2", "add 192.0.2.4", // until it fails
		"remove 192.0.2.2", "remove 192.0.2.4", "add 192.0.2.2", "add 2001:db8::3"} // and back
	if got := r.f.log(); !slices.Equal(got, want) {
		t.Errorf("asked\n%v, want\n%v", got, want)
	}
	if !r.f.has(pfx) || r.cfg.neighbor(addr("192.0.2.2")).Password != "" {
		t.Error("something of the refused configuration stayed")
	}
	// Nothing to do is nothing done.
	if err := r.Reconfigure(sound()); err != nil || len(r.f.log()) != len(want) {
		t.Errorf("%v, %v", err, r.f.log())
	}
	delete(r.f.failPeer, addr("192.0.2.5"))
	if err := r.Reconfigure(next); err != nil || r.f.has(pfx) {
		t.Errorf("%v, announced %v", err, r.f.announced)
	}
}

func TestAnAnnouncementThatFailsIsTriedAgain(t *testing.T) {
	r := run(t, sound())
	r.f.mu.Lock()
	r.f.failNext = errors.New("busy")
	r.f.mu.Unlock()
	if err := r.SetOriginating(true); err == nil {
		t.Error("the failure was kept quiet")
	}
	testwait.Until(t, "the second attempt", func() bool { return r.f.has(pfx) })
}

func TestAReconfigurationInForceIsNotAnErrorWhenAnAnnouncementFails(t *testing.T) {
	r := run(t, sound())
	if err := r.SetOriginating(true); err != nil {
		t.Fatal(err)
	}
	next := sound()
	other := prefix("198.51.100.0/24")
	next.Originate = append(next.Originate, OriginateConfig{Prefix: other, Proxy: addr("192.0.2.7"), NextHop: addr("192.0.2.1")})
	r.f.mu.Lock()
	r.f.failNext = errors.New("busy")
	r.f.mu.Unlock()
	if err := r.Reconfigure(next); err != nil {
		t.Errorf("the caller would keep the old configuration: %v", err)
	}
	testwait.Until(t, "the second attempt", func() bool { return r.f.has(other) })
}

func TestSessionsAreCountedWithoutWaiting(t *testing.T) {
	r := run(t, sound())
	expect := func(up, all int) {
		t.Helper()
		testwait.Until(t, "the count of sessions", func() bool {
			u, a := r.Sessions()
			return u == up && a == all
		})
	}
	expect(0, 2)
	r.f.report(engine.Event{Kind: engine.EventState, Peer: addr("192.0.2.2"), State: engine.StateEstablished})
	expect(1, 2)
	r.f.report(engine.Event{Kind: engine.EventState, Peer: addr("192.0.2.2"), State: engine.StateIdle})
	expect(0, 2)
	next := sound()
	next.Neighbors = next.Neighbors[:1]
	if err := r.Reconfigure(next); err != nil {
		t.Fatal(err)
	}
	expect(0, 1)
}

func TestTheSinkLosesEverythingAtTheEnd(t *testing.T) {
	r := run(t, sound())
	p := engine.Path{Prefix: pfx, PeerID: addr("192.0.2.2"), NextHop: addr("198.51.100.1")}
	r.f.report(engine.Event{Kind: engine.EventPath, Peer: addr("192.0.2.2"), Path: p})
	testwait.Until(t, "the route", func() bool { return r.sink.len() == 1 })
	if c := r.Counters(); c.Paths != 1 || c.Prefixes != 1 {
		t.Errorf("%+v", c)
	}
	if err := r.stop(); err != nil || r.sink.len() != 0 {
		t.Errorf("%v, %d routes left", err, r.sink.len())
	}
	if err := r.Advertise(OriginateConfig{Prefix: prefix("10.0.0.0/8"), Proxy: addr("192.0.2.7"), NextHop: addr("192.0.2.1")}, 0); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
	for _, a := range r.Advertisements() {
		if a.Announced || a.Active {
			t.Errorf("after the end: %+v", a)
		}
	}
}

func TestBeforeRunNothingIsAskedOfTheEngine(t *testing.T) {
	f := newFake()
	sp, err := NewSpeakerOn(f, sound(), &sink{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := sound()
	next.Neighbors = next.Neighbors[:1]
	if err := errors.Join(sp.SetOriginating(true), sp.Reconfigure(next)); err != nil || len(f.log()) != 0 || sp.Neighbors() != nil {
		t.Errorf("%v, %v", err, f.log())
	}
}

// BenchmarkLearn measures what a path costs from the engine's event to the sink's update.
func BenchmarkLearn(b *testing.B) {
	nhcValue := unhex(b, head4+pnc7)
	events := make([]engine.Event, 10_000)
	for i := range events {
		events[i] = engine.Event{Kind: engine.EventPath, Peer: peer1, Path: engine.Path{
			Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24), PeerID: peer1,
			NextHop: addr("198.51.100.1"), LocalPref: 100, HasNHC: true, NHCFlags: 0xc0, NHC: nhcValue}}
	}
	b.ReportAllocs()
	for b.Loop() {
		r := newRIB(testLearning())
		r.addPeer(peer1, peerInfo{addr: peer1, name: peer1.String(), accept: true})
		if out := r.apply(time.Time{}, events); len(out.updates) != len(events) {
			b.Fatal(len(out.updates))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/path")
}
