package integration

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// The nodes of the reflector labs: a router that announces the sender prefixes, a route reflector,
// the proxy and a congestion node beside them, and another congestion node in the next AS.
const (
	nRouter = iota + 1
	nReflector
	nProxy
	nCongestion
)

// Each prefix has its way to the congestion node.
type ways struct {
	originate string // nobody but the proxy announces it
	inline    string // the router announces it to the proxy only
	both      string // inline, and the router announces it to the reflector too
	path      string // the proxy announces a copy beside the router's own path
}

func waysOf(v6 bool) ways {
	if v6 {
		return ways{"2001:db8:a::/48", "2001:db8:b::/48", "2001:db8:c::/48", "2001:db8:d::/48"}
	}
	return ways{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/16"}
}

func (w ways) all() []string { return []string{w.originate, w.inline, w.both, w.path} }

const proxyAddr = "10.200.0.3"

type labFamily struct {
	v6       bool
	af, ip   string // as FRR has them
	channel  string // as BIRD has it
	otherAS  [2]string
	otherLen int
}

func familyOf(v6 bool) labFamily {
	if v6 {
		return labFamily{true, "ipv6", "ipv6", "ipv6", [2]string{"2001:db8:201::1", "2001:db8:201::2"}, 64}
	}
	return labFamily{false, "ipv4", "ip", "ipv4", [2]string{"10.201.0.1", "10.201.0.2"}, 24}
}

func frrRouter(t *testing.T, f labFamily) string {
	w := waysOf(f.v6)
	rr, proxy := labAddr(f.v6, nReflector).String(), labAddr(f.v6, nProxy).String()
	return fmt.Sprintf(`frr defaults traditional
hostname router
%[1]s prefix-list NOT-TO-RR permit %[2]s
route-map TO-RR deny 10
 match %[1]s address prefix-list NOT-TO-RR
route-map TO-RR permit 20
route-map SET permit 10
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
%[8]s%[9]s address-family %[5]s unicast
  network %[2]s route-map SET
  network %[6]s route-map SET
  network %[7]s route-map SET
  neighbor %[3]s activate
  neighbor %[3]s route-map TO-RR out
  neighbor %[4]s activate
 exit-address-family
`, f.ip, w.inline, rr, proxy, f.af, w.both, w.path, frrNHC(t, rr), frrNHC(t, proxy))
}

func frrReflector(t *testing.T, f labFamily) string {
	var b strings.Builder
	fmt.Fprintf(&b, `frr defaults traditional
hostname reflector
router bgp 65000
 bgp router-id 10.200.0.2
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
`)
	clients := []int{nRouter, nProxy, nCongestion}
	for _, n := range clients {
		a := labAddr(f.v6, n).String()
		fmt.Fprintf(&b, " neighbor %[1]s remote-as 65000\n neighbor %[1]s timers connect 1\n%[2]s", a, frrNHC(t, a))
	}
	fmt.Fprintf(&b, " neighbor %[1]s remote-as 65001\n neighbor %[1]s timers connect 1\n%[2]s", f.otherAS[1], frrNHC(t, f.otherAS[1]))
	fmt.Fprintf(&b, " address-family %s unicast\n", f.af)
	for _, n := range clients {
		fmt.Fprintf(&b, "  neighbor %[1]s activate\n  neighbor %[1]s route-reflector-client\n", labAddr(f.v6, n))
	}
	fmt.Fprintf(&b, "  neighbor %s addpath-tx-all-paths\n  neighbor %s activate\n exit-address-family\n",
		labAddr(f.v6, nCongestion), f.otherAS[1])
	return b.String()
}

// birdReflector is BIRD 2 as the reflector; nextHop is what it does to the next hop on the way to the
// congestion node.
func birdReflector(f labFamily, nextHop string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "router id 10.200.0.2;\nprotocol device {}\nprotocol direct { %s; }\n", f.channel)
	session := func(name, local, remote string, as int, session, channel string) {
		fmt.Fprintf(&b, `protocol bgp to_%s {
  local %s as 65000; neighbor %s as %d; %s
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  %s { import all; export where source = RTS_BGP; %s };
}
`, name, local, remote, as, session, f.channel, channel)
	}
	rr := labAddr(f.v6, nReflector).String()
	client := "rr client; rr cluster id 10.200.0.2;"
	session("router", rr, labAddr(f.v6, nRouter).String(), 65000, client, "")
	session("proxy", rr, labAddr(f.v6, nProxy).String(), 65000, client, "")
	session("congestion", rr, labAddr(f.v6, nCongestion).String(), 65000, client, "add paths tx; "+nextHop)
	session("other", f.otherAS[0], f.otherAS[1], 65001, "", "")
	return b.String()
}

