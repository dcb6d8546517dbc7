package bgp_test

import (
	"strings"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

const (
	atA = "127.0.0.21"
	atB = "127.0.0.22"
	atC = "127.0.0.23"
)

func originate(p, proxy, nextHop string) bgp.OriginateConfig {
	return bgp.OriginateConfig{Prefix: prefix(p), Proxy: addr(proxy), NextHop: addr(nextHop)}
}

func TestOriginateIsLearnedAndFollowsTheSwitch(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), Passive: true})
	cfg.Originate = []bgp.OriginateConfig{
		originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1"),
		originate("2001:db8:7::/48", "2001:db8::7", "2001:db8::1"),
		originate("203.0.113.0/24", "2001:db8::7", "198.51.100.1"), // a proxy of the other family
	}
	a := start(t, cfg)
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA)}))
	a.AwaitUp(atB)
	if got := b.AwaitUp(atA); len(got.Routes) != 0 {
		t.Errorf("with the mechanism off there are routes: %+v", got.Routes)
	}
	for range 2 {
		got := a.Must(request{Enable: ptr(true)})
		for _, ad := range got.Advertisements {
			if !ad.Active || !ad.Configured {
				t.Errorf("on, but %+v", ad)
			}
		}
		b.Await("IPv4", believes("192.0.2.0/24", atA, "198.51.100.7"))
		b.Await("IPv6", believes("2001:db8:7::/48", atA, "2001:db8::7"))
		last := b.Await("mixed", believes("203.0.113.0/24", atA, "2001:db8::7"))
		r := route(last, "192.0.2.0/24", atA)
		if r.NextHop != addr("198.51.100.1") || r.Partial || !r.Best || r.Stale || r.Originator != atA || r.Source != pnc.SourceBGP {
			t.Errorf("learned %+v", r)
		}
		got = a.Must(request{Enable: ptr(false)})
		for _, ad := range got.Advertisements {
			if ad.Active || ad.Announced || ad.InactiveReason != "disabled" {
				t.Errorf("off, but %+v", ad)
			}
		}
		b.Await("withdrawal", func(a answer) bool { return len(a.Routes) == 0 })
	}
}

// B must not pass on what A announced, whatever else B announces to C.
func TestWhatWasLearnedFromAPeerIsNeverExported(t *testing.T) {
	t.Parallel()
	for name, as := range map[string][3]uint32{
		"IBGP":         {65000, 65000, 65000},
		"EBGP to IBGP": {65001, 65000, 65000},
		"IBGP to EBGP": {65000, 65000, 65002},
		"EBGP to EBGP": {65001, 65000, 65002},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			allow := bgp.NeighborConfig{AcceptEBGP: true, SendNHC: ptr(true)}
			peer := func(at string, as uint32) bgp.NeighborConfig {
				n := allow
				n.Address, n.PeerAS = addr(at), as
				return n
			}
			cfgA := node(port, as[0], atA, peer(atB, as[1]))
			cfgA.Originate = []bgp.OriginateConfig{originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1")}
			cfgB := node(port, as[1], atB, peer(atA, as[0]), peer(atC, as[2]))
			cfgB.Originate = []bgp.OriginateConfig{originate("203.0.113.0/24", "198.51.100.9", "198.51.100.2")}
			a, b := start(t, cfgA), start(t, cfgB)
			c := start(t, node(port, as[2], atC, peer(atB, as[1])))
			a.Must(request{Enable: ptr(true)})
			b.Await("A's route at B", believes("192.0.2.0/24", atA, "198.51.100.7"))
			b.AwaitUp(atC)
			b.Must(request{Enable: ptr(true)})
			// Updates arrive in order, so A's route would be there when B's own is.
			got := c.Await("B's own route at C", believes("203.0.113.0/24", atB, "198.51.100.9"))
			if len(got.Routes) != 1 {
				t.Errorf("C knows more than B's own route: %+v", got.Routes)
			}
			// The session begins again with A's route in B's hands from the start.
			c.Must(request{Stop: true})
			c = start(t, node(port, as[2], atC, peer(atB, as[1])))
			got = c.Await("B's own route at C again", believes("203.0.113.0/24", atB, "198.51.100.9"))
			if len(got.Routes) != 1 {
				t.Errorf("C knows more than B's own route after a restart: %+v", got.Routes)
			}
		})
	}
}

