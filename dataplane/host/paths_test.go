package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/internal/testwait"
)

// pathsIn runs a follower in a namespace until the test ends.
func pathsIn(t *testing.T, n *namespace, limit int) *Paths {
	t.Helper()
	p := NewPaths(PathsConfig{Namespace: n.path, Max: limit}, quiet())
	p.settle = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-p.Ready()
	return p
}

// pathTo is Path in words.
func pathTo(p *Paths, dst string) string {
	index, mac, mtu, ok := p.Path(netip.MustParseAddr(dst))
	if !ok {
		return "none"
	}
	return fmt.Sprint(index, " ", net.HardwareAddr(mac[:]), " ", mtu)
}

func (n *namespace) neighbor(dev, ip, mac string, state int) {
	n.t.Helper()
	hw, err := net.ParseMAC(mac)
	n.ok(err)
	n.ok(n.nl.NeighSet(&netlink.Neigh{LinkIndex: n.link(dev).Attrs().Index, IP: net.ParseIP(ip), HardwareAddr: hw, State: state}))
}

func TestPathsAreThoseOfTheKernel(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.addr("a", "192.0.2.1/24")
	n.addr("a", "2001:db8::1/64")
	n.route("198.51.100.0/24", "192.0.2.2", "a")
	n.route("203.0.113.0/24", "", "", kind(unix.RTN_BLACKHOLE))
	n.route("198.18.0.0/16", "192.0.2.2", "a", func(r *netlink.Route) { r.MTU = 1400 })
	for dst, hops := range map[string][2]string{"100.64.0.0/16": {"192.0.2.2", "192.0.2.3"}, "2001:db8:1::/48": {"2001:db8::2", "2001:db8::3"}} {
		n.route(dst, "", "", func(r *netlink.Route) {
			for _, hop := range hops {
				r.MultiPath = append(r.MultiPath, &netlink.NexthopInfo{LinkIndex: n.link("a").Attrs().Index, Gw: net.ParseIP(hop)})
			}
		})
	}
	p := pathsIn(t, n, 0)
	index := n.link("a").Attrs().Index
	to := func(mac string, mtu int) string { return fmt.Sprint(index, " ", mac, " ", mtu) }
	const m2, m9 = "02:00:00:00:00:02", "02:00:00:00:00:09"
	want := func(what, dst, path string) {
		t.Helper()
		testwait.UntilRight(t, func() string {
			if got := pathTo(p, dst); got != path {
				return fmt.Sprintf("%s: %s by %q, want %q", what, dst, got, path)
			}
			return ""
		})
	}
	for _, dst := range []string{
		"192.0.2.2", "198.51.100.7", "198.18.0.1", "2001:db8::2", "203.0.113.1", "127.0.0.1", "192.0.2.1", "224.0.0.5", "8.8.8.8", "100.64.0.1", "2001:db8:1::1",
	} {
		if got := pathTo(p, dst); got != "none" {
			t.Errorf("%s before it was asked for: %s", dst, got)
		}
	}
	n.neighbor("a", "192.0.2.2", m2, netlink.NUD_PERMANENT)
	n.neighbor("a", "2001:db8::2", m9, netlink.NUD_REACHABLE)
	n.neighbor("a", "192.0.2.3", m2, netlink.NUD_PERMANENT)
	n.neighbor("a", "2001:db8::3", m9, netlink.NUD_PERMANENT)
	want("on the link", "192.0.2.2", to(m2, 1500))
	want("by a gateway", "198.51.100.7", to(m2, 1500))
	want("by a route with an MTU", "198.18.0.1", to(m2, 1400))
	want("IPv6", "2001:db8::2", to(m9, 1500))
	testwait.UntilRight(t, func() string {
		if all, usable := p.Known(); all != 11 || usable != 4 {
			return fmt.Sprintf("%d are known, %d of them usable", all, usable)
		}
		return ""
	})
	for _, dst := range []string{"203.0.113.1", "127.0.0.1", "192.0.2.1", "224.0.0.5", "8.8.8.8", "100.64.0.1", "2001:db8:1::1"} {
		if got := pathTo(p, dst); got != "none" {
			t.Errorf("%s: %s", dst, got)
		}
	}
	n.neighbor("a", "192.0.2.2", m9, netlink.NUD_PERMANENT)
	want("another MAC address", "198.51.100.7", to(m9, 1500))
	n.ok(n.nl.LinkSetMTU(n.link("a"), 1280))
	want("another MTU", "192.0.2.2", to(m9, 1280))
	n.ok(n.nl.NeighDel(&netlink.Neigh{LinkIndex: index, IP: net.ParseIP("192.0.2.2")}))
	want("the neighbour is gone", "192.0.2.2", "none")
	n.neighbor("a", "192.0.2.2", m2, netlink.NUD_PERMANENT)
	want("and back", "192.0.2.2", to(m2, 1280))
	rule := netlink.NewRule()
	rule.Priority, rule.Table, rule.Family = 1000, 100, unix.AF_INET
	n.ok(n.nl.RuleAdd(rule))
	want("a policy rule", "192.0.2.2", "none")
	n.ok(n.nl.RuleDel(rule))
	want("and none", "192.0.2.2", to(m2, 1280))
	n.down("a")
	want("down", "192.0.2.2", "none")
}

