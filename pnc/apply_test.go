package pnc

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// kinds lists the events as "learned 10.0.0.0/8 -> proxy".
func kinds(events []Event) string {
	var s []string
	for _, e := range events {
		s = append(s, e.Kind.String()+" "+e.Route.Prefix.String()+" "+e.Route.Proxy.String())
	}
	return strings.Join(s, "; ")
}

func TestApplyHistory(t *testing.T) {
	const p1, p2 = "198.51.100.1", "198.51.100.2"
	with := func(proxy string, change ...func(*Route)) Route {
		return route(SourceBGP, "10.1.0.0/16", proxy, change...)
	}
	tests := []struct {
		name   string
		before []Route
		update []Update
		want   string // of the events that update made
		detail string
	}{
		{"a PNC is learned", nil, add(with(p1)), "learned 10.1.0.0/16 198.51.100.1", ""},
		{"a route without PNC is no event", nil, add(with("")), "", ""},
		{"the same again is no event", []Route{with(p1)}, add(with(p1)), "", ""},
		{"another proxy", []Route{with(p1)}, add(with(p2)), "changed 10.1.0.0/16 198.51.100.2", "proxy 198.51.100.1 -> 198.51.100.2"},
		{"stale", []Route{with(p1)}, add(with(p1, stale)), "changed 10.1.0.0/16 198.51.100.1", "stale false -> true"},
		{"kept for long", []Route{with(p1, stale)}, add(with(p1, stale, long)), "changed 10.1.0.0/16 198.51.100.1", "long-lived false -> true"},
		{"two fields", []Route{with(p1)}, add(with(p1, notBest, metric(7))), "changed 10.1.0.0/16 198.51.100.1", "best true -> false, metric 0 -> 7"},
		{"the route is withdrawn", []Route{with(p1)}, withdraw(with("")), "withdrawn 10.1.0.0/16 198.51.100.1", "route withdrawn"},
		{"the PNC is gone, the route stays", []Route{with(p1)}, add(with("")), "withdrawn 10.1.0.0/16 198.51.100.1", "route kept without capability"},
		{"the PNC is no longer believed", []Route{with(p1)}, add(with(p1, reason(DisregardNextHopMismatch))), "withdrawn 10.1.0.0/16 198.51.100.1", "no longer believed: next-hop-mismatch"},
		{"a route without PNC gets one", []Route{with("")}, add(with(p1)), "learned 10.1.0.0/16 198.51.100.1", ""},
		{"a withdrawal of nothing", nil, withdraw(with("")), "", ""},
		{"a withdrawal with another path identifier", []Route{with(p1)}, withdraw(with("", path(5))), "", ""},
		{"a withdrawal by another peer", []Route{with(p1)}, withdraw(with("", peer("198.18.0.1"))), "", ""},
		{"the host bits of the prefix don't matter", []Route{with(p1)}, withdraw(route(SourceBGP, "10.1.2.3/16", "")), "withdrawn 10.1.0.0/16 198.51.100.1", "route withdrawn"},
		{"learned and withdrawn in one batch", nil, append(add(with(p1)), withdraw(with(p1))...), "learned 10.1.0.0/16 198.51.100.1; withdrawn 10.1.0.0/16 198.51.100.1", ""},
		{"withdrawn and learned in one batch", []Route{with(p1)}, append(withdraw(with(p1)), add(with(p1))...), "withdrawn 10.1.0.0/16 198.51.100.1; learned 10.1.0.0/16 198.51.100.1", "route withdrawn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tb := tableWith(Config{}, tt.before...)
			old := len(tb.History())
			version := tb.Snapshot().Version()
			tb.Apply(t0.Add(time.Minute), tt.update...)
			got := tb.History()[old:]
			if kinds(got) != tt.want {
				t.Fatalf("got  %s\nwant %s", kinds(got), tt.want)
			}
			for _, e := range got {
				if !e.At.Equal(t0.Add(time.Minute)) {
					t.Errorf("event at %s", e.At)
				}
			}
			if len(got) > 0 && got[0].Detail != tt.detail {
				t.Errorf("detail %q, want %q", got[0].Detail, tt.detail)
			}
			if len(got) > 0 && got[0].Kind != EventWithdrawn && got[0].Route.Version != version+1 {
				t.Errorf("route's version %d after the table's %d", got[0].Route.Version, version)
			}
		})
	}
}