func TestEBGPIsDeniedInBothDirectionsByDefault(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfgA := node(port, 65001, atA,
		bgp.NeighborConfig{Address: addr(atB), PeerAS: 65000, SendNHC: ptr(true)}, // A sends
		bgp.NeighborConfig{Address: addr(atC), PeerAS: 65002})                     // A does not
	cfgA.Originate = []bgp.OriginateConfig{originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1")}
	a := start(t, cfgA)
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA), PeerAS: 65001}))
	c := start(t, node(port, 65002, atC, bgp.NeighborConfig{Address: addr(atA), PeerAS: 65001, AcceptEBGP: true}))
	a.Must(request{Enable: ptr(true)})
	c.AwaitUp(atA)
	got := b.Await("the PNC that is not believed, counted", func(a answer) bool {
		return len(a.Disregarded) > 0 && a.Neighbors[0].Disregarded[pnc.DisregardEBGPNotAllowed] > 0
	})
	ev := got.Disregarded[0]
	if ev.Reason != pnc.DisregardEBGPNotAllowed || ev.Route.Proxy != addr("198.51.100.7") || ev.Kind != pnc.EventDisregarded {
		t.Errorf("disregarded %+v", ev)
	}
	if len(got.Routes) != 0 {
		t.Errorf("B took in routes: %+v", got.Routes)
	}
	if n := got.Neighbors[0].Disregarded[pnc.DisregardEBGPNotAllowed]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	// A has sent to B by now. To C it was told not to.
	st := a.Await("C's session at A", func(x answer) bool { return x.Up(atC) })
	for _, n := range st.Neighbors {
		if n.Address == addr(atC) && (n.SendNHC || n.Advertised != 0) {
			t.Errorf("A announces to C: %+v", n)
		}
	}
	if got := c.Ask(request{}); len(got.Routes) != 0 {
		t.Errorf("C got routes: %+v", got.Routes)
	}
}

func TestStopWithdrawsBeforeItCloses(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), GracefulRestart: true})
	for _, p := range []string{"192.0.2.0/24", "203.0.113.0/24"} {
		cfg.Originate = append(cfg.Originate, originate(p, "198.51.100.7", "198.51.100.1"))
	}
	a := start(t, cfg)
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA), GracefulRestart: true}))
	a.Must(request{Enable: ptr(true)})
	b.Await("routes", func(x answer) bool { return len(x.Routes) == 2 })
	a.Must(request{Stop: true})
	b.Await("withdrawal", func(x answer) bool { return len(x.Routes) == 0 })
	// A withdrawal, not only the session's end, took them away: the debug log shows what came in.
	if !strings.Contains(b.Log(), "withdrawals=\"[192.0.2.0/24") {
		t.Errorf("no withdrawal was received:\n%s", b.Log())
	}
}

func TestAdvertiseAndWithdrawAtRunTime(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB)})
	cfg.Originate = []bgp.OriginateConfig{originate("203.0.113.0/24", "198.51.100.7", "198.51.100.1")}
	a := start(t, cfg)
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA)}))
	ad := originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1")
	for name, tt := range map[string]struct {
		req  request
		want string
	}{
		"advertise while off":  {request{Advertise: &ad}, "disabled"},
		"withdraw nothing":     {request{Withdraw: ptr(ad.Prefix)}, "not advertised"},
		"withdraw configured":  {request{Withdraw: ptr(prefix("203.0.113.0/24"))}, "by configuration"},
		"host bits":            {request{Advertise: ptr(originate("192.0.2.1/24", "198.51.100.7", "198.51.100.1"))}, "host bits"},
		"proxy is multicast":   {request{Advertise: ptr(originate("192.0.2.0/24", "224.0.0.1", "198.51.100.1"))}, "unicast"},
		"next hop unspecified": {request{Advertise: ptr(originate("192.0.2.0/24", "198.51.100.7", "0.0.0.0"))}, "next hop"},
	} {
		if got := a.Ask(tt.req); !strings.Contains(got.Error, tt.want) {
			t.Errorf("%s: %q, want %q", name, got.Error, tt.want)
		}
	}
	a.Must(request{Enable: ptr(true)})
	if got := a.Ask(request{Advertise: ptr(originate("203.0.113.0/24", "198.51.100.8", "198.51.100.1"))}); !strings.Contains(got.Error, "by configuration") {
		t.Errorf("a configured prefix was taken over: %q", got.Error)
	}
	a.Must(request{Advertise: &ad})
	b.Await("advertised", believes("192.0.2.0/24", atA, "198.51.100.7"))
	ad.Proxy = addr("198.51.100.8")
	a.Must(request{Advertise: &ad})
	b.Await("replaced", believes("192.0.2.0/24", atA, "198.51.100.8"))
	a.Must(request{Withdraw: &ad.Prefix})
	b.Await("withdrawn", func(x answer) bool { return route(x, "192.0.2.0/24", atA) == nil && len(x.Routes) == 1 })
}

