package integration

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
)

// ownLab is pncd as a proxy, FRR as its reflector, and pncd as a congestion node that learns by it.
type ownLab struct {
	*bgpLab
	congestion *speakertest.Process
}

const ownPrefix = "192.0.2.0/24"

// upOwn brings it up; the router, an FRR, announces the prefix to the proxy when it is wanted.
func upOwn(t *testing.T, name string, router bool) *ownLab {
	t.Helper()
	needFRR(t, "bgpd")
	nodes := []bgpNode{
		{name: "reflector", n: nReflector, image: "frr", files: map[string]string{
			"/etc/frr/frr.conf": strings.Replace(preferFRR(t, familyOf(false), "reflector", nReflector, []int{nProxy, nCongestion}, ""),
				" no bgp default", " bgp graceful-restart\n bgp graceful-restart stalepath-time 300\n no bgp default", 1)}},
		{name: "proxy", n: nProxy},
		{name: "congestion", n: nCongestion},
	}
	if router {
		nodes = append(nodes, bgpNode{name: "router", n: nRouter, image: "frr", files: map[string]string{
			"/etc/frr/frr.conf": preferFRR(t, familyOf(false), "router", nRouter, []int{nProxy}, "  network "+ownPrefix+"\n")}})
	}
	l := &ownLab{bgpLab: upBGP(t, name, false, nodes)}
	l.congestion = l.speaker("congestion", l.config(nCongestion, bgp.NeighborConfig{Address: l.at(nReflector), Passive: true}))
	return l
}

// proxy starts the proxy's pncd.
func (l *ownLab) proxy(r bgp.OwnRestart, edit func(*bgp.Config)) *speakertest.Process {
	l.t.Helper()
	cfg := l.config(nProxy, bgp.NeighborConfig{Address: l.at(nReflector), GracefulRestart: true})
	cfg.Restart = r
	cfg.Originate = []bgp.OriginateConfig{{Prefix: netip.MustParsePrefix(ownPrefix), Proxy: netip.MustParseAddr(proxyAddr), NextHop: l.at(nProxy)}}
	if edit != nil {
		edit(&cfg)
	}
	p := l.speaker("proxy", cfg)
	on := true
	p.Must(speakertest.Request{Enable: &on})
	return p
}

// kill ends the proxy's pncd as a crash would.
func (l *ownLab) kill() {
	l.t.Helper()
	l.speakers["proxy"].Kill()
}

// atReflector is what the reflector has of the prefix: fresh, stale or nothing.
func (l *ownLab) atReflector() string {
	l.t.Helper()
	var out struct {
		Paths []struct{ Stale bool }
	}
	text := l.vtysh("reflector", "show bgp ipv4 unicast "+ownPrefix+" json")
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		l.t.Fatalf("%v: %s", err, text)
	}
	switch {
	case len(out.Paths) == 0:
		return "nothing"
	case out.Paths[0].Stale:
		return "stale"
	}
	return "fresh"
}

func (l *ownLab) awaitReflector(want string) {
	l.t.Helper()
	l.eventually(want+" at the reflector", func() string {
		if got := l.atReflector(); got != want {
			return got
		}
		return ""
	})
}

// told is how many UPDATEs the reflector has sent to the congestion node.
func (l *ownLab) told() int {
	l.t.Helper()
	var out map[string]struct {
		MessageStats struct{ UpdatesSent int }
	}
	peer := l.at(nCongestion).String()
	text := l.vtysh("reflector", "show bgp neighbors "+peer+" json")
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		l.t.Fatalf("%v: %s", err, text)
	}
	return out[peer].MessageStats.UpdatesSent
}

func (l *ownLab) believed() {
	l.t.Helper()
	l.congestion.Await("PNC at the congestion node", speakertest.Believes(ownPrefix, proxyAddr))
}

func (l *ownLab) unheard() {
	l.t.Helper()
	l.congestion.Await("no route at the congestion node", func(a speakertest.Answer) bool { return len(a.Routes) == 0 })
}

