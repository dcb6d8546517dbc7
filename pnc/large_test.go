package pnc

import (
	"net/netip"
	"slices"
	"testing"
)

// A few withdrawals from a large table copy only the way to them, many copy everything once: both
// must leave older snapshots as they were.
func TestWithdrawalsFromALargeTable(t *testing.T) {
	prefixes, _ := internetPrefixes(20_000)
	cover := route(SourceBGP, "0.0.0.0/1", "198.51.100.200")
	cover2 := route(SourceBGP, "128.0.0.0/1", "198.51.100.200")
	for _, size := range []int{1, 20, 5000} { // 100 and more copy everything
		tb := tableWith(Config{}, cover, cover2)
		tb.Apply(t0, bulkRoutes(prefixes)...)
		reachAll(tb)
		full := tb.Snapshot()
		us := bulkRoutes(prefixes)
		for i := range us {
			us[i].Withdraw = true
		}
		some := us[:min(len(us), 40*size)]
		for batch := range slices.Chunk(some, size) {
			tb.Apply(t0, batch...)
		}
		now := tb.Snapshot()
		if n, _ := now.Len(); n != len(prefixes)+2-len(some) {
			t.Errorf("batches of %d: %d routes left", size, n)
		}
		left := 0
		for range now.Routes(Filter{All: true}) {
			left++
		}
		if left != len(prefixes)+2-len(some) {
			t.Errorf("batches of %d: %d routes listed", size, left)
		}
		gone := map[netip.Prefix]bool{}
		for _, u := range some {
			gone[u.Route.Prefix] = true
		}
		for _, p := range prefixes {
			if r := full.Resolve("", p.Addr(), 0); r.Route.Prefix().Bits() < p.Bits() {
				t.Fatalf("batches of %d: %s left an old snapshot", size, p)
			}
			r := now.Resolve("", p.Addr(), 0)
			if r.Reason != ReasonFound || gone[r.Route.Prefix()] || !gone[p] && r.Route.Prefix().Bits() < p.Bits() {
				t.Fatalf("batches of %d: %s resolves by %s", size, p, r.Route.Prefix())
			}
		}
	}
}

func TestResolveDoesNotAllocate(t *testing.T) {
	routes := append(equalProxies(5),
		route(SourceBGP, "10.2.0.0/16", "198.51.100.50"),
		route(SourceBGP, "10.3.0.0/16", ""),
		route(SourceBGP, "10.4.0.0/16", "198.51.100.51"),
		route(SourceOSPF, "10.4.0.0/16", "198.51.100.52"),
		route(SourceStatic, "10.5.0.0/16", "198.51.100.50", override),
		route(SourceBGP, "10.5.1.0/24", "198.51.100.51"),
		route(SourceBGP, "0.0.0.0/0", "198.51.100.50"),
		route(SourceBGP, "2001:db8::/32", "2001:db8::1"),
		route(SourceBGP, "10.2.0.0/16", "198.51.100.50", context("red")))
	tb := tableWith(Config{Share: ShareHash, Contexts: []string{"red"}}, routes...)
	tb.SetReachability(t0, map[netip.Addr]Reach{addr("198.51.100.51"): {}})
	for _, tt := range []struct {
		name, context, sender string
		reason                Reason
	}{
		{"one proxy", "", "10.2.0.1", ReasonFound},
		{"shared", "", "10.1.0.1", ReasonFound},
		{"the second candidate", "", "10.4.0.1", ReasonFound},
		{"override", "", "10.5.1.1", ReasonFound},
		{"no proxy", "", "10.3.0.1", ReasonNoProxy},
		{"default", "", "192.0.2.1", ReasonDefaultRouteRefused},
		{"no route", "", "2001:db9::1", ReasonNoRoute},
		{"IPv6", "", "2001:db8::9", ReasonFound},
		{"IPv4-mapped", "", "::ffff:10.2.0.1", ReasonFound},
		{"context", "red", "10.2.0.1", ReasonFound},
		{"unknown context", "blue", "10.2.0.1", ReasonContextUnknown},
	} {
		sender := addr(tt.sender)
		var got Resolution
		allocs := testing.AllocsPerRun(100, func() { got = tb.Resolve(tt.context, sender, 42) })
		if allocs != 0 || got.Reason != tt.reason {
			t.Errorf("%s: %v allocations, %s", tt.name, allocs, got.Reason)
		}
	}
}
