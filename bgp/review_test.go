package bgp

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pncd/bgp/engine"
	"pncd/internal/testwait"
	"pncd/pnc"
)

func TestOneAnnouncementThatIsRefusedHoldsUpNoOther(t *testing.T) {
	d := newDesk(t)
	for i := range 5 {
		o := modeConfig(ModeOriginate, netip.Addr{})
		o.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
		d.o.items[o.key()] = item{OriginateConfig: o}
		d.o.touch(o.key())
	}
	d.o.setEnabled(true)
	bad := PrefixKey{"", prefix("10.0.3.0/24")}
	for len(d.o.dirty) > 0 {
		for _, s := range d.o.next(batch, d.r, d.fetch) {
			var err error
			if s.at == bad {
				err = errors.New("refused")
			}
			d.o.done(s, err)
		}
	}
	if len(d.o.current) != 4 || len(d.o.failed) != 1 || d.o.status[bad] != "trying again: refused" {
		t.Errorf("%d announced, %v, %q", len(d.o.current), d.o.failed, d.o.status[bad])
	}
	if !d.o.retry() || len(d.o.dirty) != 1 {
		t.Errorf("due again: %v", d.o.dirty)
	}
	if c := d.plan(); len(c.announce) != 1 || c.announce[0].Prefix != bad.Prefix || d.o.status[bad] != active {
		t.Errorf("%+v, %q", c, d.o.status[bad])
	}
}

func TestManyAnnouncementsLetOthersIn(t *testing.T) {
	cfg := sound()
	cfg.Originate = nil
	const all = 20 * batch
	for i := range all {
		cfg.Originate = append(cfg.Originate, OriginateConfig{
			Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24), Proxy: addr("192.0.2.7"), NextHop: addr("192.0.2.1")})
	}
	r := run(t, cfg)
	var told atomic.Int32
	asked, free := make(chan struct{}), make(chan struct{})
	r.f.slow = func() {
		switch n := told.Add(1); {
		case n == 1:
			close(asked)
			<-free
		case n%batch == 1:
			// Not a wait for something: what a batch takes. A mutex is handed over to who waited for a millisecond, which
			// nothing else shows, and each of the batches that follow is a chance.
			time.Sleep(5 * time.Millisecond)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- r.SetOriginating(true) }()
	<-asked
	// Somebody waits for the lock while the first batch is under way: it has its turn before the last.
	seen := make(chan int32, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		r.Advertisements()
		seen <- told.Load()
	}()
	<-started
	close(free)
	if n := <-seen; n >= all {
		t.Errorf("had to wait for all %d announcements", n)
	}
	if err := <-ended; err != nil || len(r.f.announced) != all {
		t.Errorf("%v, %d announced", err, len(r.f.announced))
	}
}

// What was taken from the engine before a session was removed and made anew isn't the new session's.
func TestEventsOfARemovedSessionAreNotTheNextOnes(t *testing.T) {
	r := run(t, sound())
	at := addr("192.0.2.2")
	r.mu.Lock()
	r.f.report(engine.Event{Kind: engine.EventPath, Peer: at, Family: engine.IPv4Unicast, Path: engine.Path{Prefix: pfx, PeerID: at, NextHop: addr("198.51.100.1")}})
	testwait.Until(t, "the speaker to be told", func() bool { return len(r.f.ready) == 0 })
	// The speaker waits for the lock; a request removes the session and makes it anew.
	if err := r.removePeer(t.Context(), *r.cfg.neighbor(at)); err != nil {
		t.Fatal(err)
	}
	r.rib.addPeer(at, r.cfg.info(*r.cfg.neighbor(at)))
	r.mu.Unlock()
	r.f.report(engine.Event{Kind: engine.EventState, Peer: at, State: engine.StateConnect, Keep: true})
	testwait.Until(t, "the event behind it", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.rib.peers[at].state == engine.StateConnect
	})
	if n := r.sink.len(); n != 0 {
		t.Errorf("%d routes of the session before", n)
	}
}

