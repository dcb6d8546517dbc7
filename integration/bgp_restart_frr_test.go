package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// killBGP ends bgpd of a node at once, as a crash would.
func (l *bgpLab) killBGP(node string) {
	l.t.Helper()
	for _, p := range l.Programs(node) {
		if p.Name() == "bgpd" {
			p.Kill()
			return
		}
	}
	l.t.Fatalf("no bgpd in %s", node)
}

// startBGP starts bgpd of a node again, with its configuration. vtysh -b is content with the daemons that it
// finds, so it is given again until bgpd has it.
func (l *bgpLab) startBGP(node string) {
	l.t.Helper()
	l.start(node, "/usr/lib/frr/bgpd", "-A", "127.0.0.1", "--log", "stdout")
	l.eventually("bgpd to take its configuration", func() string {
		if out, err := l.Exec(l.ctx, node, "vtysh", "-d", "bgpd", "-c", "show version"); err != nil {
			return err.Error() + strings.TrimSpace(string(out))
		}
		if out, err := l.Exec(l.ctx, node, "vtysh", "-b"); err != nil {
			return err.Error() + strings.TrimSpace(string(out))
		}
		out, err := l.Exec(l.ctx, node, "vtysh", "-d", "bgpd", "-c", "show running-config")
		if err != nil || !strings.Contains(string(out), "router bgp") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// restartFRR is the configuration of a router that restarts gracefully.
func restartFRR(id string, lines, family string) map[string]string {
	return map[string]string{"/etc/frr/frr.conf": `frr defaults traditional
bgp route-map delay-timer 0
route-map keep-short permit 10
 match ip address prefix-list short
 set community no-llgr
route-map keep-short permit 20
ip prefix-list short permit 203.0.113.0/24
router bgp 65000
 bgp router-id ` + id + `
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
` + lines + ` no bgp network import-check
 neighbor 10.200.0.4 remote-as 65000
 neighbor 10.200.0.4 timers connect 1
 address-family ipv4 unicast
` + family + `  neighbor 10.200.0.4 send-community both
 exit-address-family
`}
}

func TestBGPRestartTimeEndsWhatARouterThatStaysAwayAnnounced(t *testing.T) {
	needFRR(t, "bgpd")
	l := upBGP(t, "bgp-restart-time", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: restartFRR("10.200.0.1",
			" bgp graceful-restart restart-time 4\n", "  network 192.0.2.0/24\n")},
		{name: "congestion", n: nCongestion},
	})
	router := l.at(nRouter)
	p := l.speaker("congestion", l.config(nCongestion, bgp.NeighborConfig{Address: router, Passive: true, GracefulRestart: true}))
	fresh := p.Await("the route", func(a speakertest.Answer) bool { return len(a.Routes) == 1 })
	if n := fresh.Neighbor(router.String()); n.RestartTime != 4*time.Second || n.LongLivedTime != 0 || n.Stale != 0 {
		t.Errorf("%+v", n)
	}
	l.killBGP("router")
	killed := time.Now()
	a := p.Await("the stale route", func(a speakertest.Answer) bool { return len(a.Routes) == 1 && a.Routes[0].Stale })
	if n := a.Neighbor(router.String()); n.Stale != 1 || n.StaleUntil.IsZero() {
		t.Errorf("the neighbour's status doesn't show what is kept: %+v", n)
	}
	p.Await("no route", func(a speakertest.Answer) bool { return len(a.Routes) == 0 })
	if stayed := time.Since(killed); stayed < 3*time.Second {
		t.Errorf("the route stayed for %s only", stayed)
	}
	// The neighbours are read after the routes, and may have been as they were a moment before.
	p.Await("nothing kept", func(a speakertest.Answer) bool {
		n := a.Neighbor(router.String())
		return n.Stale == 0 && n.StaleUntil.IsZero()
	})
}

// A router that restarts and stays away; another that knows one of the prefixes, less preferred.
func TestBGPLongLivedRestartOfARouter(t *testing.T) {
	needFRR(t, "bgpd")
	const kept, refused, both = "192.0.2.0/24", "203.0.113.0/24", "198.51.100.0/24"
	l := upBGP(t, "bgp-long-lived", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: restartFRR("10.200.0.1",
			" bgp graceful-restart restart-time 3\n bgp long-lived-graceful-restart stale-time 3600\n",
			"  network "+kept+"\n  network "+refused+"\n  network "+both+"\n  neighbor 10.200.0.4 route-map keep-short out\n")},
		{name: "other", n: nReflector, image: "frr", files: restartFRR("10.200.0.2",
			" bgp default local-preference 10\n", "  network "+both+"\n")},
		{name: "congestion", n: nCongestion},
	})
	router, other := l.at(nRouter).String(), l.at(nReflector).String()
	p := l.speaker("congestion", l.config(nCongestion,
		bgp.NeighborConfig{Address: l.at(nRouter), Passive: true, GracefulRestart: true, LongLivedRestart: time.Hour},
		bgp.NeighborConfig{Address: l.at(nReflector), Passive: true, GracefulRestart: true}))
	of := func(a speakertest.Answer, prefix, peer string) *pnc.Route {
		for _, r := range a.Of(prefix) {
			if r.Peer == peer {
				return &r
			}
		}
		return nil
	}
	a := p.Await("all routes", func(a speakertest.Answer) bool {
		return of(a, kept, router) != nil && of(a, refused, router) != nil && of(a, both, router) != nil && of(a, both, other) != nil
	})
	if r := of(a, both, router); !r.Best {
		t.Errorf("%+v", r)
	}
	if n := a.Neighbor(router); n.RestartTime != 3*time.Second || n.LongLivedTime != time.Hour {
		t.Errorf("what the router asks for: %s and %s", n.RestartTime, n.LongLivedTime)
	}
	l.killBGP("router")
	p.Await("the stale routes", func(a speakertest.Answer) bool {
		r, s := of(a, refused, router), of(a, both, router)
		return r != nil && r.Stale && s != nil && s.Stale && s.Best
	})
	a = p.Await("the long-lived route", func(a speakertest.Answer) bool {
		r := of(a, kept, router)
		return r != nil && r.LongLived
	})
	if r := of(a, kept, router); !r.Stale || !r.Best {
		t.Errorf("the only one there is: %+v", r)
	}
	if r, s := of(a, both, router), of(a, both, other); r == nil || r.Best || s == nil || !s.Best {
		t.Errorf("RFC 9494 section 4.3: the least preferred: %+v, %+v", r, s)
	}
	if r := of(a, refused, router); r != nil {
		t.Errorf("RFC 9494 section 4.2: NO_LLGR, and kept: %+v", r)
	}
	// The router is back long after the restart time.
	l.startBGP("router")
	p.Await("fresh routes", func(a speakertest.Answer) bool {
		r, s, u := of(a, kept, router), of(a, refused, router), of(a, both, router)
		return r != nil && !r.Stale && !r.LongLived && s != nil && !s.Stale && u != nil && u.Best && a.Neighbor(router).Stale == 0
	})
}

