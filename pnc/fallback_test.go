package pnc

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// known is a proxy that several sources tell of, each with an address of its own, so that an answer says which was used.
func known() map[Source]Route {
	return map[Source]Route{
		SourceBGP:  route(SourceBGP, "10.1.0.0/16", "198.51.100.3"),
		SourceISIS: route(SourceISIS, "10.1.0.0/16", "198.51.100.2", metric(30)),
		SourceOSPF: route(SourceOSPF, "10.1.0.0/16", "198.51.100.1", metric(10)),
	}
}

// orders are all orders of three sources.
func orders() (all [][]Source) {
	s := []Source{SourceBGP, SourceISIS, SourceOSPF}
	for _, i := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		all = append(all, []Source{s[i[0]], s[i[1]], s[i[2]]})
	}
	return all
}

// answered is the proxy, and why each other route is not used.
func answered(s *Snapshot) string {
	r := s.Resolve("", addr("10.1.0.1"), 0)
	if r.Reason != ReasonFound {
		return r.Reason.String()
	}
	text := r.Route.Source().String()
	for _, c := range s.Candidates("", addr("10.1.0.1")) {
		if why := s.NotUsed(c, r); why != NotUsedNone {
			text += fmt.Sprintf(", %s: %s", c.Source, why)
		}
	}
	return text
}

// Whatever the preference, the best source that is left is used, from the same version of the table on in which the one
// before is gone, and again when it is back.
func TestFallBackInTheOrderOfPreference(t *testing.T) {
	for _, order := range orders() {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			routes := known()
			tb := tableWith(Config{Preference: order}, routes[SourceOSPF], routes[SourceISIS], routes[SourceBGP])
			want := func(left []Source) {
				t.Helper()
				text := "no-route"
				if len(left) > 0 {
					text = left[0].String()
					for _, s := range left[1:] {
						text += fmt.Sprintf(", %s: preference", s)
					}
				}
				if got := answered(tb.Snapshot()); got != text {
					t.Fatalf("%s, want %s", got, text)
				}
			}
			want(order)
			for i, s := range order {
				version := tb.Snapshot().Version()
				tb.Apply(t0, withdraw(routes[s])...)
				if got := tb.Snapshot().Version(); got != version+1 {
					t.Fatalf("the withdrawal took %d versions: there is one between that could answer otherwise", got-version)
				}
				want(order[i+1:])
			}
			for i, s := range slices.Backward(order) {
				tb.Apply(t0, add(routes[s])...)
				reachAll(tb)
				want(order[i:])
			}
		})
	}
}

// Who resolves meanwhile never sees the prefix without a proxy: not while the sources come and go, as long as one is
// left, nor while the preference changes.
func TestNoMomentWithoutAProxyDuringTheFallBack(t *testing.T) {
	routes := known()
	tb := tableWith(Config{}, routes[SourceOSPF], routes[SourceISIS], routes[SourceBGP])
	stop := make(chan struct{})
	var readers sync.WaitGroup
	bad := make(chan Resolution, 4)
	for range cap(bad) {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r := tb.Resolve("", addr("10.1.0.1"), 0); r.Reason != ReasonFound {
					bad <- r
					return
				}
			}
		})
	}
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for i := range rounds {
		order := orders()[i%len(orders())]
		tb.Reconfigure(t0, Config{Preference: order})
		for _, s := range order[:2] {
			tb.Apply(t0, withdraw(routes[s])...)
		}
		for _, s := range order[:2] {
			tb.Apply(t0, add(routes[s])...)
			// The kernel's answer about an address that is new comes later: until then the next source is used.
			reachAll(tb)
		}
	}
	close(stop)
	readers.Wait()
	close(bad)
	for r := range bad {
		t.Errorf("version %d: %s", r.Version, r.Explain())
	}
}

