package host

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/internal/testwait"
)

func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

// tracked is a running tracker and what it told.
type tracked struct {
	*Tracker
	n  *namespace
	mu sync.Mutex
	by map[netip.Addr][]Status
}

func (n *namespace) track(cfg Config, addrs ...string) *tracked {
	n.t.Helper()
	tr := n.tracker(cfg, addrs...)
	tr.run()
	return tr
}

// tracker makes one that does not run yet.
func (n *namespace) tracker(cfg Config, addrs ...string) *tracked {
	tr := &tracked{n: n, by: map[netip.Addr][]Status{}}
	cfg.Namespace = n.path
	cfg.OnChange = func(changed map[netip.Addr]Status) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for a, s := range changed {
			tr.by[a] = append(tr.by[a], s)
		}
	}
	tr.Tracker = NewTracker(cfg, quiet())
	var watch []netip.Addr
	for _, a := range addrs {
		watch = append(watch, addr(a))
	}
	tr.Watch(watch...)
	return tr
}

func (tr *tracked) run() {
	n := tr.n
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tr.Run(ctx) }()
	n.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("Run: %v", err)
		}
	})
	select {
	case <-tr.Ready():
	case <-time.After(10 * time.Second):
		n.t.Fatal("not ready within 10 s")
	}
}

// want waits until the address has this status, Detail aside, and it was told.
func (tr *tracked) want(step, a string, want Status) {
	tr.n.t.Helper()
	same := func(s Status) bool { s.Detail = ""; return s == want }
	testwait.Until(tr.n.t, fmt.Sprintf("%s: %s is %+v", step, a, want), func() bool {
		s, known := tr.Reach(addr(a))
		tr.mu.Lock()
		defer tr.mu.Unlock()
		told := tr.by[addr(a)]
		return known && same(s) && len(told) > 0 && same(told[len(told)-1])
	})
}

func (tr *tracked) told(a string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.by[addr(a)])
}

// follow is the life of a route to one address, for one family.
type follow struct {
	own, gw, proxy, prefix, def, local string
	bits                               int
}

var families = map[string]follow{
	"IPv4": {"192.0.2.1/24", "192.0.2.9", "10.1.0.1", "10.1.0.0/16", "0.0.0.0/0", "10.1.0.1/32", 32},
	"IPv6": {"2001:db8::1/64", "2001:db8::9", "2001:db8:1::1", "2001:db8:1::/48", "::/0", "2001:db8:1::1/128", 128},
}

func TestTrackerFollowsRoutesAddressesAndLinks(t *testing.T) {
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(t)
			n.veth("va", "vb")
			n.addr("va", f.own)
			tr := n.track(Config{AllowDefault: true}, f.proxy)
			via := Status{Reachable: true, Interface: "va", NextHop: addr(f.gw)}
			tr.want("at first", f.proxy, Status{})

			r := n.route(f.prefix, f.gw, "va")
			tr.want("route added", f.proxy, via)
			n.ok(n.nl.RouteDel(r))
			tr.want("route deleted", f.proxy, Status{})

			d := n.route(f.def, f.gw, "va")
			viaDefault := via
			viaDefault.ViaDefault = true
			tr.want("default route", f.proxy, viaDefault)

			b := n.route(f.prefix, "", "", kind(unix.RTN_BLACKHOLE))
			tr.want("blackhole", f.proxy, Status{})
			n.ok(n.nl.RouteDel(b))
			tr.want("blackhole deleted", f.proxy, viaDefault)

			n.down("vb")
			testwait.Until(t, "no carrier", func() bool { s, _ := tr.Reach(addr(f.proxy)); return !s.Reachable })
			n.up("vb")
			tr.want("carrier again", f.proxy, viaDefault)

			own := n.addr("vb", f.local)
			testwait.Until(t, "our own address", func() bool { s, _ := tr.Reach(addr(f.proxy)); return s.Self })
			n.ok(n.nl.AddrDel(n.link("vb"), own))
			tr.want("address deleted", f.proxy, viaDefault)

			n.down("va") // takes the routes with it
			testwait.Until(t, "link down", func() bool { s, _ := tr.Reach(addr(f.proxy)); return !s.Reachable })
			n.up("va")
			if name == "IPv4" {
				n.ok(n.nl.RouteReplace(d))
				tr.want("link up", f.proxy, viaDefault)
			}
			n.ok(n.nl.LinkDel(n.link("va")))
			tr.want("link deleted", f.proxy, Status{})
		})
	}
}

