package integration

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pncd/integration/lab"
)

// Prefixes that leaves announce in these labs, and the proxy itself: no router may have a route for any of them.
var igpMarked = []netip.Prefix{
	netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("10.7.0.0/24"), netip.MustParsePrefix("10.64.0.0/10"),
	netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("2001:db8:7::/48"), netip.MustParsePrefix(igpProxy + "/32"),
}

// watchPause is between two looks at the routers' own tables.
const watchPause = time.Second

// watchRoutes follows the routing table of every router's kernel until the test ends, and looks at the router's own
// table again and again. It fails the test when a route through a leaf was ever in the first, however shortly, or
// was seen in the second.
func (l *igpLab) watchRoutes() {
	l.t.Helper()
	monitors := map[string]*lab.Process{}
	for _, r := range l.routers {
		p, err := l.Start(l.ctx, r, lab.Proc{Name: "routes", Argv: []string{"ip", "monitor", "route"}})
		if err != nil {
			l.t.Fatal(err)
		}
		monitors[r] = p
		l.mark(r, p, "192.0.2.253")
	}
	l.noTransit() // what was there before
	l.t.Cleanup(func() {
		for r, p := range monitors {
			l.mark(r, p, "192.0.2.254") // what came before it has been written
			text, err := os.ReadFile(p.Log())
			if err != nil {
				l.t.Error(err)
			}
			if line := throughLeaf(string(text), l.leafAddresses()); line != "" {
				l.t.Errorf("%s had a route through a leaf: %s", r, line)
			}
		}
		l.noTransit()
	})
	for _, r := range l.routers {
		l.pollRoutes(r, l.leafAddresses())
	}
}

// pollRoutes looks at a router's own table until the test ends.
func (l *igpLab) pollRoutes(router string, leaves []netip.Addr) {
	var looks atomic.Uint64
	inBackground(l.t, "the routes of "+router, func(ctx context.Context) error {
		for {
			text, err := l.routes(ctx, router)
			if line := throughLeaf(text, leaves); err == nil && line != "" {
				return fmt.Errorf("a route through a leaf: %s", line)
			}
			if err == nil { // else a daemon that a test killed doesn't answer
				looks.Add(1)
			}
			select {
			case <-ctx.Done():
				if looks.Load() == 0 {
					return fmt.Errorf("were never seen: %w", err)
				}
				return nil
			case <-time.After(watchPause):
			}
		}
	})
}

// routes are the routes that a router has, in its own table and in those of its kernel.
func (l *igpLab) routes(ctx context.Context, router string) (string, error) {
	argv := []string{"birdc", "-s", "/run/bird.ctl", "show", "route"}
	if !slices.Contains(l.birds, router) {
		argv = []string{"vtysh"}
		commands := l.igp.routes
		if !l.hasKilled(router) {
			commands = slices.Concat(commands, l.igp.own)
		}
		for _, c := range commands {
			argv = append(argv, "-c", c)
		}
	}
	var all string
	for _, argv := range [][]string{argv, {"ip", "route"}, {"ip", "-6", "route"}} {
		out, err := l.Exec(ctx, router, argv...)
		if err != nil {
			return "", err
		}
		all += string(out)
	}
	return all, nil
}

// mark waits until the monitor has seen a route that is made, and taken away again: it runs.
func (l *igpLab) mark(router string, monitor *lab.Process, to string) {
	l.t.Helper()
	n := 0
	l.eventually("the routes of "+router+" are watched", func() string {
		text, err := os.ReadFile(monitor.Log())
		if err != nil || !strings.Contains(string(text), to) {
			if n++; n%10 == 1 { // the first may come before the monitor listens
				l.run(router, "ip", "route", "replace", "blackhole", to)
				l.run(router, "ip", "route", "del", "blackhole", to)
			}
			return fmt.Sprintf("nothing of %s: %v", to, err)
		}
		return ""
	})
}

// leafAddresses are all addresses of the leaves on their links.
func (l *igpLab) leafAddresses() (all []netip.Addr) {
	l.t.Helper()
	for _, leaf := range l.leaves {
		for line := range strings.Lines(l.run(leaf, "ip", "-br", "addr")) {
			for i, f := range strings.Fields(line) {
				if i == 0 && f == "lo" {
					break
				}
				if p, err := netip.ParsePrefix(f); err == nil {
					all = append(all, p.Addr())
				}
			}
		}
	}
	return all
}

