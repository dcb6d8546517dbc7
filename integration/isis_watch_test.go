package integration

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"pncd/integration/lab"
)

// Prefixes that leaves announce in these labs: no router may have a route for any of them.
var isisMarked = []netip.Prefix{
	netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("10.7.0.0/24"), netip.MustParsePrefix("10.64.0.0/10"),
	netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("2001:db8:7::/48"),
}

// watchRoutes follows the routing table of every router's kernel until the test ends, and fails the test when
// a route through a leaf was ever in one, however shortly.
func (l *isisLab) watchRoutes() {
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
}

// mark waits until the monitor has seen a route that is made, and taken away again: it runs.
func (l *isisLab) mark(router string, monitor *lab.Process, to string) {
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
func (l *isisLab) leafAddresses() (all []netip.Addr) {
	l.t.Helper()
	for _, leaf := range l.leaves {
		for _, f := range strings.Fields(l.run(leaf, "ip", "-br", "addr", "show", "dev", "eth1")) {
			if p, err := netip.ParsePrefix(f); err == nil {
				all = append(all, p.Addr())
			}
		}
	}
	return all
}

// noTransit fails when a router routes through a leaf now, in the kernel or in FRR's own table.
func (l *isisLab) noTransit() {
	l.t.Helper()
	leaves := l.leafAddresses()
	for _, r := range l.routers {
		text := l.run(r, "ip", "route") + l.run(r, "ip", "-6", "route") + l.vtysh(r, "show ip route isis", "show ipv6 route isis")
		if line := throughLeaf(text, leaves); line != "" {
			l.t.Fatalf("%s has a route through a leaf (%s):\n%s", r, line, text)
		}
	}
}

// throughLeaf gives the first line of routes, as ip or FRR print them, that names a leaf as the next hop or is
// for what a leaf announces.
func throughLeaf(text string, leaves []netip.Addr) string {
	for line := range strings.Lines(text) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,\n\t", r) })
		for i, f := range fields {
			hop, err := netip.ParseAddr(f)
			if err == nil && i > 0 && fields[i-1] == "via" && slices.Contains(leaves, hop) {
				return strings.TrimSpace(line)
			}
			p, err := netip.ParsePrefix(f)
			if err == nil && slices.ContainsFunc(isisMarked, func(m netip.Prefix) bool { return m.Overlaps(p) && p.Bits() > 0 }) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

func TestWatchSeesRoutesThroughALeaf(t *testing.T) {
	leaves := []netip.Addr{netip.MustParseAddr("10.9.1.10"), netip.MustParseAddr("fe80::10")}
	for text, want := range map[string]bool{
		"10.255.0.2 nhid 8 via 10.9.2.2 dev eth2 proto isis metric 20":          false,
		"10.9.1.0/24 dev eth1 proto kernel scope link src 10.9.1.1":             false,
		"default via 10.9.2.2 dev eth2":                                         false,
		"Deleted 10.77.0.0/16 nhid 9 via 10.9.1.10 dev eth1 proto isis":         true,
		"2001:db8:77::/48 nhid 9 via fe80::10 dev eth1 proto isis":              true,
		"I>* 10.1.0.0/24 [115/20] via 10.9.2.2, eth2, weight 1, 00:00:01":       true,
		"I>* 10.77.0.0/24 [115/20] via 10.9.1.10, eth1, weight 1, 00:00:01":     true,
		"\tnexthop via 10.9.2.2 dev eth2 weight 1\n\tnexthop via 10.9.1.10 dev": true,
		"10.1.0.0/24 nhid 9 dev eth1 proto isis":                                true,
		"2001:db8:1::/48 dev eth1 proto isis metric 20":                         true,
	} {
		if got := throughLeaf(text, leaves) != ""; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
