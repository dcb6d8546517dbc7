package pnc

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// spread counts the flows by proxy.
func spread(tb *Table, flows int) (byProxy map[netip.Addr]int, byFlow []netip.Addr) {
	byProxy = map[netip.Addr]int{}
	for i := range flows {
		r := tb.Resolve("", addr("10.1.0.1"), uint64(i))
		byProxy[r.Proxy]++
		byFlow = append(byFlow, r.Proxy)
	}
	return byProxy, byFlow
}

func equalProxies(n int) []Route {
	var routes []Route
	for i := range n {
		routes = append(routes, route(SourceOSPF, "10.1.0.0/16", fmt.Sprintf("198.51.100.%d", i+1), peer(fmt.Sprint(i)), metric(10)))
	}
	return routes
}

func TestShareLowestGivesEveryFlowToTheLowest(t *testing.T) {
	got, _ := spread(tableWith(Config{}, equalProxies(4)...), 1000)
	if len(got) != 1 || got[addr("198.51.100.1")] != 1000 {
		t.Errorf("%v", got)
	}
}

func TestShareHashSpreadsEvenly(t *testing.T) {
	const flows, n = 20000, 5
	got, _ := spread(tableWith(Config{Share: ShareHash}, equalProxies(n)...), flows)
	for i := range n {
		p := addr(fmt.Sprintf("198.51.100.%d", i+1))
		if c := got[p]; c < flows/n*9/10 || c > flows/n*11/10 {
			t.Errorf("%s has %d of %d flows, an even share is %d", p, c, flows, flows/n)
		}
	}
}

func TestShareHashStaysWhenAMemberLeavesOrJoins(t *testing.T) {
	routes := equalProxies(5)
	tb := tableWith(Config{Share: ShareHash}, routes...)
	_, before := spread(tb, 5000)
	gone := routes[2].Proxy
	check := func(step string) {
		t.Helper()
		_, after := spread(tb, 5000)
		for i := range before {
			switch {
			case after[i] == gone:
				t.Fatalf("%s: flow %d still goes to %s", step, i, gone)
			case before[i] != gone && after[i] != before[i]:
				t.Fatalf("%s: flow %d moved from %s to %s", step, i, before[i], after[i])
			}
		}
	}
	tb.SetReachability(t0, map[netip.Addr]Reach{gone: {}})
	check("unreachable")
	tb.SetReachability(t0, map[netip.Addr]Reach{gone: {Reachable: true, Self: true}})
	check("self")
	tb.Apply(t0, withdraw(routes[2])...)
	check("withdrawn")
	tb.Apply(t0, add(routes[2])...)
	reachAll(tb)
	if _, after := spread(tb, 5000); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("back again, the flows are not where they were")
	}
}

func TestShareHashOnlyAmongEqualProxies(t *testing.T) {
	const p1, p2, p3 = "198.51.100.1", "198.51.100.2", "198.51.100.3"
	tests := []struct {
		name   string
		routes []Route
		want   []string
	}{
		{"another source is not equal", []Route{route(SourceBGP, "10.1.0.0/16", p2), route(SourceOSPF, "10.1.0.0/16", p1)}, []string{p2}},
		{"a path that is not best is not equal", []Route{route(SourceBGP, "10.1.0.0/16", p2), route(SourceBGP, "10.1.0.0/16", p1, path(1), notBest)}, []string{p2}},
		{"two that are not best are equal", []Route{route(SourceBGP, "10.1.0.0/16", p2, notBest), route(SourceBGP, "10.1.0.0/16", p1, path(1), notBest)}, []string{p1, p2}},
		{"BGP multipath: several best", []Route{route(SourceBGP, "10.1.0.0/16", p2), route(SourceBGP, "10.1.0.0/16", p1, path(1)), route(SourceBGP, "10.1.0.0/16", p3, path(2), notBest)}, []string{p1, p2}},
		{"another metric is not equal", []Route{route(SourceISIS, "10.1.0.0/16", p2, metric(1)), route(SourceISIS, "10.1.0.0/16", p1, peer("b"), metric(2))}, []string{p2}},
		{"static routes with one metric are equal", []Route{route(SourceStatic, "10.1.0.0/16", p2), route(SourceStatic, "10.1.0.0/16", p1, path(1))}, []string{p1, p2}},
		{"the same proxy by two peers has one share", []Route{route(SourceBGP, "10.1.0.0/16", p1), route(SourceBGP, "10.1.0.0/16", p1, peer("b")), route(SourceBGP, "10.1.0.0/16", p2, peer("c"))}, []string{p1, p2}},
		{"a route without PNC has none", []Route{route(SourceBGP, "10.1.0.0/16", p1), route(SourceBGP, "10.1.0.0/16", "", path(1))}, []string{p1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const flows = 4000
			got, _ := spread(tableWith(Config{Share: ShareHash}, tt.routes...), flows)
			if len(got) != len(tt.want) {
				t.Fatalf("flows by proxy: %v", got)
			}
			for _, p := range tt.want {
				if c := got[addr(p)]; c < flows/len(tt.want)*8/10 {
					t.Errorf("flows by proxy: %v", got)
				}
			}
		})
	}
}

func TestShareHashIsTheSameOnEveryNode(t *testing.T) {
	// The choice depends on addresses and the flow alone: these values must not change between
	// versions, or a mixed network would disagree.
	tb := tableWith(Config{Share: ShareHash}, equalProxies(4)...)
	got := ""
	for i := range uint64(12) {
		b := tb.Resolve("", addr("10.1.0.1"), i).Proxy.As4()
		got += fmt.Sprint(b[3])
	}
	if want := "224344211412"; got != want {
		t.Errorf("flows 0 to 11 go to %s, want %s", got, want)
	}
}

func TestSharedNamesThoseThatFlowsGoTo(t *testing.T) {
	routes := equalProxies(3)
	routes = append(routes,
		route(SourceOSPF, "10.1.0.0/16", "198.51.100.2", peer("twice"), metric(10)),
		route(SourceOSPF, "10.1.0.0/16", "198.51.100.9", peer("worse"), metric(20)))
	sender := addr("10.1.0.1")
	tb := tableWith(Config{Share: ShareHash}, routes...)
	tb.SetReachability(t0, map[netip.Addr]Reach{addr("198.51.100.3"): {}})
	byProxy, _ := spread(tb, 1000)
	got := tb.Snapshot().Shared("", sender)
	if want := []netip.Addr{addr("198.51.100.1"), addr("198.51.100.2")}; !slices.Equal(got, want) || len(byProxy) != len(want) {
		t.Errorf("got %v, flows go to %v, want %v", got, byProxy, want)
	}
	tb.SetReachability(t0, map[netip.Addr]Reach{addr("198.51.100.2"): {}})
	if got := tb.Snapshot().Shared("", sender); got != nil {
		t.Errorf("one is left: %v", got)
	}
	if got := tableWith(Config{}, routes...).Snapshot().Shared("", sender); got != nil {
		t.Errorf("the lowest gets every flow: %v", got)
	}
	for _, s := range []string{"203.0.113.1", "::ffff:10.1.0.1"} {
		if got := tb.Snapshot().Shared("nosuch", addr(s)); got != nil {
			t.Errorf("no such context: %v", got)
		}
	}
}
