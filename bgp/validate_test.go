package bgp

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pncd/bgp/nhc"
)

func sound() Config {
	return Config{
		RouterID: addr("192.0.2.1"), AS: 65000,
		Neighbors: []NeighborConfig{{Address: addr("192.0.2.2"), PeerAS: 65000}, {Address: addr("2001:db8::3"), PeerAS: 65003}},
		Originate: []OriginateConfig{{Prefix: prefix("203.0.113.0/24"), Proxy: addr("192.0.2.7"), NextHop: addr("192.0.2.1")}},
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	c, err := sound().complete()
	if err != nil {
		t.Fatal(err)
	}
	n, e := c.Neighbors[0], c.Neighbors[1]
	if c.ListenPort != 179 || c.PNCCode != nhc.DefaultPNCCode || len(c.ListenAddresses) != 2 {
		t.Errorf("%+v", c)
	}
	if n.Port != 179 || n.LocalAS != 65000 || n.HoldTime != 90*time.Second || n.Keepalive != 30*time.Second ||
		n.ConnectRetry != DefaultConnectRetry || len(n.Families) != 1 || n.Families[0] != IPv4Unicast || e.Families[0] != IPv6Unicast {
		t.Errorf("%+v", n)
	}
	if !*n.SendNHC || *e.SendNHC || c.info(e).accept || !c.info(n).accept {
		t.Error("NHC goes to IBGP neighbours and not to EBGP ones, which aren't believed either")
	}
	if sound().Neighbors[0].SendNHC != nil {
		t.Error("the caller's configuration was written to")
	}
}

func TestAWrongConfigurationNamesTheFieldAndTheRule(t *testing.T) {
	for want, edit := range map[string]func(*Config){
		"router ID":                 func(c *Config) { c.RouterID = addr("::1") },
		"AS: is required":           func(c *Config) { c.AS = 0 },
		"listen port":               func(c *Config) { c.ListenPort = 70000 },
		"PNC code":                  func(c *Config) { c.PNCCode = 3 },
		"accepted proxies":          func(c *Config) { c.AcceptProxies = []netip.Prefix{{}} },
		"unicast address":           func(c *Config) { c.Neighbors[0].Address = addr("224.0.0.1") },
		"needs its interface":       func(c *Config) { c.Neighbors[0].Address = addr("fe80::1") },
		"only a link-local address": func(c *Config) { c.Neighbors[0].Address = addr("2001:db8::1%lo") },
		"::%lo: address must be a":  func(c *Config) { c.Neighbors[0].Address = addr("::%lo") },
		"EBGP multihop has no use": func(c *Config) {
			c.Neighbors[0] = NeighborConfig{Address: addr("fe80::1%eth1"), PeerAS: 65001, EBGPMultihop: 2}
		},
		"our own":                     func(c *Config) { c.ListenAddresses = []netip.Addr{addr("192.0.2.2"), addr("::")} },
		"configured twice":            func(c *Config) { c.Neighbors[1].Address = c.Neighbors[0].Address },
		"neighbor 192.0.2.2: AS":      func(c *Config) { c.Neighbors[0].PeerAS = 0 },
		"of another family":           func(c *Config) { c.Neighbors[0].LocalAddress = addr("2001:db8::1") },
		"at most 80":                  func(c *Config) { c.Neighbors[0].Password = strings.Repeat("x", 81) },
		"hold time 2s":                func(c *Config) { c.Neighbors[0].HoldTime = 2 * time.Second },
		"keepalive":                   func(c *Config) { c.Neighbors[0].Keepalive = 90 * time.Second },
		"connect retry":               func(c *Config) { c.Neighbors[0].ConnectRetry = 1 },
		"exclude each other":          func(c *Config) { c.Neighbors[1].TTLMin, c.Neighbors[1].EBGPMultihop = 255, 2 },
		"EBGP multihop is for EBGP":   func(c *Config) { c.Neighbors[0].EBGPMultihop = 2 },
		"never come up":               func(c *Config) { c.Neighbors[0].Passive, c.ListenPort = true, -1 },
		"no listen address":           func(c *Config) { c.Neighbors[0].Passive, c.ListenAddresses = true, []netip.Addr{addr("::")} },
		"once each":                   func(c *Config) { c.Neighbors[0].Families = []Family{IPv4Unicast, IPv4Unicast} },
		"default route":               func(c *Config) { c.Originate[0].Prefix = prefix("0.0.0.0/0") },
		"prefix of unicast":           func(c *Config) { c.Originate[0].Prefix = prefix("224.0.0.0/4") },
		"host bits":                   func(c *Config) { c.Originate[0].Prefix = prefix("203.0.113.1/24") },
		"mode 9":                      func(c *Config) { c.Originate[0].Mode = 9 },
		"proxy address":               func(c *Config) { c.Originate[0].Proxy = netip.Addr{} },
		"originate needs one":         func(c *Config) { c.Originate[0].NextHop = netip.Addr{} },
		"IPv4 and the prefix is IPv6": func(c *Config) { c.Originate[0].Prefix = prefix("2001:db8:7::/48") },
		"must not have one":           func(c *Config) { c.Originate[0].Mode = ModeInline },
		"must not name one":           func(c *Config) { c.Originate[0].From = addr("192.0.2.2") },
		"no configured neighbour": func(c *Config) {
			c.Originate[0] = OriginateConfig{Prefix: prefix("203.0.113.0/24"), Mode: ModePath, Proxy: addr("192.0.2.7"), From: addr("192.0.2.77")}
		},
		"originate 203.0.113.0/24: is configured twice": func(c *Config) { c.Originate = append(c.Originate, c.Originate[0]) },
	} {
		c := sound()
		edit(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestModesHaveTheirNames(t *testing.T) {
	for _, m := range []Mode{ModeOriginate, ModeInline, ModePath, ModePrefer} {
		if got, ok := ParseMode(m.String()); !ok || got != m {
			t.Errorf("%s", m)
		}
	}
	if _, ok := ParseMode("none"); ok {
		t.Error("an unknown mode was read")
	}
}

func TestALinkLocalNeighbourHasAnInterface(t *testing.T) {
	c := sound()
	c.LocalAddress = addr("2001:db8::9")
	c.Neighbors[0] = NeighborConfig{Address: addr("fe80::1%eth1"), PeerAS: 65000, LocalAddress: addr("fe80::2"), Password: "a"}
	c.Neighbors[1] = NeighborConfig{Address: addr("fe80::1%eth2"), PeerAS: 65000, Password: "a"}
	c.Originate = nil
	done, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := done.Neighbors[0], done.Neighbors[1]; a.LocalAddress != addr("fe80::2%eth1") || b.LocalAddress.IsValid() || a.Families[0] != IPv6Unicast {
		t.Errorf("%+v, %+v", a, b)
	}
	c.Neighbors[1].Password = "b" // the kernel has one key for the address
	if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "must be those of fe80::1%eth1") {
		t.Errorf("%v", err)
	}
	c.Neighbors[1].Password = "a"
	c.Neighbors[1].LocalAddress = addr("fe80::2%eth1")
	if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "local address fe80::2%eth1 is not on the neighbour's interface") {
		t.Errorf("%v", err)
	}
}