// noTransit fails when a router routes through a leaf now.
func (l *igpLab) noTransit() {
	l.t.Helper()
	leaves := l.leafAddresses()
	for _, r := range l.routers {
		text, err := l.routes(l.ctx, r)
		if err != nil {
			l.t.Fatal(err)
		}
		if line := throughLeaf(text, leaves); line != "" {
			l.t.Fatalf("%s has a route through a leaf (%s):\n%s", r, line, text)
		}
	}
}

// ospfLeafIDs are the router IDs of leaves.
var ospfLeafIDs = netip.MustParsePrefix("10.254.0.0/24")

// throughLeaf gives the first line of routes, as ip, FRR or BIRD print them, that names a leaf as the next hop or is
// for what a leaf announces. How ospfd reaches the leaf as a router is no route through it.
func throughLeaf(text string, leaves []netip.Addr) string {
	toLeaf := false // the next hops that follow lead to a leaf itself
	for line := range strings.Lines(text) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,\n\t[]", r) })
		if !strings.ContainsAny(line[:1], " \t") {
			toLeaf = false
			if len(fields) > 1 && fields[0] == "R" {
				id, err := netip.ParseAddr(fields[1])
				toLeaf = err == nil && ospfLeafIDs.Contains(id)
			}
		}
		if toLeaf {
			continue
		}
		for _, f := range fields {
			hop, err := netip.ParseAddr(f)
			if err == nil && slices.Contains(leaves, hop) {
				return strings.TrimSpace(line)
			}
			p, err := netip.ParsePrefix(f)
			if err != nil && hop.IsValid() {
				p, err = hop.Prefix(hop.BitLen()) // ip prints the route for a host without its length
			}
			if err == nil && slices.ContainsFunc(igpMarked, func(m netip.Prefix) bool { return m.Overlaps(p) && p.Bits() > 0 }) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

func TestWatchSeesRoutesThroughALeaf(t *testing.T) {
	leaves := []netip.Addr{netip.MustParseAddr("10.9.1.10"), netip.MustParseAddr("fe80::10")}
	for text, want := range map[string]bool{
		"10.255.0.2 nhid 8 via 10.9.2.2 dev eth2 proto isis metric 20":                                  false,
		"10.9.1.0/24 dev eth1 proto kernel scope link src 10.9.1.1":                                     false,
		"default via 10.9.2.2 dev eth2":                                                                 false,
		"Deleted 10.77.0.0/16 nhid 9 via 10.9.1.10 dev eth1 proto isis":                                 true,
		"2001:db8:77::/48 nhid 9 via fe80::10 dev eth1 proto isis":                                      true,
		"I>* 10.1.0.0/24 [115/20] via 10.9.2.2, eth2, weight 1, 00:00:01":                               true,
		"I>* 10.77.0.0/24 [115/20] via 10.9.1.10, eth1, weight 1, 00:00:01":                             true,
		"\tnexthop via 10.9.2.2 dev eth2 weight 1\n\tnexthop via 10.9.1.10 dev":                         true,
		"10.1.0.0/24 nhid 9 dev eth1 proto isis":                                                        true,
		"2001:db8:1::/48 dev eth1 proto isis metric 20":                                                 true,
		igpProxy + " nhid 9 via 10.9.2.2 dev eth2 proto ospf metric 20":                                 true,
		"N    10.9.1.0/24  [10] area: 0.0.0.0\n   directly attached to eth1":                            false,
		"N    10.200.0.0/24 [20] area: 0.0.0.0\n   via 10.9.1.10, eth1":                                 true,
		"R    10.255.0.3 IA [20] area: 0.0.0.0, ABR\n   via 10.9.1.10, eth1":                            true,
		"*N IA 2001:db8:77::/64  fe80::10  eth1 00:00:02":                                               true,
		"*N IA 2001:db8:77::/64  fe80::1  eth1 00:00:02":                                                false,
		"10.200.0.0/24 unicast [ospf4 10:01:02.003] * I (150/20) [10.255.0.1]\n\tvia 10.9.2.1 on eth1":  false,
		"10.200.0.0/24 unicast [ospf4 10:01:02.003] * I (150/20) [10.255.0.1]\n\tvia 10.9.1.10 on eth1": true,
		"2001:db8:1::/48 unicast [ospf6 10:01:02.003] * I (150/20) [10.255.0.1]\n\tvia fe80::1 on eth1": true,
	} {
		if got := throughLeaf(text, leaves) != ""; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