// The community of a speaker before counts as well (RFC 9494 section 4.3).
func TestBGPLongLivedRoutesOfASpeakerBeforeAreTheLeastPreferred(t *testing.T) {
	needFRR(t, "bgpd")
	mark := `route-map mark permit 10
 set community llgr-stale
`
	router := restartFRR("10.200.0.1", " bgp default local-preference 500\n", "  network 192.0.2.0/24\n  neighbor 10.200.0.4 route-map mark out\n")
	router["/etc/frr/frr.conf"] = mark + router["/etc/frr/frr.conf"]
	l := upBGP(t, "bgp-llgr-stale", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: router},
		{name: "other", n: nReflector, image: "frr", files: restartFRR("10.200.0.2", "", "  network 192.0.2.0/24\n")},
		{name: "congestion", n: nCongestion},
	})
	p := l.speaker("congestion", l.config(nCongestion,
		bgp.NeighborConfig{Address: l.at(nRouter), Passive: true, GracefulRestart: true, LongLivedRestart: time.Hour},
		bgp.NeighborConfig{Address: l.at(nReflector), Passive: true}))
	a := p.Await("both routes", func(a speakertest.Answer) bool { return len(a.Routes) == 2 })
	for _, r := range a.Routes {
		if marked := r.Peer == l.at(nRouter).String(); r.LongLived != marked || r.Best == marked || r.Stale {
			t.Errorf("%+v", r)
		}
	}
}
