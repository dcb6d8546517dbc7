package daemon

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/bgp"
	"pncd/dataplane/host"
	"pncd/dataplane/roce"
	"pncd/internal/config"
	"pncd/internal/testwait"
	"pncd/pnc"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/readiness"
)

// routes is a pathTracker whose answers a test sets; what it does not know is reachable.
type routes struct {
	mu      sync.Mutex
	status  map[netip.Addr]host.Status
	unknown bool
	watched []netip.Addr
}

func (r *routes) Watch(addrs ...netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched = addrs
}

func (r *routes) Reach(a netip.Addr) (host.Status, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st, ok := r.status[a]; ok {
		return st, true
	}
	return host.Status{Reachable: true}, !r.unknown
}

func (r *routes) set(a string, st host.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = map[netip.Addr]host.Status{netip.MustParseAddr(a): st}
}

var theSender = readiness.Key{Prefix: netip.MustParsePrefix("198.51.100.0/24")}

// proxyUnderTest runs a daemon whose sender is announced as if it had BGP, with routes and times of the
// test's own.
func proxyUnderTest(t *testing.T, edit func(*config.Proxy)) (*running, *routes) {
	t.Helper()
	r := start(t, template)
	tracked := &routes{}
	r.senders.mu.Lock()
	r.senders.paths = newSenderPaths(tracked)
	r.senders.mu.Unlock()
	r.change(func(p *config.Proxy) {
		p.Advertise = config.AdvertiseWhenReady
		p.Readiness.TrafficWithin, p.Readiness.WithdrawAfter, p.Readiness.AnnounceAfter = config.Duration{}, config.Duration{}, config.Duration{}
		p.Readiness.Damping = config.Damping{}
		p.Senders = []config.Sender{{Prefix: config.Prefix{Prefix: theSender.Prefix}, Mode: "originate", Proxy: p.IPv4, NextHop: p.IPv4}}
		if edit != nil {
			edit(p)
		}
	})
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r, tracked
}

// change edits the running configuration.
func (r *running) change(edit func(*config.Proxy)) {
	r.control.Lock()
	defer r.control.Unlock()
	c := *r.config.Load()
	p := *c.Proxy
	edit(&p)
	c.Proxy = &p
	r.config.Store(&c)
}

// standsAt waits for the state of the sender, and for what it lacks first.
func (r *running) standsAt(state readiness.State, reason readiness.Reason) readiness.Status {
	r.t.Helper()
	var st readiness.Status
	testwait.Until(r.t, "the sender is "+state.String()+", and lacks "+reason.String(), func() bool {
		r.followReadiness()
		r.senders.mu.Lock()
		defer r.senders.mu.Unlock()
		st, _ = r.senders.book.Get(theSender)
		first := readiness.None
		if len(st.Failed) > 0 {
			first = st.Failed[0].Reason
		}
		return st.State == state && first == reason
	})
	return st
}

// own is what the history has of the node's own announcements.
func (r *running) own() []pnc.Event {
	return slices.DeleteFunc(r.table.History(), func(e pnc.Event) bool { return e.Kind == pnc.EventLearned })
}

// replace puts a part in the place of one that runs, so that a test can make it fail.
func (r *running) replace(name, key string) *fakePart {
	r.t.Helper()
	p := newFakePart()
	r.control.Lock()
	defer r.control.Unlock()
	if !r.units.has(key) {
		r.t.Fatalf("no unit %s", key)
	}
	r.units.mu.Lock()
	old := r.units.units[key]
	r.units.units[key] = r.units.start(p.spec(name, key), p)
	r.units.mu.Unlock()
	old.cancel()
	<-old.done
	return p
}

func (p *fakePart) breakDown(err error) {
	p.openErr.Store(&err)
	p.fail <- err
}

