package integration

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// frrVPNRouter announces, in the blue VPN and without a VRF, one prefix of each way: to the proxy all, to the
// reflector all but the inline ones.
func frrVPNRouter(t *testing.T) string {
	rr, proxy := labAddr(false, nReflector).String(), labAddr(false, nProxy).String()
	var b strings.Builder
	fmt.Fprintf(&b, `frr defaults traditional
hostname router
ip prefix-list INLINE4 permit %s
ipv6 prefix-list INLINE6 permit %s
route-map TO-RR deny 10
 match ip address prefix-list INLINE4
route-map TO-RR deny 15
 match ipv6 address prefix-list INLINE6
route-map TO-RR permit 20
route-map BLUE permit 10
 set extcommunity rt 65000:100
 set metric 50
 set local-preference 150
 set community 65000:77
router bgp 65000
 bgp router-id 10.200.0.1
 no bgp default ipv4-unicast
 no bgp network import-check
 neighbor %[3]s remote-as 65000
 neighbor %[3]s timers connect 1
 neighbor %[4]s remote-as 65000
 neighbor %[4]s timers connect 1
%[5]s%[6]s`, waysOf(false).inline, waysOf(true).inline, rr, proxy, frrNHC(t, rr), frrNHC(t, proxy))
	for _, v6 := range []bool{false, true} {
		w := waysOf(v6)
		fmt.Fprintf(&b, " address-family %s vpn\n", familyOf(v6).af)
		for _, p := range []string{w.inline, w.both, w.path} {
			fmt.Fprintf(&b, "  network %s rd 65000:1 label 1001 route-map BLUE\n", p)
		}
		fmt.Fprintf(&b, "  neighbor %[1]s activate\n  neighbor %[1]s route-map TO-RR out\n  neighbor %[2]s activate\n exit-address-family\n", rr, proxy)
	}
	return b.String()
}