// reflectorLab is a lab with the speakers running and everything announced.
type reflectorLab struct {
	*bgpLab
	f                        labFamily
	w                        ways
	bird                     bool
	proxy, congestion, other *speakertest.Process
}

func TestBGPThroughRouteReflectors(t *testing.T) {
	needFRR(t, "bgpd")
	needPrograms(t, "bird", "birdc")
	for _, reflector := range []string{"frr", "bird"} {
		for _, v6 := range []bool{false, true} {
			name := reflector + map[bool]string{false: "4", true: "6"}[v6]
			t.Run(name, func(t *testing.T) { testReflector(t, name, reflector, familyOf(v6)) })
		}
	}
}

func testReflector(t *testing.T, name, reflector string, f labFamily) {
	files := map[string]string{"/etc/frr/frr.conf": frrReflector(t, f)}
	if reflector == "bird" {
		files = map[string]string{"/etc/bird/bird.conf": birdReflector(f, ""), "/etc/bird/self.conf": birdReflector(f, "next hop self;")}
	}
	nodad := map[bool]string{true: " nodad"}[f.v6]
	l := &reflectorLab{f: f, w: waysOf(f.v6), bird: reflector == "bird"}
	l.bgpLab = upBGP(t, "bgp-"+name, f.v6, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: map[string]string{"/etc/frr/frr.conf": frrRouter(t, f)}},
		{name: "reflector", n: nReflector, image: reflector, files: files,
			extra: []string{fmt.Sprintf("ip addr add %s/%d dev eth2%s", f.otherAS[0], f.otherLen, nodad)}},
		{name: "proxy", n: nProxy},
		{name: "congestion", n: nCongestion},
		{name: "other", n: 5, extra: []string{fmt.Sprintf("ip addr add %s/%d dev eth2%s", f.otherAS[1], f.otherLen, nodad)}},
	}, `"reflector:eth2", "other:eth2"`)
	l.start()
	for _, step := range []struct {
		name string
		run  func(t *testing.T, l *reflectorLab)
	}{
		{"off: nothing carries a PNC and no route is missing", stepOff},
		{"each mode arrives with Partial and is believed", stepBelieved},
		{"inline and path keep the router's attributes", stepAttributes},
		{"a next hop changed by EBGP is a mismatch", stepOther},
		{"a withdrawal at the router takes the PNC along", stepWithdraw},
		{"off again", stepOff},
		{"a next hop changed by the reflector is a mismatch", stepNextHopSelf},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, l) }) {
			return // the next step builds on this one
		}
	}
}

func (l *reflectorLab) start() {
	router, reflector := l.at(nRouter), l.at(nReflector)
	cfg := l.config(nProxy, bgp.NeighborConfig{Address: router, Passive: true}, bgp.NeighborConfig{Address: reflector, Passive: true})
	proxy := netip.MustParseAddr(proxyAddr)
	add := func(prefix string, mode bgp.Mode, nextHop, from netip.Addr) {
		cfg.Originate = append(cfg.Originate, bgp.OriginateConfig{
			Prefix: netip.MustParsePrefix(prefix), Mode: mode, Proxy: proxy, NextHop: nextHop, From: from})
	}
	add(l.w.originate, bgp.ModeOriginate, router, netip.Addr{})
	add(l.w.inline, bgp.ModeInline, netip.Addr{}, router)
	add(l.w.both, bgp.ModeInline, netip.Addr{}, router)
	add(l.w.path, bgp.ModePath, netip.Addr{}, reflector)
	l.proxy = l.speaker("proxy", cfg)
	l.congestion = l.speaker("congestion", l.config(nCongestion, bgp.NeighborConfig{Address: reflector, Passive: true, AddPath: true}))
	other := l.config(5, bgp.NeighborConfig{Address: netip.MustParseAddr(l.f.otherAS[0]), PeerAS: 65000, Passive: true, AcceptEBGP: true})
	other.AS = 65001
	l.other = l.speaker("other", other)
	l.proxy.AwaitUp(router.String())
	l.proxy.AwaitUp(reflector.String())
	l.congestion.AwaitUp(reflector.String())
	l.other.AwaitUp(l.f.otherAS[0])
}