func TestApplyWithoutChangeKeepsVersionAndAge(t *testing.T) {
	r := route(SourceBGP, "10.1.0.0/16", "198.51.100.1")
	tb := tableWith(Config{}, r)
	before := tb.Snapshot()
	tb.Apply(t0.Add(time.Hour), add(r)...)
	tb.Apply(t0.Add(time.Hour), withdraw(route(SourceBGP, "10.9.0.0/16", ""))...)
	if tb.Snapshot() != before {
		t.Error("an update that changes nothing made a new snapshot")
	}
	if got := wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.1").Route.ChangedAt(); !got.Equal(t0) {
		t.Errorf("changed at %s", got)
	}
}

func TestApplyRefusesAndCountsWhatIsInvalid(t *testing.T) {
	bad := []Route{
		{Source: SourceBGP},
		{Source: SourceUnknown, Prefix: pfx("10.0.0.0/8")},
		{Source: 99, Prefix: pfx("10.0.0.0/8")},
		{Source: SourceBGP, Prefix: netip.PrefixFrom(addr("::ffff:10.0.0.0"), 104)},
	}
	tb := New(Config{})
	tb.Apply(t0, add(bad...)...)
	if got := tb.Counters().Invalid; got != uint64(len(bad)) {
		t.Errorf("invalid %d, want %d", got, len(bad))
	}
	if n, _ := tb.Snapshot().Len(); n != 0 {
		t.Errorf("%d routes", n)
	}
}

func TestApplyDisregardsInvalidProxyAddresses(t *testing.T) {
	for _, proxy := range []string{"0.0.0.0", "::", "224.0.0.5", "ff02::1", "255.255.255.255", "fe80::1", "fe80::1%eth0", "::ffff:239.1.1.1",
		"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1", "169.254.0.1", "::ffff:169.254.7.7"} {
		tb := tableWith(Config{}, route(SourceBGP, "10.1.0.0/16", proxy))
		got := tb.Resolve("", addr("10.1.0.1"), 0)
		if got.Reason != ReasonNoProxy || got.Route.Disregarded() != DisregardInvalidProxyAddress {
			t.Errorf("%s: %s, %s", proxy, got.Reason, got.Route.Disregarded())
		}
		rejected := tb.Rejected()
		if len(rejected) != 1 || rejected[0].Reason != DisregardInvalidProxyAddress || rejected[0].Detail == "" {
			t.Errorf("%s: rejected %+v", proxy, rejected)
		}
		if err := CheckProxy(addr(proxy)); !errors.Is(err, ErrProxyAddress) {
			t.Errorf("CheckProxy(%s) = %v", proxy, err)
		}
		tb.Apply(t0, add(route(SourceBGP, "10.1.0.0/16", proxy))...)
		if got := len(tb.Rejected()); got != 1 {
			t.Errorf("%s: the same again made %d rejected events", proxy, got)
		}
		if len(tb.Proxies()) != 0 {
			t.Errorf("%s: proxies %v", proxy, tb.Proxies())
		}
	}
	for _, proxy := range []string{"198.51.100.1", "2001:db8::1", "128.0.0.1", "169.253.0.1", "::2"} {
		if err := CheckProxy(addr(proxy)); err != nil {
			t.Error(err)
		}
	}
	if err := CheckProxy(netip.Addr{}); !errors.Is(err, ErrProxyAddress) {
		t.Errorf("CheckProxy of nothing = %v", err)
	}
}

