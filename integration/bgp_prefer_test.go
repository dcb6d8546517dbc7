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

// Nothing in this lab has add-path: mode prefer is there for such networks.
func preferFRR(t *testing.T, f labFamily, hostname string, n int, clients []int, extra string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "frr defaults traditional\nhostname %s\nrouter bgp 65000\n bgp router-id 10.200.0.%d\n no bgp default ipv4-unicast\n no bgp network import-check\n", hostname, n)
	for _, c := range clients {
		a := labAddr(f.v6, c).String()
		fmt.Fprintf(&b, " neighbor %[1]s remote-as 65000\n neighbor %[1]s timers connect 1\n%[2]s", a, frrNHC(t, a))
	}
	fmt.Fprintf(&b, " address-family %s unicast\n%s", f.af, extra)
	for _, c := range clients {
		fmt.Fprintf(&b, "  neighbor %s activate\n", labAddr(f.v6, c))
		if n == nReflector {
			fmt.Fprintf(&b, "  neighbor %s route-reflector-client\n", labAddr(f.v6, c))
		}
	}
	b.WriteString(" exit-address-family\n")
	return b.String()
}

func TestBGPPreferArrivesWithoutAddPathAndKeepsTheNextHop(t *testing.T) {
	needFRR(t, "bgpd")
	for _, v6 := range []bool{false, true} {
		t.Run(familyOf(v6).af, func(t *testing.T) { testPrefer(t, familyOf(v6)) })
	}
}

func testPrefer(t *testing.T, f labFamily) {
	preferPrefix := waysOf(f.v6).originate
	l := upBGP(t, "bgp-prefer-"+f.af, f.v6, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: map[string]string{"/etc/frr/frr.conf": preferFRR(t, f, "router", nRouter, []int{nReflector, nProxy}, "  network "+preferPrefix+"\n")}},
		{name: "reflector", n: nReflector, image: "frr", files: map[string]string{"/etc/frr/frr.conf": preferFRR(t, f, "reflector", nReflector, []int{nRouter, nProxy, nCongestion}, "")}},
		{name: "proxy", n: nProxy},
		{name: "congestion", n: nCongestion},
	})
	router, reflector := l.at(nRouter), l.at(nReflector)
	cfg := l.config(nProxy, bgp.NeighborConfig{Address: router, Passive: true}, bgp.NeighborConfig{Address: reflector, Passive: true})
	cfg.Originate = []bgp.OriginateConfig{{
		Prefix: netip.MustParsePrefix(preferPrefix), Mode: bgp.ModePrefer, Proxy: netip.MustParseAddr(proxyAddr), From: router,
	}}
	proxy := l.speaker("proxy", cfg)
	congestion := l.speaker("congestion", l.config(nCongestion, bgp.NeighborConfig{Address: reflector, Passive: true}))
	enable := func(on bool) { proxy.Must(speakertest.Request{Enable: &on}) }
	plain := func(a speakertest.Answer) bool {
		rs := a.Of(preferPrefix)
		return len(rs) == 1 && rs[0].NextHop == router && !rs[0].Proxy.IsValid()
	}
	congestion.Await("the router's own path", plain)

	enable(true)
	got := congestion.Await("the PNC", speakertest.Believes(preferPrefix, proxyAddr))
	if rs := got.Of(preferPrefix); len(rs) != 1 || rs[0].NextHop != router || rs[0].Originator != "10.200.0.1" || !rs[0].Best {
		t.Errorf("want one path, with the router's next hop and named as its originator: %+v", rs)
	}
	// Both paths are there, the copy is the best one, and packets still go to the router.
	type path struct {
		LocPrf   int
		Bestpath struct{ Overall bool }
		Nexthops []struct{ IP string }
		Peer     struct{ PeerID string }
	}
	l.eventually("the reflector prefers the copy and keeps the router's path", func() string {
		var seen struct{ Paths []path }
		out := l.vtysh("reflector", "show bgp "+f.af+" unicast "+preferPrefix+" json")
		if err := json.Unmarshal([]byte(out), &seen); err != nil || len(seen.Paths) != 2 {
			return fmt.Sprintf("%v: %s", err, out)
		}
		for _, p := range seen.Paths {
			copied := p.Peer.PeerID == l.at(nProxy).String()
			if p.Nexthops[0].IP != router.String() || p.Bestpath.Overall != copied || copied && p.LocPrf != 101 {
				return out
			}
		}
		return ""
	})
	// The router must not take its own path back from the reflector, nor the proxy its copy's source.
	var own struct{ Paths []path }
	if out := l.vtysh("router", "show bgp "+f.af+" unicast "+preferPrefix+" json"); json.Unmarshal([]byte(out), &own) != nil || len(own.Paths) != 1 {
		t.Errorf("the router must know its own path only: %s", out)
	}
	if a := proxy.Ask(speakertest.Request{}).Advertisements; len(a) != 1 || !a[0].Active || a[0].NextHop != router {
		t.Errorf("at the proxy: %+v", a)
	}

	l.vtysh("router", "configure terminal", "router bgp 65000", "address-family "+f.af+" unicast", "no network "+preferPrefix)
	congestion.Await("the copy goes with the router's path", func(a speakertest.Answer) bool { return len(a.Of(preferPrefix)) == 0 })
	l.vtysh("router", "configure terminal", "router bgp 65000", "address-family "+f.af+" unicast", "network "+preferPrefix)
	congestion.Await("the PNC is back", speakertest.Believes(preferPrefix, proxyAddr))
	enable(false)
	congestion.Await("off: the router's own path again", plain)
}
