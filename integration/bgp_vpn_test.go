package integration

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// The same prefixes in two VPNs. The router announces them with route targets of its own; the proxy
// announces the PNC with route targets that only the congestion node imports.
const (
	vpnPrefix4, vpnSender4 = "192.0.2.0/24", "192.0.2.9"
	vpnPrefix6, vpnSender6 = "2001:db8:a::/48", "2001:db8:a::9"
)

var (
	blueProxy = netip.MustParseAddr("10.200.0.3")
	redProxy  = netip.MustParseAddr("2001:db8:200::3")
)

// frrPE announces both prefixes in both VPNs, without a VRF: no kernel device is needed.
func frrPE(t *testing.T) string {
	rr := labAddr(false, nReflector).String()
	return fmt.Sprintf(`frr defaults traditional
hostname router
route-map BLUE permit 10
 set extcommunity rt 65000:100
route-map RED permit 10
 set extcommunity rt 65000:200
router bgp 65000
 bgp router-id 10.200.0.1
 no bgp default ipv4-unicast
 no bgp network import-check
 neighbor %[1]s remote-as 65000
 neighbor %[1]s timers connect 1
%[4]s address-family ipv4 vpn
  network %[2]s rd 65000:1 label 1001 route-map BLUE
  network %[2]s rd 65000:2 label 1002 route-map RED
  neighbor %[1]s activate
 exit-address-family
 address-family ipv6 vpn
  network %[3]s rd 65000:1 label 1001 route-map BLUE
  network %[3]s rd 65000:2 label 1002 route-map RED
  neighbor %[1]s activate
 exit-address-family
`, rr, vpnPrefix4, vpnPrefix6, frrNHC(t, rr))
}

func frrVPNReflector(t *testing.T) string {
	var b strings.Builder
	b.WriteString("frr defaults traditional\nhostname reflector\nrouter bgp 65000\n bgp router-id 10.200.0.2\n no bgp default ipv4-unicast\n")
	clients := []int{nRouter, nProxy, nCongestion}
	for _, n := range clients {
		a := labAddr(false, n).String()
		fmt.Fprintf(&b, " neighbor %[1]s remote-as 65000\n neighbor %[1]s timers connect 1\n%[2]s", a, frrNHC(t, a))
	}
	for _, af := range []string{"ipv4", "ipv6"} {
		fmt.Fprintf(&b, " address-family %s vpn\n", af)
		for _, n := range clients {
			fmt.Fprintf(&b, "  neighbor %[1]s activate\n  neighbor %[1]s route-reflector-client\n", labAddr(false, n))
		}
		b.WriteString(" exit-address-family\n")
	}
	return b.String()
}

// vpnLab is the lab with the speakers of the proxy and the congestion node.
type vpnLab struct {
	*bgpLab
	proxyConfig, congestionConfig bgp.Config
	proxy, congestion             *speakertest.Process
}

func vpnTargets(t *testing.T, list ...string) (out []bgp.RouteTarget) {
	t.Helper()
	for _, s := range list {
		rt, err := bgp.ParseRouteTarget(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rt)
	}
	return out
}

func (l *vpnLab) start() {
	rd := func(s string) bgp.RD {
		d, err := bgp.ParseRD(s)
		if err != nil {
			l.t.Fatal(err)
		}
		return d
	}
	label := uint32(bgp.LabelImplicitNull)
	session := func(n int) bgp.Config {
		cfg := l.config(n, bgp.NeighborConfig{Address: l.at(nReflector)})
		cfg.Neighbors[0].Families = []bgp.Family{bgp.IPv4VPN, bgp.IPv6VPN}
		return cfg
	}
	l.proxyConfig = session(nProxy)
	l.proxyConfig.Contexts = []bgp.ContextConfig{
		{Name: "blue", RD: rd("10.200.0.3:1"), Export: vpnTargets(l.t, "65000:9100"), Label: &label},
		{Name: "red", RD: rd("10.200.0.3:2"), Export: vpnTargets(l.t, "4200000000:92"), Label: &label},
	}
	v4, v6 := labAddr(false, nRouter), labAddr(true, nRouter)
	for _, x := range []struct {
		context, prefix string
		proxy, nextHop  netip.Addr
	}{
		{"blue", vpnPrefix4, blueProxy, v4}, {"blue", vpnPrefix6, blueProxy, v6},
		{"red", vpnPrefix4, redProxy, v4}, {"red", vpnPrefix6, redProxy, v4}, // VPNv6 over an IPv4 core
	} {
		l.proxyConfig.Originate = append(l.proxyConfig.Originate, bgp.OriginateConfig{
			Context: x.context, Prefix: netip.MustParsePrefix(x.prefix), Proxy: x.proxy, NextHop: x.nextHop})
	}
	l.congestionConfig = session(nCongestion)
	l.congestionConfig.Contexts = []bgp.ContextConfig{
		{Name: "blue", Import: vpnTargets(l.t, "65000:100", "65000:9100")},
		{Name: "red", Import: vpnTargets(l.t, "65000:200", "4200000000:92")},
		{Name: "green", Import: vpnTargets(l.t, "65000:300")},
	}
	l.proxy, l.congestion = l.speaker("proxy", l.proxyConfig), l.speaker("congestion", l.congestionConfig)
}