func TestAnAnnouncementGoesWithARoutersPathThatWasStaleForTooLong(t *testing.T) {
	now := atomic.Pointer[time.Time]{}
	begin := time.Unix(1_700_000_000, 0)
	now.Store(&begin)
	cfg := sound()
	cfg.Neighbors[0].GracefulRestart = true
	at := cfg.Neighbors[0].Address
	cfg.Originate = []OriginateConfig{{Prefix: pfx, Mode: ModePath, Proxy: addr("192.0.2.7"), From: at}}
	r := runAt(t, cfg, func() time.Time { return *now.Load() })
	r.f.mu.Lock()
	r.f.paths[engine.VPNPrefix{Prefix: pfx}] = []engine.RawPath{{NextHop: addr("198.51.100.1"), Attributes: []engine.RawAttribute{{0x40, 1, 1, 0}}}}
	r.f.mu.Unlock()
	if err := r.SetOriginating(true); err != nil {
		t.Fatal(err)
	}
	r.f.report(
		engine.Event{Kind: engine.EventState, Peer: at, State: engine.StateEstablished, Restart: keepsAll},
		engine.Event{Kind: engine.EventPath, Peer: at, Family: engine.IPv4Unicast, Path: engine.Path{Prefix: pfx, PeerID: at, NextHop: addr("198.51.100.1")}},
		staleSession(at)[0], staleSession(at)[1])
	testwait.Until(t, "the copy", func() bool { return r.f.has(pfx) })
	late := begin.Add(24 * time.Hour)
	now.Store(&late)
	testwait.Until(t, "no copy of a path that is gone", func() bool { return !r.f.has(pfx) && r.sink.len() == 0 })
}

var keepsAll = engine.Restart{Offered: true, Time: time.Minute,
	Families: map[Family]engine.FamilyRestart{IPv4Unicast: {Graceful: true, Preserved: true}}}

// staleSession is a session that restarts and comes back without End-of-RIB.
func staleSession(at netip.Addr) []engine.Event {
	return []engine.Event{
		{Kind: engine.EventState, Peer: at, State: engine.StateIdle, Keep: true},
		{Kind: engine.EventState, Peer: at, State: engine.StateEstablished, Keep: true, Restart: keepsAll},
	}
}

func TestFromAnotherASWhatIsForOneASOnlyIsIgnored(t *testing.T) {
	r := newRIB(testLearning())
	r.addPeer(peer1, peerInfo{addr: peer1, name: peer1.String(), accept: true, ebgp: true})
	r.addPeer(peer2, peerInfo{addr: peer2, name: peer2.String(), accept: true})
	// ORIGINATOR_ID and CLUSTER_LIST name this node: from a neighbour of our AS that would be a loop.
	high := pathEvent(t, peer1, 0, func(p *engine.Path) {
		p.LocalPref, p.OriginatorID, p.ClusterList = 900, testLearning().routerID, []netip.Addr{testLearning().routerID}
	})
	own := pathEvent(t, peer2, 0, func(p *engine.Path) { p.LocalPref = 101 })
	out := r.apply(time.Time{}, []engine.Event{high, own})
	if len(out.updates) != 2 {
		t.Fatalf("%+v", out.updates)
	}
	for _, u := range out.updates {
		if u.Route.Best != (u.Route.Peer == peer2.String()) || u.Route.Originator != u.Route.Peer {
			t.Errorf("%+v", u.Route)
		}
	}
}

func TestWhatAnEBGPRouterSendsForOneASIsNotPassedOn(t *testing.T) {
	d := newDesk(t, modeConfig(ModeInline, routerPeer))
	d.r.addPeer(routerPeer, peerInfo{addr: routerPeer, name: routerPeer.String(), accept: true, ebgp: true})
	d.o.setEnabled(true)
	d.hear(routerPeer, nil, routerOrigin, routerASPath, routerPref, "80 09 04 c0000205", "80 0a 04 c0000202", routerComms)
	a := d.one()
	var types []uint8
	for _, x := range a.Attributes {
		types = append(types, x.Type())
	}
	if want := []uint8{attrOrigin, attrASPath, attrCommunities, 39}; !slices.Equal(types, want) || a.NotTo.IsValid() {
		t.Errorf("attributes %v, want %v; %+v", types, want, a)
	}
}

func TestOfAnAttributeThatIsThereTwiceTheFirstIsPassedOn(t *testing.T) {
	d := newDesk(t, modeConfig(ModeInline, routerPeer))
	d.o.setEnabled(true)
	d.hear(routerPeer, nil, routerOrigin, routerMED, "80 04 04 00000033", routerUnknown, routerUnknownP)
	a := d.one()
	if len(a.Attributes) != 5 || attribute(a, attrMED) != clean(routerMED) || attribute(a, 0x63) != clean(routerUnknownP) {
		t.Errorf("%x", a.Attributes)
	}
}

