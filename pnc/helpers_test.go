package pnc

import (
	"net/netip"
	"testing"
	"time"
)

var t0 = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func addr(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// route makes a best route; an empty proxy means without PNC.
func route(src Source, prefix, proxy string, change ...func(*Route)) Route {
	r := Route{Prefix: pfx(prefix), Source: src, Proxy: addr(proxy), Best: true}
	if src != SourceStatic {
		r.Peer = "192.0.2.254"
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func context(name string) func(*Route)      { return func(r *Route) { r.Context = name } }
func peer(name string) func(*Route)         { return func(r *Route) { r.Peer = name } }
func path(id uint32) func(*Route)           { return func(r *Route) { r.PathID = id } }
func metric(m uint32) func(*Route)          { return func(r *Route) { r.Metric = m } }
func notBest(r *Route)                      { r.Best = false }
func override(r *Route)                     { r.Override = true }
func stale(r *Route)                        { r.Stale = true }
func long(r *Route)                         { r.LongLived = true }
func reason(d DisregardReason) func(*Route) { return func(r *Route) { r.Disregarded = d } }

func add(routes ...Route) []Update {
	us := make([]Update, len(routes))
	for i, r := range routes {
		us[i] = Update{Route: r}
	}
	return us
}

func withdraw(routes ...Route) []Update {
	us := add(routes...)
	for i := range us {
		us[i].Withdraw = true
	}
	return us
}

// reachAll tells the table that every proxy it has is reachable.
func reachAll(t *Table) {
	m := map[netip.Addr]Reach{}
	for _, p := range t.Proxies() {
		m[p] = Reach{Reachable: true}
	}
	t.SetReachability(t0, m)
}

// tableWith makes a table with these routes, every proxy reachable.
func tableWith(cfg Config, routes ...Route) *Table {
	t := New(cfg)
	t.Apply(t0, add(routes...)...)
	reachAll(t)
	return t
}

// wantResolve checks reason and proxy ("" for none).
func wantResolve(t *testing.T, tb *Table, sender string, reason Reason, proxy string) Resolution {
	t.Helper()
	got := tb.Resolve("", addr(sender), 0)
	if got.Reason != reason || got.Proxy != addr(proxy) {
		t.Fatalf("Resolve(%s) = %s %s, want %s %s", sender, got.Reason, got.Proxy, reason, proxy)
	}
	return got
}

func reachOf(proxy string, r Reach) map[netip.Addr]Reach { return map[netip.Addr]Reach{addr(proxy): r} }
