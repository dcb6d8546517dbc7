package bgp_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pncd/bgp"
)

func leaf(password string) bgp.NeighborConfig {
	return bgp.NeighborConfig{PeerAS: 65000, Password: password}
}

// leafAt is a speaker that connects to atA from an address, and announces.
func leafAt(port int, at, password string) bgp.Config {
	c := exactly(port, 65000, at, bgp.NeighborConfig{Address: addr(atA), Password: password})
	c.Originate = []bgp.OriginateConfig{originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1")}
	return c
}

func TestANeighbourOfARangeComesAndGoesWithItsRoutes(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := exactly(port, 65000, atA)
	cfg.Ranges = []bgp.RangeConfig{
		{Prefix: prefix("127.0.9.0/24"), Limit: 1, Neighbor: leaf("secret")},
		{Prefix: prefix("127.0.0.128/25"), Neighbor: leaf("")},
	}
	a := start(t, cfg)
	b := start(t, leafAt(port, "127.0.9.2", "secret"))
	got := a.AwaitUp("127.0.9.2")
	if n := got.Neighbor("127.0.9.2"); n.Range != prefix("127.0.9.0/24") || !n.MD5 || !n.Passive {
		t.Errorf("shown as %+v", n)
	}
	b.AwaitUp(atA)
	b.Must(request{Enable: ptr(true)})
	a.Await("its route", believes("192.0.2.0/24", "127.0.9.2", "198.51.100.7"))

	start(t, leafAt(port, "127.0.9.3", "secret")) // one too many
	start(t, leafAt(port, "127.0.0.129", ""))     // of another range
	start(t, leafAt(port, "127.0.9.4", "guess"))  // the kernel drops what it sends
	a.AwaitUp("127.0.0.129")
	a.Await("the limit", func(x answer) bool {
		return strings.Contains(a.Log(), "limit of 1 neighbours is reached") && x.Up("127.0.9.2")
	})
	for _, stranger := range []string{"127.0.9.3", "127.0.9.4"} {
		if n := a.Must(request{}).Neighbor(stranger); n != nil {
			t.Errorf("taken: %+v", n)
		}
	}

	b.Must(request{Stop: true})
	a.Await("its end", func(x answer) bool { return x.Neighbor("127.0.9.2") == nil && len(x.Of("192.0.2.0/24")) == 0 })
	a.AwaitUp("127.0.9.3") // there is room now
}

func TestTheLongestRangeWinsAndAConfiguredNeighbourBeforeAll(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := exactly(port, 65000, atA, bgp.NeighborConfig{Address: addr("127.0.10.2"), Passive: true, Password: "own"})
	cfg.Ranges = []bgp.RangeConfig{
		{Prefix: prefix("127.0.10.0/23"), Neighbor: leaf("wide")},
		{Prefix: prefix("127.0.10.0/24"), Neighbor: leaf("long")},
	}
	a := start(t, cfg)
	start(t, leafAt(port, "127.0.10.2", "own"))
	start(t, leafAt(port, "127.0.10.3", "long"))
	start(t, leafAt(port, "127.0.11.3", "wide"))
	for at, want := range map[string]netip.Prefix{
		"127.0.10.2": {}, "127.0.10.3": prefix("127.0.10.0/24"), "127.0.11.3": prefix("127.0.10.0/23"),
	} {
		if n := a.AwaitUp(at).Neighbor(at); n.Range != want {
			t.Errorf("%s is of %s, want %s", at, n.Range, want)
		}
	}
}

func TestReloadOfRangesTouchesWhatChanged(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := exactly(port, 65000, atA)
	cfg.Ranges = []bgp.RangeConfig{
		{Prefix: prefix("127.0.12.0/24"), Neighbor: leaf("")}, {Prefix: prefix("127.0.13.0/24"), Neighbor: leaf("")},
	}
	a := start(t, cfg)
	start(t, leafAt(port, "127.0.12.2", ""))
	start(t, leafAt(port, "127.0.13.2", ""))
	start(t, leafAt(port, "127.0.14.2", "new"))
	a.AwaitUp("127.0.12.2")
	a.AwaitUp("127.0.13.2")
	next := cfg
	next.Ranges = []bgp.RangeConfig{
		{Prefix: prefix("127.0.12.0/24"), Limit: 7, Neighbor: leaf("")}, {Prefix: prefix("127.0.14.0/24"), Neighbor: leaf("new")},
	}
	got := a.Must(request{Configure: &next})
	if got.Neighbor("127.0.13.2") != nil {
		t.Error("a neighbour of a range that went is still there")
	}
	got = a.AwaitUp("127.0.14.2")
	if n := got.Neighbor("127.0.12.2"); n == nil || n.Flaps != 1 {
		t.Errorf("a neighbour of a range that stayed: %+v", n)
	}
	next.Ranges = nil
	if got := a.Must(request{Configure: &next}); len(got.Neighbors) != 0 {
		t.Errorf("without ranges: %+v", got.Neighbors)
	}
}

func TestARangeNamesWhatIsWrongWithIt(t *testing.T) {
	for rule, change := range map[string]func(*bgp.Config){
		"never holds one of ourselves":               func(c *bgp.Config) { c.Ranges[0].Prefix = prefix("127.0.0.0/24") },
		"holds 127.0.9.77, which is our own address": func(c *bgp.Config) { c.Own = append(c.Own, addr("127.0.9.77")) },
		"without host bits":                          func(c *bgp.Config) { c.Ranges[0].Prefix = netip.PrefixFrom(addr("127.0.9.1"), 24) },
		"holds one address":                          func(c *bgp.Config) { c.Ranges[0].Prefix = prefix("127.0.9.1/32") },
		"link-local":                                 func(c *bgp.Config) { c.Ranges[0].Prefix = prefix("fe80::/64") },
		"limit -1":                                   func(c *bgp.Config) { c.Ranges[0].Limit = -1 },
		"AS is required":                             func(c *bgp.Config) { c.Ranges[0].Neighbor.PeerAS = 0 },
		"configured twice":                           func(c *bgp.Config) { c.Ranges = append(c.Ranges, c.Ranges[0]) },
		"no listen address is of":                    func(c *bgp.Config) { c.Ranges[0].Prefix = prefix("2001:db8::/64") },
		"holds neighbour 127.0.9.5":                  func(c *bgp.Config) { c.Neighbors = []bgp.NeighborConfig{{Address: addr("127.0.9.5"), PeerAS: 65000}} },
		"holds range 127.0.9.128/25": func(c *bgp.Config) {
			c.Ranges = append(c.Ranges, bgp.RangeConfig{Prefix: prefix("127.0.9.128/25"), Neighbor: leaf("")})
		},
	} {
		c := exactly(179, 65000, atA)
		c.Ranges = []bgp.RangeConfig{{Prefix: prefix("127.0.9.0/24"), Neighbor: leaf("secret")}}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Validate(); !errors.Is(err, bgp.ErrConfig) || !strings.Contains(err.Error(), rule) || !strings.Contains(err.Error(), "listen range "+c.Ranges[0].Prefix.String()) {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
