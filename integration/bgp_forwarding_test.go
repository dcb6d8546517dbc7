package integration

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
)

// The forwarding lab: two exits announce the same prefixes, the second one with a better MED; the proxy follows
// the first. A third router, behind the reflector, says where packets go.
const (
	nEdge   = nCongestion
	nSecond = 6
)

// frrNode is a router of the forwarding lab.
func frrNode(t *testing.T, f labFamily, name string, n, med int, neighbors []int, prefixes []string, addPath bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "frr defaults traditional\nhostname %s\nroute-map SET permit 10\n set metric %d\nrouter bgp 65000\n bgp router-id 10.200.0.%d\n no bgp default ipv4-unicast\n no bgp network import-check\n", name, med, n)
	for _, c := range neighbors {
		a := labAddr(f.v6, c).String()
		fmt.Fprintf(&b, " neighbor %[1]s remote-as 65000\n neighbor %[1]s timers connect 1\n%[2]s", a, frrNHC(t, a))
	}
	fmt.Fprintf(&b, " address-family %s unicast\n", f.af)
	for _, p := range prefixes {
		fmt.Fprintf(&b, "  network %s route-map SET\n", p)
	}
	for _, c := range neighbors {
		a := labAddr(f.v6, c)
		fmt.Fprintf(&b, "  neighbor %s activate\n", a)
		if n == nReflector {
			fmt.Fprintf(&b, "  neighbor %s route-reflector-client\n", a)
		}
		if n == nReflector && addPath && c == nEdge {
			fmt.Fprintf(&b, "  neighbor %s addpath-tx-all-paths\n", a)
		}
	}
	b.WriteString(" exit-address-family\n")
	return b.String()
}

func birdNode(f labFamily, clients []int, addPath bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "router id 10.200.0.2;\nprotocol device {}\nprotocol direct { %s; }\n", f.channel)
	for _, c := range clients {
		extra := ""
		if addPath && c == nEdge {
			extra = "add paths tx;"
		}
		fmt.Fprintf(&b, `protocol bgp to_%d {
  local %s as 65000; neighbor %s as 65000; rr client; rr cluster id 10.200.0.2;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  %s { import all; export where source = RTS_BGP; %s };
}
`, c, labAddr(f.v6, nReflector), labAddr(f.v6, c), f.channel, extra)
	}
	return b.String()
}

// bestNextHop is where a router's best path of a prefix goes; empty without one.
func (l *bgpLab) bestNextHop(node, af, prefix string) string {
	l.t.Helper()
	var seen struct {
		Paths []struct {
			Bestpath struct{ Overall bool }
			Nexthops []struct{ IP string }
		}
	}
	out := l.vtysh(node, "show bgp "+af+" unicast "+prefix+" json")
	if err := json.Unmarshal([]byte(out), &seen); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	for _, p := range seen.Paths {
		if p.Bestpath.Overall {
			return p.Nexthops[0].IP
		}
	}
	return ""
}

func TestBGPNoModeButPreferMovesTrafficAtAThirdRouter(t *testing.T) {
	needFRR(t, "bgpd")
	needPrograms(t, "bird", "birdc")
	for _, reflector := range []string{"frr", "bird"} {
		for _, addPath := range []bool{false, true} {
			for _, v6 := range []bool{false, true} {
				name := fmt.Sprintf("%s%s%s", reflector, map[bool]string{true: "-addpath"}[addPath], map[bool]string{false: "-4", true: "-6"}[v6])
				t.Run(name, func(t *testing.T) { testForwarding(t, name, reflector, addPath, familyOf(v6)) })
			}
		}
	}
}

func testForwarding(t *testing.T, name, reflector string, addPath bool, f labFamily) {
	w := waysOf(f.v6)
	modes := map[string]bgp.Mode{w.inline: bgp.ModeInline, w.path: bgp.ModePath, w.both: bgp.ModePrefer}
	announced := []string{w.inline, w.path, w.both}
	clients := []int{nRouter, nSecond, nProxy, nEdge}
	file, text := "/etc/frr/frr.conf", frrNode(t, f, "reflector", nReflector, 0, clients, nil, addPath)
	if reflector == "bird" {
		file, text = "/etc/bird/bird.conf", birdNode(f, clients, addPath)
	}
	frr := func(text string) map[string]string { return map[string]string{"/etc/frr/frr.conf": text} }
	l := upBGP(t, "bgp-fwd-"+name, f.v6, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: frr(frrNode(t, f, "router", nRouter, 50, []int{nReflector, nProxy}, announced, false))},
		{name: "second", n: nSecond, image: "frr", files: frr(frrNode(t, f, "second", nSecond, 10, []int{nReflector}, announced, false))},
		{name: "reflector", n: nReflector, image: reflector, files: map[string]string{file: text}},
		{name: "proxy", n: nProxy},
		{name: "edge", n: nEdge, image: "frr", files: frr(frrNode(t, f, "edge", nEdge, 0, []int{nReflector}, nil, false))},
	})
	router, second := l.at(nRouter).String(), l.at(nSecond).String()
	cfg := l.config(nProxy, bgp.NeighborConfig{Address: l.at(nRouter), Passive: true}, bgp.NeighborConfig{Address: l.at(nReflector), Passive: true})
	for p, m := range modes {
		cfg.Originate = append(cfg.Originate, bgp.OriginateConfig{Prefix: netip.MustParsePrefix(p), Mode: m, Proxy: netip.MustParseAddr(proxyAddr), From: l.at(nRouter)})
	}
	cfg.Originate = append(cfg.Originate, bgp.OriginateConfig{Prefix: netip.MustParsePrefix(w.originate), Proxy: netip.MustParseAddr(proxyAddr), NextHop: l.at(nRouter)})
	proxy := l.speaker("proxy", cfg)
	expect := func(what string, want map[string]string) {
		t.Helper()
		l.eventually(what, func() string {
			for p, hop := range want {
				if got := l.bestNextHop("edge", f.af, p); got != hop {
					return fmt.Sprintf("%s goes to %q, want %q", p, got, hop)
				}
			}
			return ""
		})
	}
	before := map[string]string{w.inline: second, w.path: second, w.both: second, w.originate: ""}
	proxy.AwaitUp(router)
	proxy.AwaitUp(l.at(nReflector).String())
	expect("off: everything goes to the second exit", before)

	on := true
	for _, ad := range proxy.Must(speakertest.Request{Enable: &on}).Advertisements {
		if !ad.Active {
			t.Errorf("not announced: %+v", ad)
		}
	}
	// The prefix that nobody else announces comes with the copies, and what moves has moved by then.
	after := map[string]string{w.inline: second, w.path: second, w.both: router, w.originate: router}
	expect("on: prefer alone moves, to the exit that it follows", after)
	// All copies are at the reflector, so none of them is still on its way.
	l.eventually("the copies at the reflector", func() string {
		for p := range modes {
			show := []string{"vtysh", "-c", "show bgp " + f.af + " unicast " + p}
			if reflector == "bird" {
				show = []string{"birdc", "-s", "/run/bird.ctl", "show", "route", "all", p}
			}
			if out := l.run("reflector", show...); !strings.Contains(out, "from "+l.at(nProxy).String()) {
				return out
			}
		}
		return ""
	})
	expect("with all of them", after)

	on = false
	proxy.Must(speakertest.Request{Enable: &on})
	expect("off again", before)
}
