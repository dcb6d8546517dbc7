package pnc

import (
	"net/netip"
	"strings"
	"testing"
)

func TestResolveRules(t *testing.T) {
	const p1, p2, p3, p6 = "198.51.100.1", "198.51.100.2", "198.51.100.3", "2001:db8::1"
	bgp, isis, ospf, static := SourceBGP, SourceISIS, SourceOSPF, SourceStatic
	down := func(proxies ...string) map[string]Reach {
		m := map[string]Reach{}
		for _, p := range proxies {
			m[p] = Reach{}
		}
		return m
	}
	self := Reach{Reachable: true, Self: true}

	tests := []struct {
		name   string
		cfg    Config
		routes []Route
		reach  map[string]Reach // others are reachable
		sender string
		reason Reason
		proxy  string
		prefix string // of the route in the answer; "" for none
	}{
		{"no route matches", Config{}, []Route{route(bgp, "10.1.0.0/16", p1)}, nil, "10.2.0.1", ReasonNoRoute, "", ""},
		{"an invalid sender matches nothing", Config{AllowDefault: true}, []Route{route(bgp, "0.0.0.0/0", p1)}, nil, "", ReasonNoRoute, "", ""},
		{"one route", Config{}, []Route{route(bgp, "10.1.0.0/16", p1)}, nil, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},
		{"IPv6", Config{}, []Route{route(bgp, "2001:db8:1::/48", p6)}, nil, "2001:db8:1::9", ReasonFound, p6, "2001:db8:1::/48"},
		{"the proxy's family may differ", Config{}, []Route{route(bgp, "2001:db8:1::/48", p1)}, nil, "2001:db8:1::9", ReasonFound, p1, "2001:db8:1::/48"},
		{"an IPv4-mapped sender is an IPv4 sender", Config{}, []Route{route(bgp, "10.1.0.0/16", p1)}, nil, "::ffff:10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},

		{"the longest prefix wins over sources", Config{},
			[]Route{route(static, "10.0.0.0/8", p1), route(ospf, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"a more specific route without PNC answers no-proxy", Config{},
			[]Route{route(bgp, "10.0.0.0/8", p1), route(bgp, "10.1.0.0/16", "")}, nil, "10.1.2.3", ReasonNoProxy, "", "10.1.0.0/16"},
		{"beside it the less specific one still serves", Config{},
			[]Route{route(bgp, "10.0.0.0/8", p1), route(bgp, "10.1.0.0/16", "")}, nil, "10.2.2.3", ReasonFound, p1, "10.0.0.0/8"},
		{"a more specific route whose PNC is disregarded answers no-proxy", Config{},
			[]Route{route(bgp, "10.0.0.0/8", p1), route(bgp, "10.1.0.0/16", p2, reason(DisregardNextHopMismatch))}, nil, "10.1.2.3", ReasonNoProxy, "", "10.1.0.0/16"},
		{"a more specific route of another source without PNC answers no-proxy", Config{},
			[]Route{route(static, "10.0.0.0/8", p1), route(ospf, "10.1.2.0/24", "")}, nil, "10.1.2.3", ReasonNoProxy, "", "10.1.2.0/24"},

		{"any PNC beats none at the winning length", Config{},
			[]Route{route(static, "10.1.0.0/16", ""), route(ospf, "10.1.0.0/16", p1)}, nil, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},
		{"a PNC on a path that is not best beats a best path without", Config{},
			[]Route{route(bgp, "10.1.0.0/16", ""), route(bgp, "10.1.0.0/16", p1, path(2), notBest)}, nil, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},
		{"static before BGP", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1), route(static, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"BGP before IS-IS", Config{},
			[]Route{route(isis, "10.1.0.0/16", p1), route(bgp, "10.1.0.0/16", p2, notBest)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"IS-IS before OSPF, whatever the metric", Config{},
			[]Route{route(ospf, "10.1.0.0/16", p1, metric(1)), route(isis, "10.1.0.0/16", p2, metric(100))}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"the preference is configurable", Config{Preference: []Source{ospf, isis}},
			[]Route{route(static, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"sources left out of the preference follow", Config{Preference: []Source{ospf}},
			[]Route{route(bgp, "10.1.0.0/16", p1), route(isis, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},
		{"BGP: the best path before other valid ones", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1, path(1), notBest), route(bgp, "10.1.0.0/16", p2, path(2))}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"IGP: the lower cost", Config{},
			[]Route{route(ospf, "10.1.0.0/16", p1, peer("a"), metric(20)), route(ospf, "10.1.0.0/16", p2, peer("b"), metric(10))}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"BGP: a metric doesn't count", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1, path(1), metric(20)), route(bgp, "10.1.0.0/16", p2, path(2), metric(10))}, nil, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},
		{"then the lowest proxy address", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p3, path(1)), route(bgp, "10.1.0.0/16", p2, path(2))}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"addresses compare as numbers", Config{},
			[]Route{route(bgp, "10.1.0.0/16", "198.51.100.10", path(1)), route(bgp, "10.1.0.0/16", "198.51.100.9", path(2))}, nil, "10.1.2.3", ReasonFound, "198.51.100.9", "10.1.0.0/16"},
		{"an IPv4 proxy is lower than an IPv6 one", Config{},
			[]Route{route(bgp, "10.1.0.0/16", "::1:1", path(1)), route(bgp, "10.1.0.0/16", p2, path(2))}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"a stale route is still used", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1, stale)}, nil, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},

		{"BGP: a path that is kept for long comes last", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1, path(1), stale, long, notBest), route(bgp, "10.1.0.0/16", p2, path(2), notBest), route(bgp, "10.1.0.0/16", "", path(3))}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"and is used when it is the only one", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1, stale, long)}, nil, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},

		{"a static route doesn't hide longer learned ones", Config{},
			[]Route{route(static, "10.0.0.0/8", p1), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"with override it does", Config{},
			[]Route{route(static, "10.0.0.0/8", p1, override), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p1, "10.0.0.0/8"},
		{"override without PNC hides too: no-proxy", Config{},
			[]Route{route(static, "10.0.0.0/8", "", override), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonNoProxy, "", "10.0.0.0/8"},
		{"override doesn't hide longer static routes", Config{},
			[]Route{route(static, "10.0.0.0/8", p1, override), route(static, "10.1.0.0/16", p3), route(bgp, "10.1.2.0/24", p2)}, nil, "10.1.2.3", ReasonFound, p3, "10.1.0.0/16"},
		{"a learned route beside a longer static one is hidden by a shorter override", Config{},
			[]Route{route(static, "10.0.0.0/8", p1, override), route(static, "10.1.0.0/16", ""), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonNoProxy, "", "10.1.0.0/16"},
		{"a learned route of the override's own length is not hidden", Config{},
			[]Route{route(static, "10.0.0.0/8", "", override), route(bgp, "10.0.0.0/8", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.0.0.0/8"},
		{"override outside of its prefix changes nothing", Config{},
			[]Route{route(static, "10.2.0.0/16", p1, override), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"override on a learned route is ignored", Config{},
			[]Route{route(bgp, "10.0.0.0/8", p1, override), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},

		{"a default route is refused", Config{}, []Route{route(bgp, "0.0.0.0/0", p1)}, nil, "10.1.2.3", ReasonDefaultRouteRefused, "", "0.0.0.0/0"},
		{"also without PNC", Config{}, []Route{route(bgp, "0.0.0.0/0", "")}, nil, "10.1.2.3", ReasonDefaultRouteRefused, "", "0.0.0.0/0"},
		{"also for IPv6", Config{}, []Route{route(bgp, "::/0", p6)}, nil, "2001:db8::9", ReasonDefaultRouteRefused, "", "::/0"},
		{"also a static one", Config{}, []Route{route(static, "0.0.0.0/0", p1)}, nil, "10.1.2.3", ReasonDefaultRouteRefused, "", "0.0.0.0/0"},
		{"also when its proxy is unreachable", Config{}, []Route{route(bgp, "0.0.0.0/0", p1)}, down(p1), "10.1.2.3", ReasonDefaultRouteRefused, "", "0.0.0.0/0"},
		{"unless the configuration allows it", Config{AllowDefault: true}, []Route{route(bgp, "0.0.0.0/0", p1)}, nil, "10.1.2.3", ReasonFound, p1, "0.0.0.0/0"},
		{"allowed for IPv6 too", Config{AllowDefault: true}, []Route{route(bgp, "::/0", p6)}, nil, "2001:db8::9", ReasonFound, p6, "::/0"},
		{"an allowed default route without PNC is no-proxy", Config{AllowDefault: true}, []Route{route(bgp, "0.0.0.0/0", "")}, nil, "10.1.2.3", ReasonNoProxy, "", "0.0.0.0/0"},
		{"a /1 is no default route", Config{}, []Route{route(bgp, "0.0.0.0/1", p1)}, nil, "10.1.2.3", ReasonFound, p1, "0.0.0.0/1"},
		{"a default route of the other family doesn't match", Config{AllowDefault: true}, []Route{route(bgp, "::/0", p6)}, nil, "10.1.2.3", ReasonNoRoute, "", ""},
		{"a refused default route with override hides nothing", Config{},
			[]Route{route(static, "0.0.0.0/0", p1, override), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"an allowed one hides", Config{AllowDefault: true},
			[]Route{route(static, "0.0.0.0/0", p1, override), route(bgp, "10.1.0.0/16", p2)}, nil, "10.1.2.3", ReasonFound, p1, "0.0.0.0/0"},

		{"the proxy has no route", Config{}, []Route{route(bgp, "10.1.0.0/16", p1)}, down(p1), "10.1.2.3", ReasonProxyUnreachable, "", "10.1.0.0/16"},
		{"the proxy is this node", Config{}, []Route{route(bgp, "10.1.0.0/16", p1)}, map[string]Reach{p1: self}, "10.1.2.3", ReasonSelfProxy, "", "10.1.0.0/16"},
		{"self wins over unreachable for one proxy", Config{}, []Route{route(bgp, "10.1.0.0/16", p1)}, map[string]Reach{p1: {Self: true}}, "10.1.2.3", ReasonSelfProxy, "", "10.1.0.0/16"},
		{"a proxy reached by the kernel's default route counts", Config{}, []Route{route(bgp, "10.1.0.0/16", p1)}, map[string]Reach{p1: {Reachable: true, ViaDefault: true}}, "10.1.2.3", ReasonFound, p1, "10.1.0.0/16"},
		{"an unreachable proxy is no candidate: the next is used", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1, path(1)), route(bgp, "10.1.0.0/16", p2, path(2), notBest)}, down(p1), "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"this node is no candidate: the next is used, of another source too", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p2)}, map[string]Reach{p1: self}, "10.1.2.3", ReasonFound, p2, "10.1.0.0/16"},
		{"no candidate left: the reason of the highest ranked, unreachable", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p2)}, map[string]Reach{p1: {}, p2: self}, "10.1.2.3", ReasonProxyUnreachable, "", "10.1.0.0/16"},
		{"no candidate left: the reason of the highest ranked, self", Config{},
			[]Route{route(bgp, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p2)}, map[string]Reach{p1: self, p2: {}}, "10.1.2.3", ReasonSelfProxy, "", "10.1.0.0/16"},
		{"no candidate left: a shorter prefix is not consulted", Config{},
			[]Route{route(bgp, "10.0.0.0/8", p2), route(bgp, "10.1.0.0/16", p1)}, down(p1), "10.1.2.3", ReasonProxyUnreachable, "", "10.1.0.0/16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tb := tableWith(tt.cfg, tt.routes...)
			reach := map[netip.Addr]Reach{}
			for a, r := range tt.reach {
				reach[addr(a)] = r
			}
			tb.SetReachability(t0, reach)
			got := tb.Resolve("", addr(tt.sender), 0)
			prefix := ""
			if got.Route != nil {
				prefix = got.Route.Prefix().String()
			}
			if got.Reason != tt.reason || got.Proxy != addr(tt.proxy) || prefix != tt.prefix {
				t.Errorf("got %s %s by %q, want %s %s by %q", got.Reason, got.Proxy, prefix, tt.reason, tt.proxy, tt.prefix)
			}
			if e := got.Explain(); !strings.HasSuffix(e, ".") || e == "Unknown." {
				t.Errorf("Explain() = %q", e)
			}
		})
	}
}

func TestResolveUntoldProxyIsUnreachable(t *testing.T) {
	tb := New(Config{})
	tb.Apply(t0, add(route(SourceBGP, "10.1.0.0/16", "198.51.100.1"))...)
	wantResolve(t, tb, "10.1.0.1", ReasonProxyUnreachable, "")
	if r, known := tb.Snapshot().Reach(addr("198.51.100.1")); known || r.Reachable {
		t.Errorf("Reach = %+v, %v, want unknown", r, known)
	}
}

func TestResolveContexts(t *testing.T) {
	tb := tableWith(Config{Contexts: []string{"red", "empty"}},
		route(SourceBGP, "10.1.0.0/16", "198.51.100.1"),
		route(SourceBGP, "10.1.0.0/16", "198.51.100.2", context("red")),
		route(SourceBGP, "10.1.0.0/16", "198.51.100.3", context("blue")))
	check := func(name string, reason Reason, proxy string) {
		t.Helper()
		if got := tb.Resolve(name, addr("10.1.0.1"), 0); got.Reason != reason || got.Proxy != addr(proxy) {
			t.Errorf("context %q: got %s %s, want %s %s", name, got.Reason, got.Proxy, reason, proxy)
		}
	}
	check("", ReasonFound, "198.51.100.1")
	check("red", ReasonFound, "198.51.100.2")
	check("empty", ReasonNoRoute, "")
	check("blue", ReasonContextUnknown, "")
	check("never heard of", ReasonContextUnknown, "")
	if c := tb.Snapshot().Candidates("blue", addr("10.1.0.1")); c != nil {
		t.Errorf("candidates in an unknown context: %v", c)
	}

	// A context that is configured later finds the routes that came before.
	tb.Reconfigure(t0, Config{Contexts: []string{"blue"}})
	check("blue", ReasonFound, "198.51.100.3")
	check("red", ReasonContextUnknown, "")
	if got := strings.Join(tb.Snapshot().Contexts(), ","); got != ",blue" {
		t.Errorf("Contexts = %q", got)
	}
}

func TestResolveReachabilityChangesLeaveAtOnce(t *testing.T) {
	tb := tableWith(Config{}, route(SourceBGP, "10.1.0.0/16", "198.51.100.1"))
	before := tb.Snapshot()
	version := before.Version()
	tb.SetReachability(t0, map[netip.Addr]Reach{addr("198.51.100.1"): {}})
	wantResolve(t, tb, "10.1.0.1", ReasonProxyUnreachable, "")
	if got := tb.Snapshot().Version(); got <= version {
		t.Errorf("version %d after %d", got, version)
	}
	if got := before.Resolve("", addr("10.1.0.1"), 0); got.Reason != ReasonFound {
		t.Errorf("an old snapshot changed: %s", got.Reason)
	}
	version = tb.Snapshot().Version()
	tb.SetReachability(t0, map[netip.Addr]Reach{addr("198.51.100.1"): {}, addr("203.0.113.9"): {Reachable: true}})
	if got := tb.Snapshot().Version(); got != version {
		t.Errorf("nothing changed, version went from %d to %d", version, got)
	}
	tb.SetReachability(t0, map[netip.Addr]Reach{addr("::ffff:198.51.100.1"): {Reachable: true}})
	wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.1")
}

func TestResolveEvidence(t *testing.T) {
	tb := New(Config{})
	r := route(SourceBGP, "10.1.2.3/16", "198.51.100.1", stale)
	r.Originator, r.NextHop = "192.0.2.7", addr("192.0.2.1")
	tb.Apply(t0, add(r)...)
	reachAll(tb)
	got := wantResolve(t, tb, "10.1.0.1", ReasonFound, "198.51.100.1")
	used := got.Route.Route()
	if used.Source != SourceBGP || used.Prefix != pfx("10.1.0.0/16") || used.Originator != "192.0.2.7" ||
		used.NextHop != addr("192.0.2.1") || !used.Stale || used.Version != 2 || used.Age(t0.Add(5e9)) != 5e9 {
		t.Errorf("route used: %+v", used)
	}
	if got.Version != tb.Snapshot().Version() {
		t.Errorf("version %d, the table's is %d", got.Version, tb.Snapshot().Version())
	}
}

func TestCandidatesInTheOrderTheyAreTried(t *testing.T) {
	tb := tableWith(Config{},
		route(SourceBGP, "10.0.0.0/8", "198.51.100.9"),
		route(SourceBGP, "10.1.0.0/16", "", path(1)),
		route(SourceOSPF, "10.1.0.0/16", "198.51.100.4"),
		route(SourceBGP, "10.1.0.0/16", "198.51.100.3", path(2), notBest),
		route(SourceBGP, "10.1.0.0/16", "198.51.100.5", path(3)))
	var got []string
	for _, r := range tb.Snapshot().Candidates("", addr("10.1.0.1")) {
		got = append(got, r.Source.String()+" "+r.Proxy.String())
	}
	want := "bgp 198.51.100.5, bgp 198.51.100.3, ospf 198.51.100.4, bgp invalid IP"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}