func TestTheSenderFollowsThePartsOfTheProxy(t *testing.T) {
	for _, tc := range []struct {
		name, part, key string
		reason          readiness.Reason
	}{
		{"a tap", "tap:lo", "tap:lo:16:none", readiness.TapDown},
		{"the learner", "learner", "learner", readiness.SocketDown},
		{"the raw sockets", "sender", "sender:raw", readiness.SocketDown},
		{"the receiver", "translator:127.0.0.1:%PORT%", "translator:127.0.0.1:%PORT%", readiness.SocketDown},
		{"a detector is not the proxy's", "detector:lo", "detector:lo:ring", readiness.None},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, _ := proxyUnderTest(t, nil)
			ported := strings.NewReplacer("%PORT%", strconv.Itoa(int(r.port)))
			name := ported.Replace(tc.part)
			r.standsAt(readiness.Announced, readiness.None)
			part := r.replace(name, ported.Replace(tc.key))
			part.breakDown(errors.New("interface is gone"))
			testwait.Until(t, "the part has failed", func() bool {
				failed := false
				for _, u := range r.units.statuses() {
					failed = failed || u.name == name && u.state == unitFailed
				}
				return failed
			})
			want := readiness.Held
			if tc.reason == readiness.None {
				want = readiness.Announced
			}
			st := r.standsAt(want, tc.reason)
			if tc.reason != readiness.None && !strings.Contains(st.Failed[0].Detail, "interface is gone") {
				t.Errorf("the failure is %q", st.Failed[0].Detail)
			}
			part.openErr.Store(nil)
			r.standsAt(readiness.Announced, readiness.None)
			if _, err := r.Disable(context.Background()); err != nil {
				t.Fatal(err)
			}
			r.standsAt(readiness.Off, readiness.None)
		})
	}
}

func TestTheSenderFollowsRoutesAndSending(t *testing.T) {
	r, tracked := proxyUnderTest(t, nil)
	r.standsAt(readiness.Announced, readiness.None)
	tracked.set("198.51.100.1", host.Status{Detail: "no route"})
	if st := r.standsAt(readiness.Held, readiness.NoRoute); st.Failed[0].Detail != "198.51.100.1: no route" {
		t.Errorf("%+v", st.Failed)
	}
	tracked.set("198.51.100.1", host.Status{Reachable: true, Self: true})
	if st := r.standsAt(readiness.Held, readiness.NoRoute); st.Failed[0].Detail != "198.51.100.1 is this node's own" {
		t.Errorf("%+v", st.Failed)
	}
	tracked.set("198.51.100.1", host.Status{Reachable: true})
	r.standsAt(readiness.Announced, readiness.None)

	counts := r.sender.counts.Load().prefixes[theSender.Prefix]
	counts.sent.Add(990)
	counts.failed.Add(10)
	r.followReadiness()
	r.standsAt(readiness.Announced, readiness.None) // one percent
	counts.failed.Add(2)
	if st := r.standsAt(readiness.Held, readiness.SendErrors); st.Failed[0].Detail != "12 of 1002 CNPs could not be sent within 10s" {
		t.Errorf("%+v", st.Failed)
	}
}

func TestTheSenderWaitsForTrafficInBothDirections(t *testing.T) {
	r, tracked := proxyUnderTest(t, func(p *config.Proxy) { p.Readiness.TrafficWithin = config.Duration{Duration: time.Hour} })
	st := r.standsAt(readiness.Held, readiness.NoTraffic)
	if !strings.HasPrefix(st.Failed[0].Detail, "no traffic of the senders") {
		t.Errorf("%+v", st.Failed)
	}
	see := func(from, to string) {
		p := roce.Packet{Src: netip.MustParseAddr(from), Dst: netip.MustParseAddr(to), TTL: 64, SrcPort: 50000, BTH: roce.BTH{Opcode: 4, PKey: 0xFFFF, DestQP: 7, PSN: 1}}
		r.parts.Load().flows.Observe(&flowmap.Observation{Packet: &p, At: r.now()})
	}
	see("198.51.100.9", "203.0.113.9")
	if st := r.standsAt(readiness.Held, readiness.NoTraffic); !strings.HasPrefix(st.Failed[0].Detail, "no traffic towards") {
		t.Errorf("%+v", st.Failed)
	}
	// The route is that of a host that sent, now that there is one.
	tracked.set("198.51.100.9", host.Status{Detail: "blackhole route"})
	r.standsAt(readiness.Held, readiness.NoRoute)
	tracked.set("198.51.100.9", host.Status{Reachable: true})
	see("203.0.113.9", "198.51.100.9")
	r.standsAt(readiness.Announced, readiness.None)
	status, err := r.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := status.GetSenders()
	if len(s) != 1 || status.GetAdvertise() != "when-ready" || s[0].GetState() != pncv1.ReadinessState_READINESS_STATE_ANNOUNCED || !s[0].GetReady() || s[0].GetSeenFrom() == nil || s[0].GetSeenTowards() == nil {
		t.Errorf("status %v", s)
	}
}