// resolve gives what the congestion node's table answers in a context.
func resolve(a speakertest.Answer, context, sender string) pnc.Resolution {
	t := pnc.New(pnc.Config{Contexts: []string{"blue", "red", "green"}})
	for _, r := range a.Routes {
		t.Apply(time.Time{}, pnc.Update{Route: r})
	}
	t.SetReachability(time.Time{}, map[netip.Addr]pnc.Reach{blueProxy: {Reachable: true}, redProxy: {Reachable: true}})
	return t.Resolve(context, netip.MustParseAddr(sender), 0)
}

// expect waits until the contexts answer so, for both families; an invalid address means no proxy.
func (l *vpnLab) expect(what string, blue, red netip.Addr) speakertest.Answer {
	l.t.Helper()
	return l.congestion.Await(what, func(a speakertest.Answer) bool {
		for context, proxy := range map[string]netip.Addr{"blue": blue, "red": red} {
			for _, sender := range []string{vpnSender4, vpnSender6} {
				want := pnc.ReasonFound
				if !proxy.IsValid() {
					want = pnc.ReasonNoProxy // the router's own route is always there
				}
				if r := resolve(a, context, sender); r.Reason != want || r.Proxy != proxy {
					return false
				}
			}
		}
		return true
	})
}

func TestBGPVPNThroughAnFRRReflector(t *testing.T) {
	needFRR(t, "bgpd")
	l := &vpnLab{bgpLab: upBGP(t, "bgp-vpn", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: map[string]string{"/etc/frr/frr.conf": frrPE(t)}},
		{name: "reflector", n: nReflector, image: "frr", files: map[string]string{"/etc/frr/frr.conf": frrVPNReflector(t)}},
		{name: "proxy", n: nProxy},
		{name: "congestion", n: nCongestion},
	})}
	l.start()
	for _, step := range []struct {
		name string
		run  func(t *testing.T, l *vpnLab)
	}{
		{"off: the router's routes are in their VPN, without PNC", vpnStepOff},
		{"on: each VPN has its own proxy for the same prefixes", vpnStepOn},
		{"one VPN's PNC is withdrawn and the other's stays", vpnStepOneWithdrawn},
		{"a context that imports another target sees what is there already", vpnStepImport},
		{"a router that leaves takes its routes along and the PNC stays", vpnStepRouterGone},
		{"off again", vpnStepGone},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, l) }) {
			return // the next step builds on this one
		}
	}
}

func vpnStepOff(t *testing.T, l *vpnLab) {
	got := l.expect("the router's routes", netip.Addr{}, netip.Addr{})
	if len(got.Routes) != 4 {
		t.Errorf("%d routes, want two in each of two VPNs: %+v", len(got.Routes), got.Routes)
	}
	for _, r := range got.Routes {
		if want := map[string]string{"blue": "65000:1", "red": "65000:2"}[r.Context]; r.RD != want || r.Proxy.IsValid() || !r.Best {
			t.Errorf("%+v, want route distinguisher %s", r, want)
		}
	}
}