func TestHistoryIsBoundedAndRejectedIsApart(t *testing.T) {
	tb := New(Config{History: 4, Rejected: 3})
	for i := range byte(10) {
		r := route(SourceBGP, "10.1.0.0/16", "198.51.100.1")
		r.Proxy = netip.AddrFrom4([4]byte{198, 51, 100, i + 1})
		tb.Apply(t0.Add(time.Duration(i)*time.Second), add(r)...)
	}
	for i := range 1000 {
		tb.Disregard(t0.Add(time.Duration(i)*time.Second), Event{
			Route: route(SourceBGP, "10.2.0.0/16", "198.51.100.1"), Reason: DisregardNextHopMismatch, Detail: "a flood",
		})
	}
	history, rejected := tb.History(), tb.Rejected()
	if len(history) != 4 || len(rejected) != 3 {
		t.Fatalf("%d and %d events kept, want 4 and 3", len(history), len(rejected))
	}
	if got := history[3]; got.Kind != EventChanged || got.Route.Proxy != addr("198.51.100.10") {
		t.Errorf("newest event %+v", got)
	}
	ordered := func(a, b Event) int { return a.At.Compare(b.At) }
	if !slices.IsSortedFunc(history, ordered) || !slices.IsSortedFunc(rejected, ordered) {
		t.Error("not oldest first")
	}
	if got := rejected[2]; !got.At.Equal(t0.Add(999*time.Second)) || got.Detail != "a flood" || got.Kind != EventDisregarded {
		t.Errorf("newest rejected %+v", got)
	}
	c := tb.Counters()
	if c.Learned != 1 || c.Changed != 9 || c.Disregarded[DisregardNextHopMismatch] != 1000 {
		t.Errorf("counters %+v", c)
	}
	if len(c.Disregarded) != len(DisregardReasons()) {
		t.Errorf("%d reasons counted, there are %d", len(c.Disregarded), len(DisregardReasons()))
	}
}

func TestProxiesFollowsRoutes(t *testing.T) {
	signalled := func(tb *Table) bool {
		select {
		case <-tb.ProxiesChanged():
			return true
		default:
			return false
		}
	}
	tb := New(Config{})
	want := func(step string, signal bool, proxies ...string) {
		t.Helper()
		var got []string
		for _, p := range tb.Proxies() {
			got = append(got, p.String())
		}
		if !slices.Equal(got, proxies) {
			t.Errorf("%s: proxies %v, want %v", step, got, proxies)
		}
		if s := signalled(tb); s != signal {
			t.Errorf("%s: signalled %v", step, s)
		}
	}
	a := route(SourceBGP, "10.1.0.0/16", "198.51.100.1")
	b := route(SourceBGP, "10.2.0.0/16", "198.51.100.1")
	want("empty", false)
	tb.Apply(t0, add(a, b)...)
	want("two routes, one proxy", true, "198.51.100.1")
	tb.Apply(t0, withdraw(a)...)
	want("one route left", false, "198.51.100.1")
	tb.Apply(t0, add(route(SourceBGP, "10.2.0.0/16", "198.51.100.2"))...)
	want("another proxy", true, "198.51.100.2")
	reachAll(tb)
	tb.Apply(t0, append(withdraw(b), add(route(SourceBGP, "10.3.0.0/16", "198.51.100.2"))...)...)
	want("moved to another prefix", false, "198.51.100.2")
	wantResolve(t, tb, "10.3.0.1", ReasonFound, "198.51.100.2") // what was known of it stays
	tb.Apply(t0, add(route(SourceBGP, "10.3.0.0/16", "198.51.100.2", reason(DisregardProxyNotAccepted)))...)
	want("not believed", true)
	tb.Apply(t0, add(route(SourceBGP, "10.3.0.0/16", "198.51.100.3"))...)
	want("a number used again", true, "198.51.100.3")
	wantResolve(t, tb, "10.3.0.1", ReasonProxyUnreachable, "") // and knows nothing of who had it before
}

