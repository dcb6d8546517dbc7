package host

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/internal/testwait"
)

// followed is running Routes and what they told last.
type followed struct {
	*Routes
	t    *testing.T
	mu   sync.Mutex
	now  map[RouteSource][]netip.Prefix
	tell int
}

func (n *namespace) follow(sources ...RouteSource) *followed {
	n.t.Helper()
	f := &followed{t: n.t}
	f.Routes = NewRoutes(RoutesConfig{Namespace: n.path, OnChange: func(m map[RouteSource][]netip.Prefix) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now, f.tell = m, f.tell+1
	}}, quiet())
	f.Follow(sources...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	n.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("Run: %v", err)
		}
	})
	return f
}

func (f *followed) want(step string, s RouteSource, prefixes ...string) {
	f.t.Helper()
	var got []netip.Prefix
	testwait.Until(f.t, step, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		var known bool
		got, known = f.now[s]
		var text []string
		for _, p := range got {
			text = append(text, p.String())
		}
		return known && slices.Equal(text, prefixes)
	})
}

func TestConnectedRoutesOfAnInterfaceAreFollowed(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.veth("c", "d")
	n.addr("a", "192.0.2.1/24")
	n.addr("c", "198.51.100.1/24")
	n.route("203.0.113.0/24", "192.0.2.2", "") // by a, but no connected route
	n.route("0.0.0.0/0", "192.0.2.2", "")
	a := RouteSource{Interface: "a"}
	f := n.follow(a)
	f.want("IPv4", a, "192.0.2.0/24")
	six := n.addr("a", "2001:db8:1::1/64")
	f.want("and IPv6, without fe80::/64", a, "192.0.2.0/24", "2001:db8:1::/64")
	n.ok(n.nl.AddrDel(n.link("a"), six))
	f.want("the address goes", a, "192.0.2.0/24")
	n.down("b")
	f.want("no carrier: the kernel keeps the route and can't use it", a)
	n.up("b")
	f.want("the carrier is back", a, "192.0.2.0/24")
	n.ok(n.nl.LinkDel(n.link("a")))
	f.want("the interface goes", a)
	n.veth("a", "b")
	n.addr("a", "192.0.2.1/25")
	f.want("another interface of this name", a, "192.0.2.0/25")

	c := RouteSource{Interface: "c"}
	f.Follow(c)
	f.want("another source", c, "198.51.100.0/24")
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, still := f.now[a]; still {
		t.Error("a source that is no longer followed is told")
	}
}

func TestRoutesOfATableAreFollowed(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.veth("c", "d")
	n.addr("a", "192.0.2.1/24")
	n.addr("c", "198.51.100.1/24")
	in := func(table int) func(*netlink.Route) { return func(r *netlink.Route) { r.Table = table } }
	all, byA := RouteSource{Table: 1000}, RouteSource{Table: 1000, Interface: "a"}
	f := n.follow(all, byA)
	f.want("empty", all)
	n.route("10.1.0.0/16", "192.0.2.2", "", in(1000))
	r := n.route("10.2.0.0/16", "198.51.100.2", "", in(1000))
	n.route("10.3.0.0/16", "192.0.2.2", "", in(1001))
	n.route("10.4.0.0/16", "", "", in(1000), kind(unix.RTN_BLACKHOLE))
	n.route("0.0.0.0/0", "192.0.2.2", "", in(1000))
	f.want("by any interface", all, "10.1.0.0/16", "10.2.0.0/16")
	f.want("by one", byA, "10.1.0.0/16")
	n.ok(n.nl.RouteDel(r))
	f.want("withdrawn", all, "10.1.0.0/16")
	n.route("10.1.0.0/16", "198.51.100.2", "", in(1000), func(r *netlink.Route) { r.Priority = 7 })
	n.route("10.5.0.0/16", "192.0.2.2", "", in(1000))
	f.want("one prefix twice is one prefix", all, "10.1.0.0/16", "10.5.0.0/16")
}

func TestRoutesOfOthersAskForNoRound(t *testing.T) {
	r := NewRoutes(RoutesConfig{}, quiet())
	m := func(typ uint16, table, protocol byte, attr ...byte) *syscall.NetlinkMessage {
		b := rtmsg(unix.AF_INET, 16, []byte{10, 1, 0, 0})
		b[4], b[5] = table, protocol
		return &syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: typ}, Data: append(b, attr...)}
	}
	if r.relevant(m(unix.RTM_NEWLINK, 0, 0)) {
		t.Error("without a source nothing matters")
	}
	r.Follow(RouteSource{Interface: "a"}, RouteSource{Table: 1000})
	for what, tt := range map[string]struct {
		m    *syscall.NetlinkMessage
		want bool
	}{
		"a connected route":            {m(unix.RTM_NEWROUTE, unix.RT_TABLE_MAIN, unix.RTPROT_KERNEL), true},
		"a routing daemon's route":     {m(unix.RTM_NEWROUTE, unix.RT_TABLE_MAIN, unix.RTPROT_BGP), false},
		"of another table":             {m(unix.RTM_DELROUTE, 100, unix.RTPROT_KERNEL), false},
		"of the table, which is large": {m(unix.RTM_DELROUTE, unix.RT_TABLE_COMPAT, unix.RTPROT_BGP, 8, 0, unix.RTA_TABLE, 0, 0xe8, 3, 0, 0), true},
		"a link":                       {m(unix.RTM_DELLINK, 0, 0), true},
		"what can't be read":           {&syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWROUTE}}, true},
	} {
		if got := r.relevant(tt.m); got != tt.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func FuzzRouteTable(f *testing.F) {
	f.Add(rtmsg(unix.AF_INET, 16, []byte{10, 1, 0, 0}))
	f.Add(append(rtmsg(unix.AF_INET6, 0, nil), 8, 0, unix.RTA_TABLE, 0, 0xe8, 3, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		if table, _, ok := routeTable(b); ok && table < 0 {
			t.Errorf("%x gives table %d", b, table)
		}
	})
}