func (l *reflectorLab) enable(on bool) {
	l.proxy.Must(speakertest.Request{Enable: &on})
}

func stepOff(t *testing.T, l *reflectorLab) {
	l.enable(false)
	got := l.congestion.Await("the routes without PNC", func(a speakertest.Answer) bool {
		return len(a.Of(l.w.originate)) == 0 && len(a.Of(l.w.inline)) == 1 && len(a.Of(l.w.both)) == 2 && len(a.Of(l.w.path)) == 1 &&
			a.Believed(l.w.inline) == nil && a.Believed(l.w.both) == nil && a.Believed(l.w.path) == nil
	})
	for _, r := range got.Routes {
		if r.Proxy.IsValid() {
			t.Errorf("a PNC while the mechanism is off: %+v", r)
		}
		if r.NextHop != l.at(nRouter) {
			t.Errorf("next hop %s, want the router's: %+v", r.NextHop, r)
		}
	}
}

func stepBelieved(t *testing.T, l *reflectorLab) {
	l.enable(true)
	for _, p := range l.w.all() {
		got := l.congestion.Await("PNC on "+p, speakertest.Believes(p, proxyAddr))
		r := got.Believed(p)
		if !r.Partial || r.NextHop != l.at(nRouter) || r.Stale {
			t.Errorf("%s: %+v", p, r)
		}
	}
	got := l.congestion.Ask(speakertest.Request{})
	for _, p := range []string{l.w.both, l.w.path} {
		rs := got.Of(p)
		if len(rs) != 2 {
			t.Errorf("%s: want the router's own path and the copy, got\n%s", p, got)
			continue
		}
		for _, r := range rs {
			if r.Best && r.Believed() {
				t.Errorf("%s: the copy won over the router's own path: %+v", p, rs)
			}
			if r.Originator != "10.200.0.1" {
				t.Errorf("%s: originator %s, want the router", p, r.Originator)
			}
		}
	}
	for _, a := range l.proxy.Ask(speakertest.Request{}).Advertisements {
		if !a.Active || a.NextHop != l.at(nRouter) {
			t.Errorf("at the proxy: %+v", a)
		}
	}
}