func TestSetStaticReplacesStaticRoutesOnly(t *testing.T) {
	tb := tableWith(Config{Contexts: []string{"red"}}, route(SourceBGP, "10.1.0.0/16", "198.51.100.9"))
	tb.SetStatic(t0, []Route{
		{Prefix: pfx("10.2.0.0/16"), Proxy: addr("198.51.100.1")},
		{Prefix: pfx("10.2.0.0/16"), Proxy: addr("198.51.100.2"), Metric: 5},
		{Prefix: pfx("10.3.0.0/16"), Proxy: addr("198.51.100.3")},
		{Prefix: pfx("10.3.0.0/16"), Proxy: addr("198.51.100.4"), Context: "red"},
		{Prefix: pfx("10.4.0.0/16")}, // no proxy there
	})
	reachAll(tb)
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.9")
	wantResolve(t, tb, "10.2.0.1", ReasonFound, "198.51.100.1")
	wantResolve(t, tb, "10.3.0.1", ReasonFound, "198.51.100.3")
	wantResolve(t, tb, "10.4.0.1", ReasonNoProxy, "")
	if n, c := tb.Snapshot().Len(); n != 6 || c != 5 {
		t.Errorf("%d routes, %d capabilities", n, c)
	}
	old := len(tb.History())

	again := []Route{
		{Prefix: pfx("10.2.0.0/16"), Proxy: addr("198.51.100.2"), Metric: 5},
		{Prefix: pfx("10.2.0.0/16"), Proxy: addr("198.51.100.7"), Metric: 1},
		{Prefix: pfx("10.2.0.0/16"), Proxy: addr("198.51.100.7"), Metric: 9},
	}
	tb.SetStatic(t0, again)
	reachAll(tb)
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.9")
	wantResolve(t, tb, "10.2.0.1", ReasonFound, "198.51.100.2")
	wantResolve(t, tb, "10.3.0.1", ReasonNoRoute, "")
	for _, e := range tb.History()[old:] {
		if e.Route.Proxy == addr("198.51.100.2") {
			t.Errorf("a static route that stayed made an event: %s %s", e.Kind, e.Detail)
		}
	}
	before := tb.Snapshot()
	tb.SetStatic(t0, again[:2:2])
	tb.SetStatic(t0, again)
	if n, _ := tb.Snapshot().Len(); n != 3 {
		t.Errorf("%d routes", n)
	}
	tb.SetStatic(t0, nil)
	wantResolve(t, tb, "10.2.0.1", ReasonNoRoute, "")
	if n, _ := before.Len(); n != 3 {
		t.Errorf("an old snapshot has %d routes now", n)
	}
	tb.SetStatic(t0, []Route{{}})
	if got := tb.Counters().Invalid; got != 1 {
		t.Errorf("invalid %d", got)
	}
}

func TestOverrideComesAndGoes(t *testing.T) {
	static := route(SourceStatic, "10.0.0.0/8", "198.51.100.1", override)
	tb := tableWith(Config{}, route(SourceBGP, "10.1.0.0/16", "198.51.100.2"))
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.2")
	tb.Apply(t0, add(static)...)
	reachAll(tb)
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.1")
	if c := tb.Snapshot().Candidates("", addr("10.1.0.1")); len(c) != 1 || c[0].Source != SourceStatic {
		t.Errorf("candidates %v", c)
	}
	// A learned route of the same length joins and leaves the slot of the static one.
	same := route(SourceBGP, "10.0.0.0/8", "198.51.100.3")
	tb.Apply(t0, add(same)...)
	reachAll(tb)
	tb.SetReachability(t0, map[netip.Addr]Reach{addr("198.51.100.1"): {}})
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.3")
	tb.Apply(t0, withdraw(same)...)
	wantResolve(t, tb, "10.1.0.1", ReasonProxyUnreachable, "")
	tb.Apply(t0, add(route(SourceStatic, "10.0.0.0/8", "198.51.100.1"))...)
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.2")
	tb.Apply(t0, add(static)...)
	tb.Apply(t0, withdraw(static)...)
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.2")
}

func TestReconfigure(t *testing.T) {
	tb := tableWith(Config{},
		route(SourceStatic, "0.0.0.0/0", "198.51.100.1", override),
		route(SourceBGP, "10.1.0.0/16", "198.51.100.2"),
		route(SourceOSPF, "10.1.0.0/16", "198.51.100.3"))
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.2")
	wantResolve(t, tb, "10.2.0.1", ReasonDefaultRouteRefused, "")
	tb.Reconfigure(t0, Config{Preference: []Source{SourceOSPF}})
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.3")
	tb.Reconfigure(t0, Config{AllowDefault: true})
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.1")
	wantResolve(t, tb, "10.2.0.1", ReasonFound, "198.51.100.1")
	tb.Reconfigure(t0, Config{})
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.2")
}

