package bgp_test

import (
	"testing"
	"time"

	"pncd/bgp"
	"pncd/pnc"
)

// RFC 6793: AS numbers of four octets, in the OPEN and in AS_PATH.
func TestSessionsHaveFourOctetASNumbers(t *testing.T) {
	t.Parallel()
	const as1, as2 = 4200000001, 4200000002
	port := freePort(t)
	allow := func(at string, as uint32) bgp.NeighborConfig {
		return bgp.NeighborConfig{Address: addr(at), PeerAS: as, AcceptEBGP: true, SendNHC: ptr(true)}
	}
	cfg := node(port, as1, atA, allow(atB, as2))
	cfg.Originate = []bgp.OriginateConfig{originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1")}
	a := start(t, cfg)
	b := start(t, node(port, as2, atB, allow(atA, as1)))
	a.Must(request{Enable: ptr(true)})
	got := b.Await("the route", believes("192.0.2.0/24", atA, "198.51.100.7"))
	if n := got.Neighbor(atA); n.PeerAS != as1 || n.LocalAS != as2 {
		t.Errorf("%+v", n)
	}
	// A neighbour with another AS number of the same lower 16 bits stays out.
	wrong := node(port, as2, atB, allow(atA, as1&0xffff))
	b.Must(request{Stop: true})
	b = start(t, wrong)
	b.Await("a session that is refused", func(x answer) bool {
		if x.Up(atA) {
			t.Fatal("the session came up")
		}
		return x.Neighbors[0].LastError != ""
	})
}

// The policy of a session that stays is put into force at once, on what was announced before.
func TestReloadOfAPolicyLooksAtTheRoutesAgainAndKeepsTheSession(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB)})
	cfg.Originate = []bgp.OriginateConfig{originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1")}
	a := start(t, cfg)
	config := func(edit func(*bgp.NeighborConfig)) bgp.Config {
		n := bgp.NeighborConfig{Address: addr(atA)}
		edit(&n)
		return node(port, 65000, atB, n)
	}
	b := start(t, config(func(*bgp.NeighborConfig) {}))
	a.Must(request{Enable: ptr(true)})
	b.Await("the route", believes("192.0.2.0/24", atA, "198.51.100.7"))
	reason := func(want pnc.DisregardReason) func(answer) bool {
		return func(x answer) bool {
			r := route(x, "192.0.2.0/24", atA)
			return r != nil && r.Disregarded == want
		}
	}
	community, err := bgp.ParseCommunity("65000:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		edit func(*bgp.NeighborConfig)
		want func(answer) bool
	}{
		{"another proxy", func(n *bgp.NeighborConfig) { n.AcceptProxies = append(n.AcceptProxies, prefix("10.0.0.0/8")) }, reason(pnc.DisregardProxyNotAccepted)},
		{"another originator", func(n *bgp.NeighborConfig) { n.AcceptFrom = append(n.AcceptFrom, prefix("10.0.0.0/8")) }, reason(pnc.DisregardOriginatorNotAccepted)},
		{"its originator", func(n *bgp.NeighborConfig) { n.AcceptFrom = append(n.AcceptFrom, prefix(atA+"/32")) }, reason(pnc.DisregardNone)},
		{"a community", func(n *bgp.NeighborConfig) { n.RequireCommunities = append(n.RequireCommunities, community) }, reason(pnc.DisregardCommunityMissing)},
		{"a prefix list", func(n *bgp.NeighborConfig) { n.ImportPrefixes = bgp.PrefixList{{Prefix: prefix("10.0.0.0/8")}} }, func(x answer) bool { return len(x.Routes) == 0 }},
		{"none", func(*bgp.NeighborConfig) {}, reason(pnc.DisregardNone)},
	} {
		next := config(step.edit)
		b.Must(request{Configure: &next})
		got := b.Await(step.name, step.want)
		if n := got.Neighbor(atA); n.Flaps != 1 || !got.Up(atA) {
			t.Errorf("%s: the session was touched: %+v", step.name, n)
		}
	}
}

// Timers and families are agreed on in the OPEN: a change begins that session anew, and no other.
func TestReloadOfTimersAndFamiliesBeginsThatSessionAnewAlone(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	both := []bgp.Family{bgp.IPv4Unicast, bgp.IPv6Unicast}
	config := func(hold time.Duration, families []bgp.Family) bgp.Config {
		c := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB)},
			bgp.NeighborConfig{Address: addr(atC), HoldTime: hold, Families: families})
		c.Originate = []bgp.OriginateConfig{originate("2001:db8:7::/48", "2001:db8::7", "2001:db8::1")}
		return c
	}
	a := start(t, config(90*time.Second, both[:1]))
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA)}))
	c := start(t, node(port, 65000, atC, bgp.NeighborConfig{Address: addr(atA)}))
	a.Must(request{Enable: ptr(true)})
	b.Await("the IPv6 route at B", believes("2001:db8:7::/48", atA, "2001:db8::7"))
	c.AwaitUp(atA)

	next := config(30*time.Second, both[:1])
	a.Must(request{Configure: &next})
	c.Await("the new hold time", func(x answer) bool {
		n := x.Neighbor(atA)
		return x.Up(atA) && n.Flaps == 2 && n.HoldTime == 30*time.Second && len(x.Routes) == 0
	})
	next = config(30*time.Second, both)
	a.Must(request{Configure: &next})
	got := c.Await("the new family", believes("2001:db8:7::/48", atA, "2001:db8::7"))
	if n := got.Neighbor(atA); n.Flaps != 3 || len(n.Families) != 2 {
		t.Errorf("%+v", n)
	}
	if n := b.Ask(request{}).Neighbor(atA); n.Flaps != 1 {
		t.Errorf("B's session came up %d times", n.Flaps)
	}
}