func TestTheSenderFollowsWhatIsLost(t *testing.T) {
	r, _ := proxyUnderTest(t, nil)
	r.standsAt(readiness.Announced, readiness.None)
	closing := r.rings.opened("lo", roleLearner, func() ringStats { return ringStats{Packets: 1_000_000, Drops: 100_000} })
	if st := r.standsAt(readiness.Held, readiness.TapLoss); !strings.HasPrefix(st.Failed[0].Detail, "lo: lost ") {
		t.Errorf("%+v", st.Failed)
	}
	closing()
	r.change(func(p *config.Proxy) { p.Readiness.LossMax = 10 })
	r.standsAt(readiness.Announced, readiness.None)

	// The map's bound: more than 10 % of it lost to others.
	r.change(func(p *config.Proxy) { p.Map.Entries = 16 })
	flows := r.parts.Load().flows
	if err := flows.Reconfigure(flowmap.Config{MaxEntries: 16}); err != nil {
		t.Fatal(err)
	}
	for i := range byte(40) {
		p := roce.Packet{Src: netip.AddrFrom4([4]byte{192, 0, 2, i}), Dst: netip.AddrFrom4([4]byte{203, 0, 113, i}), TTL: 64, BTH: roce.BTH{Opcode: 4, DestQP: 7}}
		flows.Observe(&flowmap.Observation{Packet: &p, At: r.now()})
	}
	if st := r.standsAt(readiness.Held, readiness.MapFull); !strings.HasPrefix(st.Failed[0].Detail, "the map of 16 entries lost 24 to others") {
		t.Errorf("%+v", st.Failed)
	}
}

func TestByDefaultReadinessIsShownAndNotFollowed(t *testing.T) {
	r, tracked := proxyUnderTest(t, func(p *config.Proxy) { p.Advertise = config.AdvertiseAlways })
	tracked.set("198.51.100.1", host.Status{Detail: "no route"})
	st := r.standsAt(readiness.Announced, readiness.NoRoute)
	r.senders.mu.Lock()
	g := r.senders.gateFor(r.config.Load().Proxy)
	r.senders.mu.Unlock()
	if st.Ready || g.Proxies != nil || g.Released != nil {
		t.Errorf("%+v, gate %+v", st, g)
	}
	if h := r.own(); len(h) != 0 {
		t.Errorf("the history is filled with what is not done: %+v", h)
	}
}

func TestTheGateReleasesWhatIsReady(t *testing.T) {
	r, tracked := proxyUnderTest(t, nil)
	gate := func() bgp.Gate {
		r.senders.mu.Lock()
		defer r.senders.mu.Unlock()
		return r.senders.gateFor(r.config.Load().Proxy)
	}
	own := netip.MustParseAddr("127.0.0.1")
	r.standsAt(readiness.Announced, readiness.None)
	if g := gate(); len(g.Proxies) != 1 || g.Proxies[0] != own || len(g.Released) != 1 {
		t.Errorf("ready: %+v", g)
	}
	tracked.set("198.51.100.1", host.Status{Detail: "no route"})
	r.standsAt(readiness.Held, readiness.NoRoute)
	if g := gate(); len(g.Proxies) != 1 || len(g.Released) != 0 {
		t.Errorf("not ready: %+v", g)
	}
	m := r.heldBack(&pncv1.Advertisement{InactiveReason: "not ready; more"}, theSender)
	if m.GetInactiveReason() != "not ready: no-route: 198.51.100.1: no route; more" {
		t.Errorf("the reason shown is %q", m.GetInactiveReason())
	}
	if m := r.heldBack(&pncv1.Advertisement{InactiveReason: "disabled"}, theSender); m.GetInactiveReason() != "disabled" {
		t.Errorf("another reason is shown as %q", m.GetInactiveReason())
	}
	kinds := []pnc.EventKind{pnc.EventAnnounced, pnc.EventHeldBack}
	h := r.own()
	if len(h) != 2 {
		t.Fatalf("history %+v", h)
	}
	for i, e := range h {
		if e.Kind != kinds[i] || e.Route.Prefix != theSender.Prefix || e.Route.Proxy != own {
			t.Errorf("history %d: %+v", i, e)
		}
	}
	counted := map[string]uint64{}
	for _, c := range r.readinessCounts() {
		counted[c.name+c.label[1]] = c.value
	}
	if counted["announced"] != 1 || counted["withdrawnno-route"] != 1 || counted["lostno-route"] != 1 {
		t.Errorf("counters %v", counted)
	}
}