func TestReconfigureTouchesOnlyTheSessionsThatChanged(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	keep := bgp.NeighborConfig{Address: addr(atB)}
	cfg := node(port, 65000, atA, keep, bgp.NeighborConfig{Address: addr(atC)})
	cfg.Originate = []bgp.OriginateConfig{originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1")}
	a := start(t, cfg)
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA)}))
	c := start(t, node(port, 65000, atC, bgp.NeighborConfig{Address: addr(atA)}))
	a.Must(request{Enable: ptr(true)})
	b.Await("B learns", believes("192.0.2.0/24", atA, "198.51.100.7"))
	c.Await("C learns", believes("192.0.2.0/24", atA, "198.51.100.7"))
	a.AwaitUp(atB)
	a.AwaitUp(atC)

	// Refused as a whole.
	for name, tt := range map[string]struct {
		change func(*bgp.Config)
		want   string
	}{
		"port":      {func(c *bgp.Config) { c.ListenPort++ }, "needs a restart"},
		"router ID": {func(c *bgp.Config) { c.RouterID = addr("192.0.2.99") }, "needs a restart"},
		"hold time": {func(c *bgp.Config) {
			c.Neighbors = append(c.Neighbors, node(port, 65000, atA, bgp.NeighborConfig{Address: addr("127.0.0.99"), HoldTime: 1}).Neighbors...)
		}, "hold time"},
	} {
		bad := cfg
		bad.Originate = nil
		tt.change(&bad)
		if got := a.Ask(request{Configure: &bad}); !strings.Contains(got.Error, tt.want) {
			t.Errorf("%s: %q, want %q", name, got.Error, tt.want)
		} else if len(got.Advertisements) != 1 || !got.Advertisements[0].Active {
			t.Errorf("%s: refused, but something changed: %+v", name, got.Advertisements)
		}
	}

	// B stays and gets another description; C stops getting announcements; a prefix comes.
	next := node(port, 65000, atA, keep, bgp.NeighborConfig{Address: addr(atC), SendNHC: ptr(false)})
	next.Neighbors[0].Description = "the one that stays"
	next.Originate = []bgp.OriginateConfig{originate("203.0.113.0/24", "198.51.100.7", "198.51.100.1")}
	a.Must(request{Configure: &next})
	b.Await("the change at B", func(x answer) bool {
		return believes("203.0.113.0/24", atA, "198.51.100.7")(x) && len(x.Routes) == 1
	})
	a.AwaitUp(atC)
	got := c.Await("nothing at C", func(x answer) bool { return x.Up(atA) && len(x.Routes) == 0 })
	if n := got.Neighbors[0]; n.Flaps != 2 {
		t.Errorf("C's session came up %d times, want 2", n.Flaps)
	}
	got = b.Ask(request{})
	if n := got.Neighbors[0]; n.Flaps != 1 {
		t.Errorf("B's session came up %d times, want 1", n.Flaps)
	}
	got = a.Ask(request{})
	if got.Neighbors[0].Description != "the one that stays" || got.Neighbors[0].Flaps != 1 {
		t.Errorf("at A: %+v", got.Neighbors[0])
	}

	// C goes altogether.
	next.Neighbors = next.Neighbors[:1]
	if got := a.Must(request{Configure: &next}); len(got.Neighbors) != 1 {
		t.Errorf("neighbours %+v", got.Neighbors)
	}
	c.Await("C's session ends", func(x answer) bool { return !x.Up(atA) })
	if got := b.Ask(request{}); got.Neighbors[0].Flaps != 1 || len(got.Routes) != 1 {
		t.Errorf("B was touched: %+v", got.Neighbors[0])
	}
}