func TestRoutesFilterAndOrder(t *testing.T) {
	tb := tableWith(Config{},
		route(SourceBGP, "2001:db8::/32", "2001:db8::1"),
		route(SourceBGP, "10.1.0.0/16", "198.51.100.2"),
		route(SourceStatic, "10.1.0.0/16", "198.51.100.1"),
		route(SourceBGP, "10.0.0.0/8", "198.51.100.3"),
		route(SourceBGP, "10.1.2.0/24", ""),
		route(SourceBGP, "10.2.0.0/16", "198.51.100.4"),
		route(SourceBGP, "10.1.0.0/16", "198.51.100.5", context("red")))
	list := func(f Filter) string {
		var s []string
		for r := range tb.Snapshot().Routes(f) {
			s = append(s, r.Prefix.String()+"/"+r.Source.String())
		}
		return strings.Join(s, " ")
	}
	tests := []struct {
		name   string
		filter Filter
		want   string
	}{
		{"with PNC", Filter{}, "10.0.0.0/8/bgp 10.1.0.0/16/static 10.1.0.0/16/bgp 10.2.0.0/16/bgp 2001:db8::/32/bgp"},
		{"all", Filter{All: true}, "10.0.0.0/8/bgp 10.1.0.0/16/static 10.1.0.0/16/bgp 10.1.2.0/24/bgp 10.2.0.0/16/bgp 2001:db8::/32/bgp"},
		{"covering and covered", Filter{Prefix: pfx("10.1.0.0/16"), All: true}, "10.0.0.0/8/bgp 10.1.0.0/16/static 10.1.0.0/16/bgp 10.1.2.0/24/bgp"},
		{"host bits don't matter", Filter{Prefix: pfx("10.1.9.9/16")}, "10.0.0.0/8/bgp 10.1.0.0/16/static 10.1.0.0/16/bgp"},
		{"context", Filter{Context: "red"}, "10.1.0.0/16/bgp"},
		{"unknown context", Filter{Context: "blue"}, ""},
	}
	for _, tt := range tests {
		if got := list(tt.filter); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
	for range tb.Snapshot().Routes(Filter{Prefix: pfx("10.1.0.0/16")}) {
		break // an iteration may be left early
	}
}

func TestRouteReach(t *testing.T) {
	tb := tableWith(Config{}, route(SourceBGP, "10.1.0.0/16", "198.51.100.1"), route(SourceBGP, "10.2.0.0/16", ""))
	s := tb.Snapshot()
	of := func(sender string) *Route { return s.Candidates("", addr(sender))[0] }
	r := of("10.1.0.1")
	if reach, known := s.RouteReach(r); !known || !reach.Reachable {
		t.Errorf("RouteReach = %+v, %v", reach, known)
	}
	if _, known := s.RouteReach(of("10.2.0.1")); known {
		t.Error("a route without PNC has a known proxy")
	}
	// The number of its proxy may mean another one later.
	tb.Apply(t0, withdraw(*r)...)
	tb.Apply(t0, add(route(SourceBGP, "10.3.0.0/16", "198.51.100.8"))...)
	reachAll(tb)
	if reach, known := tb.Snapshot().RouteReach(r); known {
		t.Errorf("a proxy that is gone is known: %+v", reach)
	}
}

func TestRoutesThatAreNotFirstKeepNoOldGroup(t *testing.T) {
	// Otherwise a route that is outranked would keep alive what was once beside it.
	tb := New(Config{})
	for i := range uint32(20) {
		r := route(SourceOSPF, "10.1.0.0/16", "198.51.100.1", path(i), metric(100-i))
		tb.Apply(t0, add(r)...)
		if i%3 == 2 {
			tb.Apply(t0, withdraw(r)...)
		}
	}
	tb.Reconfigure(t0, Config{Preference: []Source{SourceOSPF}})
	entries := func() []*Entry {
		s, _ := tb.Snapshot().base.lookup(addr("10.1.0.1"))
		return s.list(nil)
	}
	routes := entries()
	for i, r := range routes {
		if (r.group != nil) != (i == 0) {
			t.Errorf("route %d of %d: group %v", i, len(routes), r.group)
		}
	}
	for _, r := range routes[1:] {
		tb.Apply(t0, withdraw(r.Route())...)
	}
	if last := entries(); len(last) != 1 || last[0].group != nil {
		t.Errorf("%d routes left, group %v", len(last), last[0].group)
	}
}