// A VPN's sender prefixes in the modes that follow the router, through a reflector with add-path.
func TestBGPVPNFollowsTheRouterInEveryMode(t *testing.T) {
	needFRR(t, "bgpd")
	reflector := frrVPNReflector(t)
	addPath := fmt.Sprintf("  neighbor %s addpath-tx-all-paths\n exit-address-family\n", labAddr(false, nCongestion))
	l := upBGP(t, "bgp-vpn-modes", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: map[string]string{"/etc/frr/frr.conf": frrVPNRouter(t)}},
		{name: "reflector", n: nReflector, image: "frr", files: map[string]string{"/etc/frr/frr.conf": strings.ReplaceAll(reflector, " exit-address-family\n", addPath)}},
		{name: "proxy", n: nProxy},
		{name: "congestion", n: nCongestion},
	})
	router := l.at(nRouter)
	vpn := []bgp.Family{bgp.IPv4VPN, bgp.IPv6VPN}
	label := uint32(bgp.LabelImplicitNull)
	rd, err := bgp.ParseRD("10.200.0.3:1")
	if err != nil {
		t.Fatal(err)
	}
	cfg := l.config(nProxy, bgp.NeighborConfig{Address: router, Passive: true}, bgp.NeighborConfig{Address: l.at(nReflector), Passive: true})
	for i := range cfg.Neighbors {
		cfg.Neighbors[i].Families = vpn
	}
	cfg.Contexts = []bgp.ContextConfig{{Name: "blue", RD: rd, Import: vpnTargets(t, "65000:100"), Export: vpnTargets(t, "65000:9100"), Label: &label}}
	want := map[string]bgp.Mode{} // by prefix
	for _, v6 := range []bool{false, true} {
		w := waysOf(v6)
		want[w.inline], want[w.path], want[w.both] = bgp.ModeInline, bgp.ModePath, bgp.ModePrefer
	}
	for p, mode := range want {
		cfg.Originate = append(cfg.Originate, bgp.OriginateConfig{
			Context: "blue", Prefix: netip.MustParsePrefix(p), Mode: mode, Proxy: blueProxy, From: router})
	}
	proxy := l.speaker("proxy", cfg)
	at := l.config(nCongestion, bgp.NeighborConfig{Address: l.at(nReflector), Passive: true, AddPath: true})
	at.Neighbors[0].Families = vpn
	at.Contexts = []bgp.ContextConfig{{Name: "blue", Import: vpnTargets(t, "65000:100", "65000:9100")}}
	congestion := l.speaker("congestion", at)

	off := func(a speakertest.Answer) bool {
		for p := range want {
			if rs := a.Of(p); len(rs) != 1 || rs[0].Proxy.IsValid() || rs[0].Context != "blue" || rs[0].RD != "65000:1" {
				return false
			}
		}
		return true
	}
	congestion.Await("off: the router's routes, the inline ones passed on without PNC", off)

	on := true
	proxy.Must(speakertest.Request{Enable: &on})
	for p, mode := range want {
		got := congestion.Await("PNC on "+p, speakertest.Believes(p, blueProxy.String()))
		n := 1
		if mode != bgp.ModeInline {
			n = 2 // the router's own beside it
		}
		if rs := got.Of(p); len(rs) != n {
			t.Errorf("%s %s: %d paths, want %d: %+v", mode, p, len(rs), n, rs)
		}
		hop := labAddr(netip.MustParsePrefix(p).Addr().Is6(), nRouter)
		if r := got.Believed(p); r.RD != "65000:1" || r.NextHop != hop || r.Originator != "10.200.0.1" || !r.Partial || r.Best != (mode != bgp.ModePath) {
			t.Errorf("%s %s: %+v", mode, p, r)
		}
		if n := len(got.Disregarded); n != 0 {
			t.Errorf("disregarded: %+v", got.Disregarded)
		}
		// The reflector, which knows BGP better than we do, has the router's label, targets and attributes.
		af := familyOf(netip.MustParsePrefix(p).Addr().Is6()).af
		text := l.vtysh("reflector", "show bgp "+af+" vpn "+p)
		_, copied, found := strings.Cut(text, "from "+l.at(nProxy).String())
		pref := map[bgp.Mode]string{bgp.ModePrefer: "localpref 151"}[mode]
		if pref == "" {
			pref = "localpref 150"
		}
		for _, w := range []string{"RT:65000:100", "65000:77", "metric 50", pref, "1001", "10.200.0.1"} {
			if !found || !strings.Contains(copied, w) {
				t.Errorf("%s %s: no %q in what came from the proxy:\n%s", mode, p, w, text)
			}
		}
	}
	for _, ad := range proxy.Must(speakertest.Request{}).Advertisements {
		if !ad.Active || ad.Context != "blue" || ad.RD != "65000:1" || ad.NextHop != labAddr(ad.Prefix.Addr().Is6(), nRouter) {
			t.Errorf("at the proxy: %+v", ad)
		}
	}

	// At run time, with a route distinguisher of the proxy's own.
	for _, v6 := range []bool{false, true} {
		p := netip.MustParsePrefix(waysOf(v6).originate)
		proxy.Must(speakertest.Request{Advertise: &bgp.OriginateConfig{Context: "blue", Prefix: p, Proxy: blueProxy, NextHop: labAddr(v6, nRouter)}})
		got := congestion.Await("what was asked for at run time", speakertest.Believes(p.String(), blueProxy.String()))
		if r := got.Believed(p.String()); r.RD != "10.200.0.3:1" || r.NextHop != labAddr(v6, nRouter) {
			t.Errorf("%+v", r)
		}
		if a := proxy.Ask(speakertest.Request{Withdraw: &p}); !strings.Contains(a.Error, "not advertised") {
			t.Errorf("withdrawn outside of its context: %q", a.Error)
		}
		proxy.Must(speakertest.Request{Withdraw: &p, Context: "blue"})
		congestion.Await("its withdrawal", func(a speakertest.Answer) bool { return len(a.Of(p.String())) == 0 })
	}

	// Each goes with the router's.
	for p := range want {
		af := familyOf(netip.MustParsePrefix(p).Addr().Is6()).af
		l.vtysh("router", "configure terminal", "router bgp 65000", "address-family "+af+" vpn", "no network "+p+" rd 65000:1 label 1001")
	}
	congestion.Await("nothing is left", func(a speakertest.Answer) bool { return len(a.Routes) == 0 })
	if r := resolve(congestion.Ask(speakertest.Request{}), "blue", vpnSender4); r.Reason != pnc.ReasonNoRoute {
		t.Errorf("%+v", r)
	}
	for _, ad := range proxy.Must(speakertest.Request{}).Advertisements {
		if ad.Active || ad.Announced || !strings.Contains(ad.InactiveReason, "no path of the router") {
			t.Errorf("at the proxy: %+v", ad)
		}
	}
}