func TestASessionWithAKeyStaysDownWithoutTheSameKey(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b string
		up   bool
	}{
		"same key":    {"secret", "secret", true},
		"no key":      {"secret", "", false},
		"another key": {"secret", "guess", false},
	} {
		for _, passive := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", passive", false: ", active"}[passive], func(t *testing.T) {
				t.Parallel()
				port := freePort(t)
				a := start(t, exactly(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), Password: tt.a, Passive: passive}))
				b := start(t, exactly(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA), Password: tt.b, Passive: !passive}))
				if tt.up {
					if got := a.AwaitUp(atB); !got.Neighbors[0].MD5 {
						t.Error("MD5 isn't shown")
					}
					b.AwaitUp(atA)
					return
				}
				// The one that connects has tried, and failed, and says so.
				active := map[bool]*process{true: b, false: a}[passive]
				active.Await("a failed connection", func(x answer) bool {
					if x.Up(atA) || x.Up(atB) {
						t.Fatal("the session came up")
					}
					return strings.Contains(x.Neighbors[0].LastError, "connect:")
				})
			})
		}
	}
}

func TestASessionWithTTLSecurityStaysDownWithALowTTL(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ttlB uint8 // TTL security at B makes it send 255; else an EBGP session sends 1
		up   bool
	}{
		"both ends": {255, true},
		"one end":   {0, false},
	} {
		for _, passive := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", passive", false: ", active"}[passive], func(t *testing.T) {
				t.Parallel()
				port := freePort(t)
				a := start(t, exactly(port, 65001, atA, bgp.NeighborConfig{Address: addr(atB), PeerAS: 65002, TTLMin: 255, Passive: passive}))
				b := start(t, exactly(port, 65002, atB, bgp.NeighborConfig{Address: addr(atA), PeerAS: 65001, TTLMin: tt.ttlB, Passive: !passive}))
				if tt.up {
					if got := a.AwaitUp(atB); got.Neighbors[0].TTLMin != 255 {
						t.Error("the minimum TTL isn't shown")
					}
					b.AwaitUp(atA)
					return
				}
				if passive {
					b.Await("a failed connection", func(x answer) bool {
						return strings.Contains(x.Neighbors[0].LastError, "connect:")
					})
				} else {
					// A connects, B answers with its OPEN and KEEPALIVE, which A must not get.
					b.Await("B's answer", func(x answer) bool { return x.Neighbors[0].State.String() == "openconfirm" })
				}
				for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					if s := a.Ask(request{}).Neighbors[0].State.String(); s == "openconfirm" || s == "established" {
						t.Fatalf("A took in what came with a low TTL: %s", s)
					}
				}
			})
		}
	}
}

func TestRemovingAKeyByReconfigurationLetsThePeerInWithout(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	a := start(t, node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), Password: "secret", Passive: true}))
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA), ConnectRetry: time.Second}))
	b.Await("a failed connection", func(x answer) bool { return strings.Contains(x.Neighbors[0].LastError, "connect:") })
	open := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), Passive: true})
	a.Must(request{Configure: &open})
	a.AwaitUp(atB)
}

func TestOnlyConfiguredPeersGetASession(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	a := start(t, node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atC), Passive: true}))
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA)}))
	b.Await("the connection is closed", func(x answer) bool {
		if x.Up(atA) {
			t.Fatal("the session came up")
		}
		return strings.Contains(x.Neighbors[0].LastError, "ended before an OPEN") && strings.Contains(a.Log(), "no neighbour")
	})
}

func TestATakenPortIsAnErrorThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	start(t, node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB)}))
	_, refused := speakertest.Launch(t, node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB)}), speakertest.Here)
	if !strings.Contains(refused, "can't listen") || !strings.Contains(refused, "another BGP daemon") {
		t.Errorf("refused with %q", refused)
	}
}