// stepAttributes looks at the reflector, which knows BGP better than we do.
func stepAttributes(t *testing.T, l *reflectorLab) {
	if l.bird {
		out := l.run("reflector", "birdc", "-s", "/run/bird.ctl", "show", "route", "all", l.w.inline)
		for _, want := range []string{"BGP.med: 50", "BGP.local_pref: 150", "(65000,77)", "BGP.originator_id: 10.200.0.1",
			"BGP.cluster_list: 10.200.0.3", "BGP.origin: IGP", "BGP.next_hop: " + l.at(nRouter).String(), "from " + l.at(nProxy).String()} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		return
	}
	var got struct {
		Paths []struct {
			Metric, LocPrf int
			Origin         string
			OriginatorID   string `json:"originatorId"`
			Community      struct{ String string }
			ClusterList    struct{ List []string }
			Nexthops       []struct{ IP string }
			Peer           struct{ PeerID string }
		}
	}
	out := l.vtysh("reflector", "show bgp "+l.f.af+" unicast "+l.w.inline+" json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Paths) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	p := got.Paths[0]
	if p.Metric != 50 || p.LocPrf != 150 || p.Origin != "IGP" || p.OriginatorID != "10.200.0.1" || p.Community.String != "65000:77" ||
		len(p.ClusterList.List) != 1 || p.ClusterList.List[0] != "10.200.0.3" || p.Nexthops[0].IP != l.at(nRouter).String() || p.Peer.PeerID != l.at(nProxy).String() {
		t.Errorf("%+v from %s", p, out)
	}
}

func stepOther(t *testing.T, l *reflectorLab) {
	// One best path goes to the next AS: with a PNC where the proxy's path is the only one.
	got := l.other.Await("mismatches", func(a speakertest.Answer) bool {
		return mismatched(a, l.w.originate) && mismatched(a, l.w.inline)
	})
	for _, p := range l.w.all() {
		if len(got.Of(p)) != 1 || got.Believed(p) != nil {
			t.Errorf("%s: the route must stay, without a believed PNC:\n%s", p, got)
		}
	}
	n := got.Neighbor(l.f.otherAS[0])
	if n.Disregarded[pnc.DisregardNextHopMismatch] < 2 || n.PNCBelieved != 0 || n.NHCReceived < 2 {
		t.Errorf("counted %+v", n)
	}
	if !hasEvent(got, l.w.inline, pnc.DisregardNextHopMismatch) {
		t.Errorf("not reported:\n%s", got)
	}
}

func mismatched(a speakertest.Answer, prefix string) bool {
	for _, r := range a.Of(prefix) {
		if r.Disregarded == pnc.DisregardNextHopMismatch && r.Proxy.String() == proxyAddr {
			return true
		}
	}
	return false
}

func hasEvent(a speakertest.Answer, prefix string, reason pnc.DisregardReason) bool {
	for _, e := range a.Disregarded {
		if e.Route.Prefix.String() == prefix && e.Reason == reason && e.Detail != "" {
			return true
		}
	}
	return false
}

func stepWithdraw(t *testing.T, l *reflectorLab) {
	announce := func(no string) {
		var lines []string
		for _, p := range []string{l.w.inline, l.w.both, l.w.path} {
			lines = append(lines, strings.TrimSpace(no+" network "+p+" route-map SET"))
		}
		l.vtysh("router", append([]string{"configure terminal", "router bgp 65000", "address-family " + l.f.af + " unicast"}, lines...)...)
	}
	announce("no")
	l.congestion.Await("the router's prefixes are gone", func(a speakertest.Answer) bool {
		return len(a.Routes) == 1 && a.Believed(l.w.originate) != nil
	})
	for _, a := range l.proxy.Ask(speakertest.Request{}).Advertisements {
		if a.Mode != bgp.ModeOriginate && (a.Active || a.InactiveReason == "") {
			t.Errorf("at the proxy: %+v", a)
		}
	}
	announce("")
	for _, p := range l.w.all() {
		l.congestion.Await("PNC is back on "+p, speakertest.Believes(p, proxyAddr))
	}
}

func stepNextHopSelf(t *testing.T, l *reflectorLab) {
	l.enable(true)
	for _, p := range l.w.all() {
		l.congestion.Await("PNC on "+p, speakertest.Believes(p, proxyAddr))
	}
	if l.bird {
		l.run("reflector", "birdc", "-s", "/run/bird.ctl", "configure", `"/etc/bird/self.conf"`)
	} else {
		l.vtysh("reflector", "configure terminal", "router bgp 65000", "address-family "+l.f.af+" unicast",
			"neighbor "+l.at(nCongestion).String()+" next-hop-self force")
	}
	// The reflector sends the paths of a prefix one after the other: wait until it has sent them all.
	l.congestion.Await("mismatches, and the reflector as the next hop of every route", func(a speakertest.Answer) bool {
		for _, p := range l.w.all() {
			if !mismatched(a, p) || a.Believed(p) != nil {
				return false
			}
		}
		for _, r := range a.Routes {
			if r.NextHop != l.at(nReflector) {
				return false
			}
		}
		return true
	})
}