func TestARouteThatMustNotBePassedOnIsNotFollowed(t *testing.T) {
	const noAdv, noExp = "c0 08 08 fde80001 ffffff02", "c0 08 04 ffffff01"
	external := Config{PNCCode: 65400, Originate: []OriginateConfig{modeConfig(ModeInline, routerPeer)},
		Neighbors: []NeighborConfig{{PeerAS: 65001, LocalAS: 65000, SendNHC: new(true)}}}
	for name, tt := range map[string]struct {
		communities, want string
		external          bool
	}{
		"no-advertise":                    {noAdv, "no-advertise", false},
		"no-export":                       {noExp, "", false},
		"no-export and an EBGP neighbour": {noExp, "no-export", true},
		"other, and an EBGP neighbour":    {routerComms, "", true},
	} {
		d := newDesk(t, modeConfig(ModeInline, routerPeer))
		if tt.external {
			d.o.configure(external)
		}
		d.o.setEnabled(true)
		d.hear(routerPeer, nil, routerOrigin, tt.communities)
		c := d.plan()
		if why := string(d.o.status[here]); (len(c.announce) == 1) != (tt.want == "") || !strings.Contains(why, tt.want) {
			t.Errorf("%s: %+v, %q", name, c, why)
		}
	}
}

func TestOurOwnAnnouncementsComingBackAreNotReported(t *testing.T) {
	tb := newTable(t)
	own := testLearning().routerID
	back := pathEvent(t, peer1, 0, func(p *engine.Path) {
		p.ClusterList, p.NHC = []netip.Addr{peer1, own}, unhex(t, "0001 01 04 c6336409"+pnc7) // a mismatch
	})
	tb.apply(back)
	if n := tb.r.total[pnc.DisregardNextHopMismatch]; n != 0 || len(tb.routes) != 0 {
		t.Errorf("%d disregarded, routes %+v", n, tb.routes)
	}
	v := newVPNTable(t)
	v.apply(vpnEvent(t, "65000:1", "65000:100", func(ev *engine.Event) { ev.Path.OriginatorID, ev.Path.NHC = own, unhex(t, "00") }))
	if n := v.r.total[pnc.DisregardMalformedAttribute]; n != 0 || v.r.unmatched != 0 {
		t.Errorf("%d disregarded, %d unmatched", n, v.r.unmatched)
	}
}

func TestAProxyOrNextHopThatOthersCantReachIsRefused(t *testing.T) {
	for want, edit := range map[string]func(*OriginateConfig){
		"next hop: mode originate needs one": func(o *OriginateConfig) { o.NextHop = netip.Addr{} },
		"next hop 127.0.0.1 must be":         func(o *OriginateConfig) { o.NextHop = addr("127.0.0.1") },
		"next hop 169.254.0.1 must be":       func(o *OriginateConfig) { o.NextHop = addr("169.254.0.1") },
		"127.0.0.2: must not be a loopback":  func(o *OriginateConfig) { o.Proxy = addr("127.0.0.2") },
		"::1: must not be a loopback":        func(o *OriginateConfig) { o.Proxy = addr("::1") },
		"169.254.0.1: must not be link":      func(o *OriginateConfig) { o.Proxy = addr("169.254.0.1") },
		"224.0.0.1: must be a unicast":       func(o *OriginateConfig) { o.Proxy = addr("224.0.0.1") },
		"0.0.0.0: must be a unicast":         func(o *OriginateConfig) { o.Proxy = addr("0.0.0.0") },
		"without host bits":                  func(o *OriginateConfig) { o.Prefix = netip.PrefixFrom(addr("::ffff:10.0.0.0"), 104) },
	} {
		c := sound()
		edit(&c.Originate[0])
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Pair by pair, a (lowest identifier of all) beats b, c beats a by MED, and b is never compared with c.
func TestMEDTakesPathsOutBeforeTheLaterStepsCompareAny(t *testing.T) {
	at := func(id string, as, med uint32) *path {
		return &path{attributes: &attributes{peer: &ribPeer{peerInfo: peerInfo{addr: addr(id)}}, localPref: 100, asPathLen: 1, neighborAS: as, med: med,
			originator: addr(id), nhcPath: nhcPath{nextHop: addr("198.51.100.1")}}}
	}
	a, b, c := at("192.0.2.1", 65001, 10), at("192.0.2.2", 65002, 0), at("192.0.2.3", 65001, 5)
	for _, order := range [][]*path{{a, b, c}, {a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}} {
		if got := best(slices.Values(order)); got != b {
			t.Errorf("best is %s, want %s", got.peer.addr, b.peer.addr)
		}
	}
	// Without a next hop a path counts for nothing, its MED neither.
	c.nextHop = netip.Addr{}
	if got := best(slices.Values([]*path{a, b, c})); got != a {
		t.Errorf("best is %s, want %s", got.peer.addr, a.peer.addr)
	}
	// MED counts only among paths that are equal before it.
	c.nextHop, c.localPref = addr("198.51.100.1"), 99
	if got := best(slices.Values([]*path{a, b, c})); got != a {
		t.Errorf("best is %s, want %s", got.peer.addr, a.peer.addr)
	}
}