func TestTrackerFollowsRules(t *testing.T) {
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(t)
			n.veth("va", "vb")
			n.addr("va", f.own)
			n.route(f.prefix, f.gw, "va", func(r *netlink.Route) { r.Table = 100 })
			tr := n.track(Config{AllowDefault: true}, f.proxy)
			tr.want("no rule", f.proxy, Status{})
			rule := netlink.NewRule()
			rule.Table, rule.Priority = 100, 1000
			_, rule.Dst, _ = net.ParseCIDR(f.prefix)
			if f.bits == 128 {
				rule.Family = netlink.FAMILY_V6
			} else {
				rule.Family = netlink.FAMILY_V4
			}
			n.ok(n.nl.RuleAdd(rule))
			tr.want("rule added", f.proxy, Status{Reachable: true, Interface: "va", NextHop: addr(f.gw)})
			n.ok(n.nl.RuleDel(rule))
			tr.want("rule deleted", f.proxy, Status{})
		})
	}
}

func TestTrackerDefaultRouteCountsOnlyWhenAllowed(t *testing.T) {
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(t)
			n.veth("va", "vb")
			n.addr("va", f.own)
			n.route(f.def, f.gw, "va")
			tr := n.track(Config{AllowDefault: false}, f.proxy)
			tr.want("default route only", f.proxy, Status{ViaDefault: true, Interface: "va", NextHop: addr(f.gw)})
			if s, _ := tr.Reach(addr(f.proxy)); !strings.Contains(s.Detail, "default route") {
				t.Errorf("detail %q", s.Detail)
			}
			n.route(f.prefix, f.gw, "va")
			tr.want("a route of its own", f.proxy, Status{Reachable: true, Interface: "va", NextHop: addr(f.gw)})
		})
	}
}

func TestTrackerTellsOnlyChanges(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	n.addr("va", "192.0.2.1/24")
	n.route("10.1.0.0/16", "192.0.2.9", "va")
	tr := n.track(Config{}, "10.1.0.1", "10.2.0.1")
	tr.want("at first", "10.1.0.1", Status{Reachable: true, Interface: "va", NextHop: addr("192.0.2.9")})
	tr.want("at first", "10.2.0.1", Status{})

	// A round that finds nothing new tells nothing: the addresses of vb matter to neither.
	rounds := tr.Stats().Rounds
	n.addr("vb", "198.18.0.1/24")
	testwait.Until(t, "another round", func() bool { return tr.Stats().Rounds > rounds })
	if a, b := tr.told("10.1.0.1"), tr.told("10.2.0.1"); a != 1 || b != 1 {
		t.Errorf("told %d and %d times, want once each", a, b)
	}

	// Watched no longer, watched again.
	tr.Watch(addr("10.1.0.1"))
	if _, known := tr.Reach(addr("10.2.0.1")); known {
		t.Error("10.2.0.1 is still known")
	}
	n.route("10.2.0.0/16", "192.0.2.9", "va")
	tr.Watch(addr("10.1.0.1"), addr("10.2.0.1"), netip.Addr{})
	tr.want("watched again", "10.2.0.1", Status{Reachable: true, Interface: "va", NextHop: addr("192.0.2.9")})
	if got := tr.Stats().Watched; got != 2 {
		t.Errorf("%d watched", got)
	}
}

func TestTrackerTellsAllAfterWatch(t *testing.T) {
	// Who forgot an address and learned it again before the tracker heard of either must be told.
	n := newNamespace(t)
	tr := n.track(Config{}, "10.1.0.1")
	tr.want("at first", "10.1.0.1", Status{})
	told, changes := tr.told("10.1.0.1"), tr.Stats().Changes
	tr.Watch(addr("10.1.0.1"))
	testwait.Until(t, "told again", func() bool { return tr.told("10.1.0.1") > told })
	if got := tr.Stats().Changes; got != changes {
		t.Errorf("%d changes counted after %d", got, changes)
	}
}

func TestTrackerAllowDefaultChangesAtRunTime(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	n.addr("va", "192.0.2.1/24")
	n.route("0.0.0.0/0", "192.0.2.9", "va")
	tr := n.track(Config{}, "10.1.0.1")
	via := Status{ViaDefault: true, Interface: "va", NextHop: addr("192.0.2.9")}
	tr.want("not allowed", "10.1.0.1", via)
	tr.SetAllowDefault(true)
	via.Reachable = true
	tr.want("allowed", "10.1.0.1", via)
}