// One batch may take a source away and bring another proxy of it: both are one change.
func TestASourceThatChangesItsRouteLeavesNoGap(t *testing.T) {
	routes := known()
	tb := tableWith(Config{}, routes[SourceISIS])
	moved := route(SourceISIS, "10.1.0.0/16", "198.51.100.2", peer("another"))
	tb.Apply(t0, append(withdraw(routes[SourceISIS]), add(moved)...)...)
	if got := answered(tb.Snapshot()); got != "isis" {
		t.Errorf("after the route moved to another originator with the same proxy: %s", got)
	}
}

func TestWhyARouteIsNotUsed(t *testing.T) {
	const p1, p2, p3 = "198.51.100.1", "198.51.100.2", "198.51.100.3"
	bgp, isis, ospf := SourceBGP, SourceISIS, SourceOSPF
	for want, c := range map[string]struct {
		cfg    Config
		routes []Route
		down   string
		self   string
	}{
		"bgp, bgp: not-best, isis: preference": {routes: []Route{
			route(bgp, "10.1.0.0/16", p1), route(bgp, "10.1.0.0/16", p2, path(1), notBest), route(isis, "10.1.0.0/16", p2)}},
		"bgp, bgp: long-lived":                     {routes: []Route{route(bgp, "10.1.0.0/16", p2, notBest), route(bgp, "10.1.0.0/16", p1, path(1), long)}},
		"isis, isis: metric":                       {routes: []Route{route(isis, "10.1.0.0/16", p2, metric(10)), route(isis, "10.1.0.0/16", p1, peer("b"), metric(20))}},
		"bgp, bgp: tie":                            {routes: []Route{route(bgp, "10.1.0.0/16", p1), route(bgp, "10.1.0.0/16", p2, path(1))}},
		"ospf, bgp: proxy-unreachable":             {routes: []Route{route(bgp, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p2)}, down: p1},
		"isis, bgp: self-proxy, ospf: preference":  {routes: []Route{route(bgp, "10.1.0.0/16", p3), route(isis, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p2)}, self: p3},
		"ospf, bgp: no-proxy, isis: not-believed":  {routes: []Route{route(bgp, "10.1.0.0/16", ""), route(isis, "10.1.0.0/16", p1, reason(DisregardProxyNotAccepted)), route(ospf, "10.1.0.0/16", p2)}},
		"ospf, isis: proxy-unreachable, ospf: tie": {routes: []Route{route(isis, "10.1.0.0/16", p2), route(ospf, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p1, peer("b"))}, down: p2},
		"bgp, bgp: not-best, bgp: not-best":        {routes: []Route{route(bgp, "10.1.0.0/16", p3), route(bgp, "10.1.0.0/16", p1, path(1), notBest), route(bgp, "10.1.0.0/16", p2, path(2), notBest)}},
		"ospf, static: preference, isis: preference": {cfg: Config{Preference: []Source{ospf}}, routes: []Route{
			route(SourceStatic, "10.1.0.0/16", p1), route(isis, "10.1.0.0/16", p1), route(ospf, "10.1.0.0/16", p1, metric(900))}},
	} {
		tb := tableWith(c.cfg, c.routes...)
		if c.down != "" {
			tb.SetReachability(t0, reachOf(c.down, Reach{}))
		}
		if c.self != "" {
			tb.SetReachability(t0, reachOf(c.self, Reach{Reachable: true, Self: true}))
		}
		if got := answered(tb.Snapshot()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	// Where there is no answer, each route has its own reason.
	tb := tableWith(Config{}, route(bgp, "0.0.0.0/0", p1), route(isis, "0.0.0.0/0", p2))
	r := tb.Resolve("", addr("10.1.0.1"), 0)
	for _, c := range tb.Snapshot().Candidates("", addr("10.1.0.1")) {
		if why := tb.Snapshot().NotUsed(c, r); why != NotUsedDefaultRoute {
			t.Errorf("%s of a default route that may not be used: %s", c.Source, why)
		}
	}
	// Of those that share flows the others are not worse.
	tb = tableWith(Config{Share: ShareHash}, equalProxies(2)...)
	if got := answered(tb.Snapshot()); !strings.HasSuffix(got, "ospf, ospf: shared") {
		t.Errorf("of two that share flows: %s", got)
	}
}
