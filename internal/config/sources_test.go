package config

import (
	"net/netip"
	"slices"
	"testing"
)

func TestSourcesAddTheirPrefixesToTheSenders(t *testing.T) {
	const head = "bgp: {as: 65000, router_id: 192.0.2.1, neighbors: [{address: 192.0.2.254, as: 65000}]}\n" +
		"proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n"
	for _, tt := range []struct {
		name, yaml string
		want       map[string]Sender // what is added, by prefix
	}{
		{"proxy by default, and the next hop for its family",
			"  sender_sources: [{interface: eth0, next_hop: 192.0.2.9}]\n",
			map[string]Sender{
				"198.51.100.0/24": {Mode: "originate", Proxy: addrOf("192.0.2.1"), NextHop: addrOf("192.0.2.9")},
				"198.51.101.0/24": {Mode: "originate", Proxy: addrOf("192.0.2.1"), NextHop: addrOf("192.0.2.9")},
				"2001:db8::/48":   {Mode: "none", Proxy: addrOf("192.0.2.1")}, // no IPv6 next hop
			}},
		{"only those within, as configured",
			"  sender_sources: [{interface: eth0, within: [198.51.100.0/23, \"2001:db8::/32\"], next_hop: \"2001:db8::9\"}]\n",
			map[string]Sender{
				"198.51.100.0/24": {Mode: "none", Proxy: addrOf("192.0.2.1")},
				"198.51.101.0/24": {Mode: "none", Proxy: addrOf("192.0.2.1")},
				"2001:db8::/48":   {Mode: "originate", Proxy: addrOf("192.0.2.1"), NextHop: addrOf("2001:db8::9")},
			}},
		{"a shorter prefix than within is not within",
			"  sender_sources: [{interface: eth0, within: [198.51.100.0/25], next_hop: 192.0.2.9}]\n", nil},
		{"a named sender counts first, and the first source",
			"  senders: [{prefix: 198.51.100.0/24, mode: none}]\n  sender_sources: [{interface: eth0, mode: path, from: 192.0.2.254, within: [198.51.0.0/16]}, {table: 7, mode: none, within: [198.51.0.0/16]}]\n",
			map[string]Sender{"198.51.101.0/24": {Mode: "path", Proxy: addrOf("192.0.2.1"), From: NeighborAddr(addrOf("192.0.2.254"))}}},
		{"one interface with a next hop for each family",
			"  sender_sources: [{interface: eth0, within: [198.51.100.0/24], next_hop: 192.0.2.9}, {interface: eth0, within: [\"::/0\"], next_hop: \"2001:db8::9\"}]\n",
			map[string]Sender{
				"198.51.100.0/24": {Mode: "originate", Proxy: addrOf("192.0.2.1"), NextHop: addrOf("192.0.2.9")},
				"2001:db8::/48":   {Mode: "originate", Proxy: addrOf("192.0.2.1"), NextHop: addrOf("2001:db8::9")},
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse([]byte(head + tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			got, from := c.Proxy.WithSources(func(*SenderSource) []netip.Prefix {
				return []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("198.51.101.0/24"), netip.MustParsePrefix("2001:db8::/48")}
			})
			added := got.Senders[len(c.Proxy.Senders):]
			if len(added) != len(tt.want) || len(from) != len(tt.want) {
				t.Fatalf("added %+v from %v", added, from)
			}
			for _, s := range added {
				want := tt.want[s.Prefix.String()]
				want.Prefix = s.Prefix
				first := slices.IndexFunc(c.Proxy.SenderSources, func(x SenderSource) bool { return x.within(s.Prefix.Prefix) })
				if s != want || from[s.Prefix.Prefix] != &c.Proxy.SenderSources[first] {
					t.Errorf("got %+v, want %+v", s, want)
				}
			}
		})
	}
}

func addrOf(s string) Addr { return Addr{netip.MustParseAddr(s)} }

func TestASourceOfTheOtherFamilyLeavesThePrefixToOneThatCanAnnounceIt(t *testing.T) {
	addr := func(s string) Addr { return Addr{netip.MustParseAddr(s)} }
	prefix := netip.MustParsePrefix("2001:db8:1::/64")
	p := &Proxy{SenderSources: []SenderSource{
		{Interface: "eth1", Mode: "originate", NextHop: addr("192.0.2.1")},
		{Interface: "eth1", Mode: "originate", NextHop: addr("2001:db8::1"), Within: []Prefix{{netip.MustParsePrefix("::/0")}}},
	}}
	_, from := p.WithSources(func(*SenderSource) []netip.Prefix { return []netip.Prefix{prefix} })
	if from[prefix] != &p.SenderSources[1] {
		t.Errorf("%+v", from[prefix])
	}
	p.SenderSources = p.SenderSources[:1]
	out, from := p.WithSources(func(*SenderSource) []netip.Prefix { return []netip.Prefix{prefix} })
	if from[prefix] != &p.SenderSources[0] || len(out.Senders) != 1 {
		t.Errorf("alone: %+v", out.Senders)
	}
}