func TestAChangedConfigurationLetsNothingSlipThroughTheGate(t *testing.T) {
	own, other := config.Addr{Addr: netip.MustParseAddr("192.0.2.1")}, config.Addr{Addr: netip.MustParseAddr("192.0.2.2")}
	always, ready := &config.Proxy{IPv4: own, Advertise: config.AdvertiseAlways}, &config.Proxy{IPv4: own, Advertise: config.AdvertiseWhenReady}
	moved := &config.Proxy{IPv4: other, Advertise: config.AdvertiseWhenReady}
	for _, tc := range []struct {
		name     string
		old, new *config.Proxy
		proxies  []netip.Addr
	}{
		{"always stays open", always, always, nil},
		{"from always to when-ready, what is announced stays", always, ready, []netip.Addr{own.Addr}},
		{"from when-ready to always, held back until it is in force", ready, always, []netip.Addr{own.Addr}},
		{"another address of the proxy's", ready, moved, []netip.Addr{other.Addr, own.Addr}},
		{"the proxy goes", ready, nil, []netip.Addr{own.Addr}},
	} {
		s := newSenderReadiness(newSenderPaths(&routes{}))
		s.book.Configure(readinessConfig(tc.old), time.Unix(1, 0))
		held := readiness.Key{Prefix: netip.MustParsePrefix("203.0.113.0/24")}
		s.book.Step(time.Unix(1, 0), true, []readiness.Input{{Key: theSender}, {Key: held, Failed: []readiness.Failure{{Reason: readiness.TapDown}}}})
		s.gate = s.gateFor(tc.old)
		g := s.gateUntil(tc.new)
		_, released := g.Released[bgp.PrefixKey{Prefix: theSender.Prefix}]
		if !slices.Equal(g.Proxies, tc.proxies) || released != (len(tc.proxies) > 0) {
			t.Errorf("%s: %+v", tc.name, g)
		}
	}
}

func TestOnlyWhatNamesThisProxyIsJudged(t *testing.T) {
	prefix := func(s string) config.Prefix { return config.Prefix{Prefix: netip.MustParsePrefix(s)} }
	addr := func(s string) config.Addr { return config.Addr{Addr: netip.MustParseAddr(s)} }
	p := &config.Proxy{IPv4: addr("192.0.2.1"), IPv6: addr("2001:db8::1"), Senders: []config.Sender{
		{Prefix: prefix("198.51.100.0/24"), Mode: "path", Proxy: addr("192.0.2.1")},
		{Prefix: prefix("198.51.101.0/24"), Mode: "none", Proxy: addr("192.0.2.1")},
		{Prefix: prefix("198.51.102.0/24"), Mode: "originate", Proxy: addr("192.0.2.2")},
		{Prefix: prefix("198.51.103.0/24"), Mode: "originate", Proxy: addr("2001:db8::1"), Context: "blue"},
	}}
	got := announcedHere(&config.Config{Proxy: p}, []bgp.OriginateConfig{
		{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Proxy: netip.MustParseAddr("2001:db8::1")},
		{Prefix: netip.MustParsePrefix("203.0.114.0/24"), Proxy: netip.MustParseAddr("2001:db8::2")},
		{Context: "blue", Prefix: netip.MustParsePrefix("203.0.115.0/24"), Proxy: p.IPv4.Addr},
	})
	want := map[readiness.Key]netip.Addr{
		theSender: p.IPv4.Addr,
		{Context: "blue", Prefix: netip.MustParsePrefix("198.51.103.0/24")}: p.IPv6.Addr,
		{Prefix: netip.MustParsePrefix("203.0.113.0/24")}:                   p.IPv6.Addr,
		{Context: "blue", Prefix: netip.MustParsePrefix("203.0.115.0/24")}:  p.IPv4.Addr,
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for k, a := range want {
		if got[k] != a {
			t.Errorf("%v: %v, want %v", k, got[k], a)
		}
	}
}

func TestStatesAndReasonsHaveTheNumbersOfTheProtobuf(t *testing.T) {
	name := func(s, prefix string) string {
		return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s, prefix)), "_", "-")
	}
	for _, s := range readiness.States()[1:] {
		if got := name(pncv1.ReadinessState(s).String(), "READINESS_STATE_"); got != s.String() {
			t.Errorf("state %d: %s and %s", s, s, got)
		}
	}
	for _, r := range readiness.Reasons() {
		if got := name(pncv1.ReadinessReason(r).String(), "READINESS_REASON_"); got != r.String() {
			t.Errorf("reason %d: %s and %s", r, r, got)
		}
	}
	if n, m := len(pncv1.ReadinessState_name), len(pncv1.ReadinessReason_name); n != len(readiness.States()) || m != len(readiness.Reasons())+1 {
		t.Errorf("the protobuf has %d states and %d reasons", n, m)
	}
}
