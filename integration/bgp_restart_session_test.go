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

// Numbers that only RFC 6793 can carry, at both ends of an EBGP session.
func TestBGPFourOctetASAndAShutdownFromFRR(t *testing.T) {
	needFRR(t, "bgpd")
	const theirs, ours, reason = 4200000001, 4200000002, "replaced tonight, ticket 4711"
	l := upBGP(t, "bgp-as4", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: map[string]string{"/etc/frr/frr.conf": `frr defaults traditional
router bgp 4200000001
 bgp router-id 10.200.0.1
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.200.0.4 remote-as 4200000002
 neighbor 10.200.0.4 timers connect 1
` + frrNHC(t, "10.200.0.4") + ` address-family ipv4 unicast
  network 192.0.2.0/24
 exit-address-family
`}},
		{name: "pncd", n: nCongestion},
	})
	send := true
	cfg := l.config(nCongestion, bgp.NeighborConfig{Address: l.at(nRouter), Passive: true, PeerAS: theirs, AcceptEBGP: true, SendNHC: &send})
	cfg.AS = ours
	cfg.Originate = []bgp.OriginateConfig{{
		Prefix: netip.MustParsePrefix("198.51.100.0/24"), Proxy: netip.MustParseAddr(proxyAddr), NextHop: l.at(nCongestion)}}
	p := l.speaker("pncd", cfg)
	p.Must(speakertest.Request{Enable: &send})
	a := p.Await("the router's route", func(a speakertest.Answer) bool { return len(a.Of("192.0.2.0/24")) == 1 })
	if n := a.Neighbor(l.at(nRouter).String()); n.PeerAS != theirs || n.LocalAS != ours {
		t.Errorf("%+v", n)
	}
	l.eventually("our route with our AS at the router", func() string {
		out := l.vtysh("router", "show bgp ipv4 unicast 198.51.100.0/24")
		if !strings.Contains(out, "\n  4200000002\n") {
			return out
		}
		return ""
	})
	l.vtysh("router", "configure terminal", "router bgp 4200000001", "neighbor 10.200.0.4 shutdown message "+reason)
	p.Await("the router's reason", func(a speakertest.Answer) bool {
		n := a.Neighbor(l.at(nRouter).String())
		return len(a.Routes) == 0 && strings.Contains(n.LastError, "code 6(cease) subcode 2(administrative shutdown)") && strings.Contains(n.LastError, reason)
	})
	l.vtysh("router", "configure terminal", "router bgp 4200000001", "no neighbor 10.200.0.4 shutdown")
	p.Await("the session again", func(a speakertest.Answer) bool { return a.Up(l.at(nRouter).String()) && len(a.Routes) == 1 })
}

func TestBGPRouteRefreshWithFRR(t *testing.T) {
	needFRR(t, "bgpd")
	l := upBGP(t, "bgp-refresh", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: map[string]string{
			"/etc/frr/frr.conf": preferFRR(t, familyOf(false), "router", nRouter, []int{nProxy}, "  network 192.0.2.0/24\n")}},
		{name: "proxy", n: nProxy},
	})
	router := l.at(nRouter)
	cfg := l.config(nProxy, bgp.NeighborConfig{Address: router})
	cfg.Originate = []bgp.OriginateConfig{{
		Prefix: netip.MustParsePrefix("198.51.100.0/24"), Proxy: netip.MustParseAddr(proxyAddr), NextHop: l.at(nProxy)}}
	p := l.speaker("proxy", cfg)
	refresh := func(in, out bool) speakertest.Request {
		return speakertest.Request{Refresh: &speakertest.Refresh{Neighbor: router, In: in, Out: out}}
	}
	on := true
	p.Must(speakertest.Request{Enable: &on})
	p.Await("the route", func(a speakertest.Answer) bool { return len(a.Routes) == 1 })
	type stats struct{ RouteRefreshRecv, UpdatesSent, UpdatesRecv int }
	read := func() stats {
		var all map[string]struct{ MessageStats stats }
		us := l.at(nProxy).String()
		text := l.vtysh("router", "show bgp neighbors "+us+" json")
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return all[us].MessageStats
	}
	l.eventually("our announcement at the router", func() string {
		if out := l.vtysh("router", "show bgp ipv4 unicast 198.51.100.0/24"); !strings.Contains(out, "10.200.0.3") {
			return out
		}
		return ""
	})
	before := read()
	p.Must(refresh(true, false))
	l.eventually("the router to be asked, and to send again", func() string {
		if now := read(); now.RouteRefreshRecv != before.RouteRefreshRecv+1 || now.UpdatesSent <= before.UpdatesSent {
			return fmt.Sprintf("%+v, before %+v", now, before)
		}
		return ""
	})
	before = read()
	p.Must(refresh(false, true))
	l.eventually("our announcements again", func() string {
		if now := read(); now.UpdatesRecv <= before.UpdatesRecv || now.RouteRefreshRecv != before.RouteRefreshRecv {
			return fmt.Sprintf("%+v, before %+v", now, before)
		}
		return ""
	})
	a := p.Ask(speakertest.Request{})
	if n := a.Neighbor(router.String()); n.Flaps != 1 || len(a.Routes) != 1 {
		t.Errorf("the session, or its route, didn't stay: %s", a)
	}
	l.killBGP("router")
	p.Await("the session's end", func(a speakertest.Answer) bool { return !a.Up(router.String()) })
	if a := p.Ask(refresh(true, false)); !strings.Contains(a.Error, "isn't established") {
		t.Errorf("a refresh of a session that is down: %q", a.Error)
	}
}