func vpnStepOn(t *testing.T, l *vpnLab) {
	on := true
	for _, ad := range l.proxy.Must(speakertest.Request{Enable: &on}).Advertisements {
		if !ad.Active {
			t.Errorf("not announced: %+v", ad)
		}
	}
	got := l.expect("the PNC in each VPN", blueProxy, redProxy)
	if len(got.Routes) != 8 || len(got.Disregarded) != 0 {
		t.Errorf("%d routes, want 8: %+v; disregarded: %+v", len(got.Routes), got.Routes, got.Disregarded)
	}
	best := map[string]int{}
	for _, r := range got.Routes {
		if r.Best {
			best[r.Context+" "+r.Prefix.String()]++
		}
		if proxy := (map[string]netip.Addr{"blue": blueProxy, "red": redProxy})[r.Context]; r.Believed() &&
			(r.Proxy != proxy || !strings.HasPrefix(r.RD, "10.200.0.3:")) {
			t.Errorf("%+v", r)
		}
	}
	for at, n := range best {
		if n != 1 {
			t.Errorf("%s has %d best paths", at, n)
		}
	}
	if r := resolve(got, "green", vpnSender4); r.Reason != pnc.ReasonNoRoute {
		t.Errorf("a context that imports nothing of this answers %v", r)
	}
	if r := resolve(got, "", vpnSender4); r.Reason != pnc.ReasonNoRoute {
		t.Errorf("the default context answers %v", r)
	}
	// What FRR saw on the wire.
	for _, af := range []string{"ipv4", "ipv6"} {
		prefix := map[string]string{"ipv4": vpnPrefix4, "ipv6": vpnPrefix6}[af]
		text := l.vtysh("reflector", "show bgp "+af+" vpn "+prefix)
		for _, want := range []string{"10.200.0.3:1", "10.200.0.3:2", "RT:65000:9100", "RT:4200000000:92", "65000:1", "65000:2"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: FRR doesn't show %q:\n%s", af, want, text)
			}
		}
	}
}

func vpnStepOneWithdrawn(t *testing.T, l *vpnLab) {
	cfg := l.proxyConfig
	cfg.Originate = slices.Clone(cfg.Originate[:2])
	l.proxy.Must(speakertest.Request{Configure: &cfg})
	l.expect("red without PNC", blueProxy, netip.Addr{})
	l.proxy.Must(speakertest.Request{Configure: &l.proxyConfig})
	l.expect("red with PNC again", blueProxy, redProxy)
}

func vpnStepImport(t *testing.T, l *vpnLab) {
	before := l.congestion.Must(speakertest.Request{})
	cfg := l.congestionConfig
	cfg.Contexts = slices.Clone(cfg.Contexts)
	cfg.Contexts[2].Import = vpnTargets(t, "65000:9100")
	l.congestion.Must(speakertest.Request{Configure: &cfg})
	got := l.congestion.Await("the PNC in green", func(a speakertest.Answer) bool {
		return resolve(a, "green", vpnSender4).Proxy == blueProxy && resolve(a, "green", vpnSender6).Proxy == blueProxy
	})
	if a, b := before.Neighbors[0].Flaps, got.Neighbors[0].Flaps; a != b {
		t.Errorf("the session went down for it: %d times up, %d before", b, a)
	}
	l.congestion.Must(speakertest.Request{Configure: &l.congestionConfig})
	l.congestion.Await("green empty", func(a speakertest.Answer) bool {
		return resolve(a, "green", vpnSender4).Reason == pnc.ReasonNoRoute
	})
}

func vpnStepRouterGone(t *testing.T, l *vpnLab) {
	l.vtysh("router", "configure terminal", "router bgp 65000", "neighbor "+l.at(nReflector).String()+" shutdown")
	got := l.congestion.Await("the router's routes gone", func(a speakertest.Answer) bool { return len(a.Routes) == 4 })
	for _, r := range got.Routes {
		if !r.Believed() || !r.Best {
			t.Errorf("%+v, want the proxy's", r)
		}
	}
	l.vtysh("router", "configure terminal", "router bgp 65000", "no neighbor "+l.at(nReflector).String()+" shutdown")
	l.congestion.Await("the router's routes back", func(a speakertest.Answer) bool { return len(a.Routes) == 8 })
}

func vpnStepGone(t *testing.T, l *vpnLab) {
	off := false
	l.proxy.Must(speakertest.Request{Enable: &off})
	vpnStepOff(t, l)
}