func TestBGPAnnouncementsOutliveACrashOfPncd(t *testing.T) {
	l := upOwn(t, "bgp-own-crash", false)
	r := bgp.OwnRestart{Enabled: true, Time: 90 * time.Second}
	l.proxy(r, nil)
	l.believed()
	told := l.told()
	l.kill()
	l.awaitReflector("stale")
	r.Restarted = true
	l.proxy(r, nil)
	l.awaitReflector("fresh")
	l.eventually("an OPEN with the R bit, and End-of-RIB", func() string {
		out := l.vtysh("reflector", "show bgp ipv4 neighbors "+l.at(nProxy).String()+" graceful-restart json")
		flat := strings.Join(strings.Fields(out), "")
		if !strings.Contains(flat, `"rBit":true`) || !strings.Contains(flat, `"endOfRibRecv":true`) {
			return out
		}
		return ""
	})
	l.believed()
	if now := l.told(); now != told {
		t.Errorf("the congestion node was told of the restart: %d UPDATEs, %d before", now, told)
	}
	// What is not announced any more goes after End-of-RIB.
	l.kill()
	l.awaitReflector("stale")
	l.proxy(r, func(c *bgp.Config) { c.Originate = nil })
	l.awaitReflector("nothing")
	l.unheard()
}

func TestBGPAnnouncementsGoWithACrashWithoutGracefulRestart(t *testing.T) {
	l := upOwn(t, "bgp-own-plain", false)
	l.proxy(bgp.OwnRestart{}, nil)
	l.believed()
	l.kill()
	l.unheard()
	l.awaitReflector("nothing")
}

func TestBGPACleanStopWithdrawsUnlessItIsToldToKeep(t *testing.T) {
	l := upOwn(t, "bgp-own-stop", false)
	r := bgp.OwnRestart{Enabled: true, Time: 90 * time.Second}
	p := l.proxy(r, nil)
	l.believed()
	p.Must(speakertest.Request{Stop: true})
	l.awaitReflector("nothing")
	l.unheard()
	r.Keep = true
	p = l.proxy(r, nil)
	l.believed()
	told := l.told()
	p.Must(speakertest.Request{Stop: true})
	l.awaitReflector("stale")
	r.Restarted = true
	l.proxy(r, nil)
	l.awaitReflector("fresh")
	l.believed()
	if now := l.told(); now != told {
		t.Errorf("the congestion node was told of the restart: %d UPDATEs, %d before", now, told)
	}
}

// A copy of a router's path can be announced only once the router is back: the reflector waits for it.
func TestBGPEndOfRIBWaitsForTheRoutersPath(t *testing.T) {
	l := upOwn(t, "bgp-own-defer", true)
	follow := func(c *bgp.Config) {
		n := bgp.NeighborConfig{Address: l.at(nRouter), PeerAS: 65000, GracefulRestart: true, ConnectRetry: time.Second}
		no := false
		n.SendNHC = &no
		c.Neighbors = append(c.Neighbors, n)
		c.Originate[0] = bgp.OriginateConfig{Prefix: c.Originate[0].Prefix, Proxy: c.Originate[0].Proxy, Mode: bgp.ModeInline, From: l.at(nRouter)}
	}
	session := func(word string) {
		l.vtysh("router", "configure terminal", "router bgp 65000", word+"neighbor "+l.at(nProxy).String()+" shutdown")
	}
	r := bgp.OwnRestart{Enabled: true, Time: 90 * time.Second, Deferral: 60 * time.Second}
	l.proxy(r, follow)
	l.believed()
	told := l.told()
	l.kill()
	session("")
	l.awaitReflector("stale")
	r.Restarted = true
	p := l.proxy(r, follow)
	p.AwaitUp(l.at(nReflector).String())
	// The reflector has said all that it has, and would drop the path at End-of-RIB.
	l.eventually("the session at the reflector", func() string {
		if s, _ := l.peerState("reflector", l.at(nProxy).String()); s != "Established" {
			return s
		}
		return ""
	})
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if got := l.atReflector(); got != "stale" {
			t.Fatalf("%s at the reflector before the router is back", got)
		}
	}
	session("no ")
	l.awaitReflector("fresh")
	l.believed()
	if now := l.told(); now != told {
		t.Errorf("the congestion node was told of the restart: %d UPDATEs, %d before", now, told)
	}
	// And not for ever.
	l.kill()
	session("")
	l.awaitReflector("stale")
	r.Deferral = 3 * time.Second
	l.proxy(r, follow)
	l.awaitReflector("nothing")
	l.unheard()
}