func TestAStaleNeighbourIsLeftToTheKernelOnceToAsk(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.addr("a", "192.0.2.1/24")
	n.neighbor("a", "192.0.2.2", "02:00:00:00:00:02", netlink.NUD_REACHABLE)
	p := pathsIn(t, n, 0)
	testwait.Until(t, "a path", func() bool { return pathTo(p, "192.0.2.2") != "none" })
	n.neighbor("a", "192.0.2.2", "02:00:00:00:00:02", netlink.NUD_STALE)
	testwait.Until(t, "the first goes by the kernel", func() bool { return pathTo(p, "192.0.2.2") == "none" })
	rounds := p.rounds.Load()
	for range 3 {
		if got := pathTo(p, "192.0.2.2"); got == "none" {
			t.Error("a later one does not go as before")
		}
	}
	p.poke()
	testwait.Until(t, "a round", func() bool { return p.rounds.Load() > rounds })
	testwait.Until(t, "the round's end", func() bool { return pathTo(p, "192.0.2.2") != "none" })
	// The kernel's question had no answer.
	n.neighbor("a", "192.0.2.2", "02:00:00:00:00:02", netlink.NUD_FAILED)
	testwait.Until(t, "no path to a neighbour that failed", func() bool { return pathTo(p, "192.0.2.2") == "none" })
}

func TestPathsAreBoundedAndThoseInUseStay(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.addr("a", "192.0.2.1/24")
	for i := 2; i < 9; i++ {
		n.neighbor("a", fmt.Sprint("192.0.2.", i), "02:00:00:00:00:02", netlink.NUD_PERMANENT)
	}
	p := pathsIn(t, n, 2)
	testwait.Until(t, "two paths", func() bool { return pathTo(p, "192.0.2.2") != "none" && pathTo(p, "192.0.2.3") != "none" })
	testwait.Until(t, "another one makes room", func() bool { pathTo(p, "192.0.2.2"); return pathTo(p, "192.0.2.4") != "none" })
	if all, _ := p.Known(); all > 2 {
		t.Errorf("%d are followed", all)
	}
}

func TestPathAllocatesNothing(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.addr("a", "192.0.2.1/24")
	n.neighbor("a", "192.0.2.2", "02:00:00:00:00:02", netlink.NUD_PERMANENT)
	p := pathsIn(t, n, 0)
	dst := netip.MustParseAddr("192.0.2.2")
	testwait.Until(t, "a path", func() bool { _, _, _, ok := p.Path(dst); return ok })
	if a := testing.AllocsPerRun(1000, func() { p.Path(dst) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
