package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/integration/lab"
)

// start starts a process in a node; the lab ends it.
func (l *bgpLab) start(node string, argv ...string) *lab.Process {
	l.t.Helper()
	p, err := l.Start(l.ctx, node, lab.Proc{Argv: argv})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if text, err := os.ReadFile(p.Log()); err == nil && l.t.Failed() {
			l.t.Logf("log of %v in %s:\n%s", argv, node, text)
		}
	})
	return p
}

// peerState is what FRR says about its session with us: the state, and how many connections it tried.
func (l *bgpLab) peerState(node, peer string) (state string, dropped int) {
	l.t.Helper()
	out := l.vtysh(node, "show bgp neighbors "+peer+" json")
	var all map[string]struct {
		BgpState           string
		ConnectionsDropped int
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	return all[peer].BgpState, all[peer].ConnectionsDropped
}

// Each router on the segment is wrong in one thing and must stay out; the one that is right comes in,
// over the same listener.
func TestBGPPeersWithoutTheKeyOrWithALowTTLStayDown(t *testing.T) {
	needFRR(t, "bgpd")
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(t *testing.T) {
			f := familyOf(v6)
			us := labAddr(v6, nProxy).String()
			frr := func(n int, as int, lines ...string) map[string]string {
				var b strings.Builder
				fmt.Fprintf(&b, "frr defaults traditional\nrouter bgp %d\n bgp router-id 10.200.0.%d\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n", as, n)
				fmt.Fprintf(&b, " neighbor %[1]s remote-as 65000\n neighbor %[1]s timers connect 1\n", us)
				for _, line := range lines {
					fmt.Fprintf(&b, " neighbor %s %s\n", us, line)
				}
				fmt.Fprintf(&b, " address-family %s unicast\n  neighbor %s activate\n exit-address-family\n", f.af, us)
				return map[string]string{"/etc/frr/frr.conf": b.String()}
			}
			l := upBGP(t, "bgp-secure"+map[bool]string{true: "6"}[v6], v6, []bgpNode{
				{name: "proxy", n: nProxy},
				{name: "key", n: 11, image: "frr", files: frr(11, 65000, "password secret")},
				{name: "nokey", n: 12, image: "frr", files: frr(12, 65000)},
				{name: "wrongkey", n: 13, image: "frr", files: frr(13, 65000, "password guess")},
				{name: "near", n: 14, image: "frr", files: frr(14, 65014, "ttl-security hops 1")},
				{name: "lowttl", n: 15, image: "frr", files: frr(15, 65015)}, // EBGP sends TTL 1
				{name: "far", n: 16, image: "frr", files: frr(16, 65016, "ebgp-multihop 254")},
			})
			cfg := l.config(nProxy,
				bgp.NeighborConfig{Address: l.at(11), Password: "secret", Passive: true},
				bgp.NeighborConfig{Address: l.at(12), Password: "secret"},
				bgp.NeighborConfig{Address: l.at(13), Password: "secret"},
				bgp.NeighborConfig{Address: l.at(14), PeerAS: 65014, TTLMin: 255, Passive: true},
				bgp.NeighborConfig{Address: l.at(15), PeerAS: 65015, TTLMin: 255},
				bgp.NeighborConfig{Address: l.at(16), PeerAS: 65016, TTLMin: 255},
			)
			p := l.speaker("proxy", cfg)
			p.AwaitUp(l.at(11).String())
			p.AwaitUp(l.at(14).String())
			// Both ends of the others have had time to try several times.
			tried := time.Now().Add(8 * time.Second)
			for time.Now().Before(tried) {
				got := p.Ask(speakertest.Request{})
				for _, n := range []int{12, 13, 15, 16} {
					st := got.Neighbor(l.at(n).String())
					if s := st.State.String(); s == "established" || s == "openconfirm" {
						t.Fatalf("%s came up: %+v", st.Address, st)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, name := range []string{"nokey", "wrongkey", "lowttl", "far"} {
				if s, _ := l.peerState(name, us); s == "Established" {
					t.Errorf("%s says that its session is established", name)
				}
			}
			got := p.Ask(speakertest.Request{})
			for _, n := range []int{12, 13} {
				if st := got.Neighbor(l.at(n).String()); !strings.Contains(st.LastError, "connect:") || !st.MD5 {
					t.Errorf("%s: the last error doesn't say that connecting fails: %+v", st.Address, st)
				}
			}
			if st := got.Neighbor(l.at(14).String()); st.TTLMin != 255 || st.Flaps != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestBGPGracefulRestartOfARouterKeepsItsRoutesAsStale(t *testing.T) {
	needFRR(t, "bgpd")
	conf := `frr defaults traditional
router bgp 65000
 bgp router-id 10.200.0.1
 bgp graceful-restart
 bgp graceful-restart restart-time 60
 bgp graceful-restart preserve-fw-state
 no bgp network import-check
 neighbor 10.200.0.4 remote-as 65000
 neighbor 10.200.0.4 timers connect 1
 address-family ipv4 unicast
  network 192.0.2.0/24
  network 198.51.100.0/24
 exit-address-family
`
	l := upBGP(t, "bgp-restart", false, []bgpNode{
		{name: "router", n: nRouter, image: "frr", files: map[string]string{
			"/etc/frr/frr.conf": conf, "/etc/frr/one.conf": strings.Replace(conf, "  network 198.51.100.0/24\n", "", 1)}},
		{name: "congestion", n: nCongestion},
	})
	p := l.speaker("congestion", l.config(nCongestion, bgp.NeighborConfig{Address: l.at(nRouter), Passive: true, GracefulRestart: true}))
	both := func(stale bool) func(speakertest.Answer) bool {
		return func(a speakertest.Answer) bool {
			return len(a.Routes) == 2 && a.Routes[0].Stale == stale && a.Routes[1].Stale == stale && a.Routes[0].Best
		}
	}
	p.Await("routes", both(false))
	for _, d := range l.Programs("router") {
		if d.Name() == "bgpd" {
			d.Kill()
		}
	}
	p.Await("stale routes", both(true))
	l.start("router", "/usr/lib/frr/bgpd", "-A", "127.0.0.1", "--log", "stdout")
	l.eventually("bgpd to answer", func() string {
		if _, err := l.Exec(l.ctx, "router", "vtysh", "-c", "show bgp summary"); err != nil {
			return err.Error()
		}
		return ""
	})
	// The router comes back with one of its prefixes only: End-of-RIB takes the other along.
	l.run("router", "vtysh", "-f", "/etc/frr/one.conf")
	p.Await("the refreshed route alone", func(a speakertest.Answer) bool {
		return len(a.Routes) == 1 && !a.Routes[0].Stale && a.Routes[0].Prefix.String() == "192.0.2.0/24"
	})
	if n := p.Ask(speakertest.Request{}).Neighbors[0]; n.Flaps != 2 {
		t.Errorf("%+v", n)
	}
}
