package pnc

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

func TestAnEntrySaysWhatTheRouteSaid(t *testing.T) {
	full := Route{
		Context: "red", Prefix: pfx("10.1.0.0/16"), Source: SourceOSPF, Proxy: addr("198.51.100.1"), NextHop: addr("2001:db8::1"),
		Originator: "192.0.2.7", Peer: "192.0.2.8", RD: "65000:100", PathID: 7, Metric: 9, Override: true,
		Disregarded: DisregardUnknownLength, Version: 3, ChangedAt: t0,
	}
	for name, change := range map[string]func(*Route){
		"as it is":             func(*Route) {},
		"all of IPv4":          func(r *Route) { r.Prefix = pfx("0.0.0.0/0") },
		"one IPv4 address":     func(r *Route) { r.Prefix = pfx("255.255.255.255/32") },
		"all of IPv6":          func(r *Route) { r.Prefix = pfx("::/0") },
		"one IPv6 address":     func(r *Route) { r.Prefix = pfx("2001:db8::ff/128") },
		"IPv4-mapped":          func(r *Route) { r.Prefix = netip.PrefixFrom(addr("::ffff:10.1.0.0"), 112) },
		"no prefix":            func(r *Route) { r.Prefix = netip.Prefix{} },
		"best":                 func(r *Route) { r.Best = true },
		"stale":                stale,
		"long-lived":           long,
		"partial":              func(r *Route) { r.Partial = true },
		"nothing but a prefix": func(r *Route) { *r = Route{Prefix: r.Prefix} },
	} {
		r := full
		change(&r)
		e := NewEntry(r)
		if got := e.Route(); got != r {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, r)
		}
		if e.Prefix() != r.Prefix || e.Context() != r.Context || e.Source() != r.Source || e.Proxy() != r.Proxy || e.Best() != r.Best ||
			e.Stale() != r.Stale || e.LongLived() != r.LongLived || e.Disregarded() != r.Disregarded || e.Believed() != r.Believed() ||
			e.ID() != r.ID() || !e.ChangedAt().Equal(r.ChangedAt) || e.Age(t0.Add(time.Hour)) != r.Age(t0.Add(time.Hour)) {
			t.Errorf("%s: %+v differs from %+v", name, e, r)
		}
	}
}

// A table may hold millions: what an entry needs is what the table needs.
func TestWhatRoutesHaveInCommonIsKeptOnce(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size > 48 {
		t.Errorf("an entry has %d octets", size)
	}
	tb := New(Config{})
	const prefixes, proxies = 1000, 3
	for i := range prefixes { // a batch each: what is in common outlives one
		r := route(SourceBGP, fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255), fmt.Sprintf("198.51.100.%d", i%proxies))
		tb.Apply(t0, add(r)...)
	}
	kinds := map[*shared]bool{}
	for _, s := range tb.Snapshot().base.routes.All() {
		kinds[s.route.shared] = true
	}
	if len(kinds) != proxies {
		t.Errorf("%d routes with %d proxies have %d things in common", prefixes, proxies, len(kinds))
	}
}

func TestTheInternerIsOfFixedSizeAndNeverMixesThingsUp(t *testing.T) {
	in := newInterner()
	for i := range uint32(10 * len(in.recent)) {
		a := in.of(&shared{metric: i})
		if a.metric != i || in.of(&shared{metric: i}) != a {
			t.Fatalf("%d became %d", i, a.metric)
		}
		if b := in.of(&shared{metric: i, peer: "192.0.2.1"}); b.metric != i || b.peer == "" {
			t.Fatalf("%d with a peer became %+v", i, b)
		}
	}
}