func TestTrackerIsLocalFollowsAddresses(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	tr := n.track(Config{})
	if tr.IsLocal(addr("192.0.2.1")) || !tr.IsLocal(addr("127.0.0.1")) || !tr.IsLocal(addr("::1")) {
		t.Error("before the address")
	}
	own := n.addr("va", "192.0.2.1/24")
	testwait.Until(t, "192.0.2.1 is local", func() bool { return tr.IsLocal(addr("192.0.2.1")) && tr.IsLocal(addr("::ffff:192.0.2.1")) })
	n.ok(n.nl.AddrDel(n.link("va"), own))
	testwait.Until(t, "192.0.2.1 is no longer local", func() bool { return !tr.IsLocal(addr("192.0.2.1")) })
}

func TestTrackerRoutesThatMatterToNobodyAreNoWork(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	n.addr("va", "192.0.2.1/24")
	tr := n.track(Config{}, "10.1.0.1")
	tr.want("at first", "10.1.0.1", Status{})
	const burst = 500
	for i := range burst {
		n.route(fmt.Sprintf("172.16.%d.%d/32", i/256, i%256), "192.0.2.9", "va")
	}
	n.route("10.1.0.0/16", "192.0.2.9", "va")
	tr.want("after the burst", "10.1.0.1", Status{Reachable: true, Interface: "va", NextHop: addr("192.0.2.9")})
	if got := tr.Stats().Ignored; got < burst {
		t.Errorf("%d of %d notifications ignored", got, burst)
	}
}

func TestTrackerInTheOwnNamespaceNeedsNoPrivilege(t *testing.T) {
	tr := NewTracker(Config{}, quiet())
	tr.Watch(addr("127.0.0.1"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tr.Run(ctx) }()
	testwait.Until(t, "127.0.0.1 is our own", func() bool {
		s, known := tr.Reach(addr("127.0.0.1"))
		return known && s.Self
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTrackerAsksAgainWhenTheKernelDropsNotifications(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	n.addr("va", "192.0.2.1/24")
	// The smallest buffer that the kernel gives, and a reader that is held up by its lock.
	tr := n.tracker(Config{}, "10.1.0.1")
	tr.buffer = 1
	tr.run()
	tr.want("at first", "10.1.0.1", Status{})
	tr.Tracker.mu.Lock()
	var added []*netlink.Route
	for i := range 200 {
		added = append(added, n.route(fmt.Sprintf("172.16.0.%d/32", i), "192.0.2.9", "va"))
	}
	n.route("10.1.0.0/16", "192.0.2.9", "va") // its notification is dropped
	tr.Tracker.mu.Unlock()
	tr.want("after the overrun", "10.1.0.1", Status{Reachable: true, Interface: "va", NextHop: addr("192.0.2.9")})
	testwait.Until(t, "an overrun is counted", func() bool { return tr.Stats().Overruns > 0 })
	for _, r := range added {
		n.ok(n.nl.RouteDel(r))
	}
}

func TestTrackerRunEndsWithItsContextAndMayRunAgain(t *testing.T) {
	n := newNamespace(t)
	tr := NewTracker(Config{Namespace: n.path}, quiet())
	for range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- tr.Run(ctx) }()
		<-tr.Ready()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Run does not end")
		}
	}
}

func TestTrackerUnknownNamespaceIsAnError(t *testing.T) {
	tr := NewTracker(Config{Namespace: "/run/netns/pncd-t-none"}, quiet())
	if err := tr.Run(context.Background()); err == nil {
		t.Error("no error")
	}
}

func TestTrackerUpdateForgetsWhatIsWatchedNoLonger(t *testing.T) {
	tr := NewTracker(Config{AllowDefault: true}, quiet())
	tr.Watch(addr("10.0.0.1"), addr("10.0.0.2"))
	changed := tr.update(func(a netip.Addr) Status {
		tr.Watch(addr("10.0.0.2")) // while the kernel is asked
		return Status{Reachable: true}
	})
	if len(changed) != 1 || !changed[addr("10.0.0.2")].Reachable {
		t.Errorf("changed %v", changed)
	}
}
