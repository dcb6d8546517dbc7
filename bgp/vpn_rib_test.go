package bgp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/bgp/engine"
	"pncd/pnc"
)

const (
	vpnHead4 = "0001 80 04 c6336401"                  // next hop 198.51.100.1
	vpnRD4   = "0001 80 0c 0000fde800000001 c6336401" // the same with a route distinguisher
	vpnHead6 = "0002 80 10 20010db8000000000000000000000001"
	vpnRD6   = "0002 80 18 0000fde800000001 20010db8000000000000000000000001"
)

func target(t testing.TB, s string) RouteTarget {
	t.Helper()
	rt, err := ParseRouteTarget(s)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func distinguisher(t testing.TB, s string) RD {
	t.Helper()
	rd, err := ParseRD(s)
	if err != nil {
		t.Fatal(err)
	}
	return rd
}

func importing(t testing.TB, name string, targets ...string) ContextConfig {
	c := ContextConfig{Name: name}
	for _, s := range targets {
		c.Import = append(c.Import, target(t, s))
	}
	return c
}

// newVPNTable has blue, which imports 65000:100, and red, which imports 65000:200 and 65000:300.
func newVPNTable(t *testing.T) *table {
	tb := newTable(t)
	out, again := tb.r.importing([]ContextConfig{importing(t, "blue", "65000:100"), importing(t, "red", "65000:200", "65000:300")})
	if tb.take(out); !again {
		t.Error("new imports need to see what was there before")
	}
	return tb
}

// vpnEvent announces pfx in a VPN with the PNC 192.0.2.7.
func vpnEvent(t *testing.T, rd, rt string, edit func(*engine.Event)) engine.Event {
	ev := pathEvent(t, peer1, 0, nil)
	ev.Family, ev.Path.RD, ev.Path.NHC = engine.IPv4VPN, distinguisher(t, rd), unhex(t, vpnHead4+pnc7)
	ev.Path.Targets = []RouteTarget{target(t, rt)}
	if edit != nil {
		edit(&ev)
	}
	return ev
}

func vpnWithdrawal(t *testing.T, rd string) engine.Event {
	return engine.Event{Kind: engine.EventPath, Peer: peer1, Family: engine.IPv4VPN,
		Path: engine.Path{Prefix: pfx, RD: distinguisher(t, rd), Withdrawn: true}}
}

// in lists the route distinguishers of a context's routes, sorted, those of believed ones with a +.
func (tb *table) in(context string) string {
	var out []string
	for id, r := range tb.routes {
		if id.Context == context {
			out = append(out, id.RD+map[bool]string{true: "+"}[r.Believed()])
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (tb *table) expect(t *testing.T, what string, want map[string]string) {
	t.Helper()
	for context, rds := range want {
		if got := tb.in(context); got != rds {
			t.Errorf("%s: context %q has %q, want %q", what, context, got, rds)
		}
	}
}

func TestAVPNRouteGoesIntoEveryContextThatImportsItAndNoOther(t *testing.T) {
	tb := newVPNTable(t)
	tb.apply(vpnEvent(t, "65000:1", "65000:100", nil))
	tb.expect(t, "one target", map[string]string{"blue": "65000:1+", "red": "", "": ""})
	both := vpnEvent(t, "65000:2", "65000:100", func(ev *engine.Event) {
		ev.Path.Targets = append(ev.Path.Targets, target(t, "65000:300"), target(t, "65000:999"))
	})
	tb.apply(both)
	tb.expect(t, "two targets", map[string]string{"blue": "65000:1+ 65000:2+", "red": "65000:2+", "": ""})
	tb.apply(vpnEvent(t, "65000:3", "65000:999", nil), vpnEvent(t, "65000:4", "65000:100", func(ev *engine.Event) { ev.Path.Targets = nil }))
	tb.expect(t, "no context", map[string]string{"blue": "65000:1+ 65000:2+", "red": "65000:2+", "": ""})
	if tb.r.unmatched != 2 || tb.r.vpnPrefixes() != 2 {
		t.Errorf("%d counted without a context, %d prefixes kept", tb.r.unmatched, tb.r.vpnPrefixes())
	}
	// Its targets change: it moves.
	tb.apply(vpnEvent(t, "65000:1", "65000:200", nil))
	tb.expect(t, "another target", map[string]string{"blue": "65000:2+", "red": "65000:1+ 65000:2+"})
	// To none.
	tb.apply(vpnEvent(t, "65000:1", "65000:999", nil))
	tb.expect(t, "a target nobody imports", map[string]string{"blue": "65000:2+", "red": "65000:2+"})
	tb.apply(vpnWithdrawal(t, "65000:2"), vpnWithdrawal(t, "65000:3"))
	tb.expect(t, "withdrawn", map[string]string{"blue": "", "red": ""})
}

func TestEqualPrefixesOfTwoVPNsAndOfNoneAreApart(t *testing.T) {
	tb := newVPNTable(t)
	tb.apply(pathEvent(t, peer1, 0, nil), vpnEvent(t, "65000:1", "65000:100", nil), vpnEvent(t, "65000:2", "65000:200", nil))
	tb.expect(t, "three", map[string]string{"blue": "65000:1+", "red": "65000:2+", "": "+"})
	tb.apply(vpnWithdrawal(t, "65000:1"))
	tb.expect(t, "blue withdrawn", map[string]string{"blue": "", "red": "65000:2+", "": "+"})
	tb.apply(withdrawal(peer1, 0))
	tb.expect(t, "unicast withdrawn", map[string]string{"blue": "", "red": "65000:2+", "": ""})
}

// As in a router's VRF: the route distinguisher keeps routes apart on the way, not in the context.
func TestAContextHasOneBestPathAcrossRouteDistinguishers(t *testing.T) {
	tb := newVPNTable(t)
	tb.apply(vpnEvent(t, "65000:1", "65000:100", nil),
		vpnEvent(t, "65000:2", "65000:100", func(ev *engine.Event) { ev.Path.LocalPref, ev.Path.HasNHC = 200, false }))
	best := ""
	for id, r := range tb.routes {
		if r.Best {
			best += id.RD
		}
	}
	if best != "65000:2" {
		t.Errorf("best: %q", best)
	}
	tb.apply(vpnWithdrawal(t, "65000:2"))
	for id, r := range tb.routes {
		if !r.Best || id.RD != "65000:1" {
			t.Errorf("left: %+v", r)
		}
	}
}

func TestTheHeaderOfAVPNRouteMayHaveARouteDistinguisher(t *testing.T) {
	v6 := func(ev *engine.Event) {
		ev.Family, ev.Path.Prefix, ev.Path.NextHop = engine.IPv6VPN, prefix("2001:db8:7::/48"), addr("2001:db8::1")
	}
	for name, tt := range map[string]struct {
		nhc    string
		edit   func(*engine.Event)
		reason pnc.DisregardReason
	}{
		"VPNv4 without":                    {vpnHead4, nil, 0},
		"VPNv4 with":                       {vpnRD4, nil, 0},
		"VPNv6 without":                    {vpnHead6, v6, 0},
		"VPNv6 with":                       {vpnRD6, v6, 0},
		"VPNv6 over IPv4":                  {"0002 80 04 c6336401", func(ev *engine.Event) { v6(ev); ev.Path.NextHop = addr("::ffff:198.51.100.1") }, 0},
		"VPNv6 over IPv4, mapped":          {"0002 80 10 00000000000000000000ffffc6336401", func(ev *engine.Event) { v6(ev); ev.Path.NextHop = addr("198.51.100.1") }, 0},
		"SAFI of unicast":                  {head4, nil, pnc.DisregardNextHopMismatch},
		"AFI of the other family":          {vpnHead4, v6, pnc.DisregardNextHopMismatch},
		"another next hop behind the RD":   {"0001 80 0c 0000fde800000001 c6336402", nil, pnc.DisregardNextHopMismatch},
		"next hop of 10 octets":            {"0001 80 0a 0000fde80000000100 c6", nil, pnc.DisregardMalformedAttribute},
		"VPN header on a unicast route":    {vpnHead4, func(ev *engine.Event) { ev.Family = engine.IPv4Unicast }, pnc.DisregardNextHopMismatch},
		"RD in the header of unicast SAFI": {"0001 01 0c 0000fde800000001 c6336401", nil, pnc.DisregardMalformedAttribute},
	} {
		tb := newVPNTable(t)
		tb.apply(vpnEvent(t, "65000:1", "65000:100", func(ev *engine.Event) {
			ev.Path.NHC = unhex(t, tt.nhc+pnc7)
			if tt.edit != nil {
				tt.edit(ev)
			}
		}))
		if len(tb.routes) != 1 {
			t.Fatalf("%s: the route must stay whatever its attribute: %+v", name, tb.routes)
		}
		for _, r := range tb.routes {
			if r.Disregarded != tt.reason || r.Believed() != (tt.reason == 0) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if n := tb.r.total[tt.reason]; (tt.reason != 0) != (n == 1 && len(tb.events) == 1) {
			t.Errorf("%s: counted %d, %d events", name, n, len(tb.events))
		}
	}
}

func TestAnUnwantedVPNRouteIsNotTakenIn(t *testing.T) {
	tb := newVPNTable(t)
	tb.r.peers[peer2].accept = false
	tb.apply(vpnEvent(t, "65000:1", "65000:100", func(ev *engine.Event) { ev.Peer = peer2 }),
		vpnEvent(t, "65000:2", "65000:100", func(ev *engine.Event) { ev.Path.OwnAS = 1 }),
		vpnEvent(t, "65000:3", "65000:100", func(ev *engine.Event) { ev.Path.OriginatorID = addr("192.0.2.99") }))
	if len(tb.routes) != 0 || tb.r.total[pnc.DisregardEBGPNotAllowed] != 1 || tb.r.unmatched != 0 {
		t.Errorf("routes %+v, disregarded %v, unmatched %d", tb.routes, tb.r.total, tb.r.unmatched)
	}
	// What loops now replaces what did not.
	tb.apply(vpnEvent(t, "65000:4", "65000:100", nil))
	tb.apply(vpnEvent(t, "65000:4", "65000:100", func(ev *engine.Event) { ev.Path.OwnAS = 1 }))
	tb.expect(t, "looped", map[string]string{"blue": ""})
}

func TestEndOfRIBDropsStalePathsOfItsFamilyOnly(t *testing.T) {
	tb := newVPNTable(t)
	v6 := func(ev *engine.Event) { ev.Family, ev.Path.Prefix = engine.IPv6VPN, prefix("2001:db8:7::/48") }
	all := engine.FamilyRestart{Graceful: true, Preserved: true}
	open := engine.Restart{Offered: true, Time: time.Minute, Families: map[engine.Family]engine.FamilyRestart{
		engine.IPv4Unicast: all, engine.IPv4VPN: all, engine.IPv6VPN: all}}
	tb.apply(up(open, false), pathEvent(t, peer1, 0, nil),
		vpnEvent(t, "65000:1", "65000:100", nil), vpnEvent(t, "65000:2", "65000:100", nil), vpnEvent(t, "65000:3", "65000:200", v6))
	tb.apply(state(peer1, engine.StateIdle, true))
	for _, r := range tb.routes {
		if !r.Stale {
			t.Errorf("not stale: %+v", r)
		}
	}
	tb.apply(up(open, true), vpnEvent(t, "65000:1", "65000:100", nil), endOfRIB(engine.IPv4VPN))
	if len(tb.routes) != 3 {
		t.Errorf("%d routes after End-of-RIB of VPNv4", len(tb.routes))
	}
	for id, r := range tb.routes {
		if r.Stale != (id.RD != "65000:1") || id.RD == "65000:2" {
			t.Errorf("%+v", r)
		}
	}
	tb.apply(endOfRIB(engine.IPv6VPN))
	tb.expect(t, "VPNv6", map[string]string{"blue": "65000:1+", "red": "", "": "+"})
	tb.apply(state(peer1, engine.StateIdle, false))
	if len(tb.routes) != 0 {
		t.Errorf("after the session's end: %+v", tb.routes)
	}
}

func TestChangedContextsDropWhatTheyImportNoMore(t *testing.T) {
	tb := newVPNTable(t)
	tb.apply(vpnEvent(t, "65000:1", "65000:100", nil), vpnEvent(t, "65000:2", "65000:200", nil), vpnEvent(t, "65000:3", "65000:300", nil))
	out, again := tb.r.importing([]ContextConfig{importing(t, "red", "65000:300")})
	if tb.take(out); again {
		t.Error("less is imported: nothing has to be seen again")
	}
	tb.expect(t, "less", map[string]string{"blue": "", "red": "65000:3+"})
	out, again = tb.r.importing([]ContextConfig{importing(t, "red", "65000:300", "65000:200")})
	if tb.take(out); !again {
		t.Error("more is imported")
	}
	out = tb.r.rejudge(learning{code: 1, routerID: addr("192.0.2.99")})
	tb.take(out)
	tb.expect(t, "another code", map[string]string{"red": "65000:3"})
	tb.take(tb.r.removePeer(peer1))
	if len(tb.routes) != 0 {
		t.Errorf("after the neighbour: %+v", tb.routes)
	}
}
