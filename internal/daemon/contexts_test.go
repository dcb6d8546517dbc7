package daemon

import (
	"net/netip"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/internal/config"
	"pncd/pnc"
)

const vpnConfig = `
contexts:
  - {name: blue, import: ["65000:100", "192.0.2.1:7"], rd: "65000:1", export: ["4200000000:9"], label: 1001,
     import_prefixes: [{prefix: 10.0.0.0/8, le: 24}], export_prefixes: [{prefix: 10.0.0.0/8, deny: true}],
     require_communities: ["65000:1"], communities: ["65000:3:4"], accept_proxies: [192.0.2.0/28], accept_from: [192.0.2.16/28]}
  - {name: red, import: ["65000:200"]}
static:
  - {prefix: 203.0.113.0/24, proxy: 192.0.2.98}
  - {prefix: 203.0.113.0/24, proxy: 192.0.2.99, context: blue}
bgp:
  as: 65000
  router_id: 192.0.2.1
  accept_from: [192.0.2.32/28]
  neighbors: [{address: 192.0.2.254, as: 65000, families: [vpnv4-unicast, ipv6-unicast, vpnv6-unicast], accept_from: [192.0.2.48/28]}]
proxy:
  ipv4: 192.0.2.1
  taps: [a]
  accept_from: [192.0.2.0/24]
  senders: [{prefix: 198.51.100.0/24, next_hop: 192.0.2.3}, {prefix: 198.51.100.0/24, context: blue, proxy: 192.0.2.2, next_hop: 192.0.2.3}]
`

func TestContextsOfTheFileReachTheSpeakerAndTheTable(t *testing.T) {
	c, err := config.Parse([]byte(vpnConfig))
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(c); err != nil {
		t.Fatal(err)
	}
	b, err := bgpSettings(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Contexts) != 2 || len(b.Originate) != 2 {
		t.Fatalf("%+v", b)
	}
	blue, red, o := b.Contexts[0], b.Contexts[1], b.Originate[1]
	if blue.Name != "blue" || blue.RD.String() != "65000:1" || len(blue.Import) != 2 || blue.Import[1].String() != "192.0.2.1:7" ||
		blue.Export[0].String() != "4200000000:9" || *blue.Label != 1001 || red.Label != nil || red.Import[0].String() != "65000:200" {
		t.Errorf("%+v", b.Contexts)
	}
	if p := blue.ImportPrefixes; len(p) != 1 || p[0].LE != 24 || len(blue.ExportPrefixes) != 1 || !blue.ExportPrefixes[0].Deny ||
		len(blue.RequireCommunities) != 1 || len(blue.Communities) != 1 || blue.Communities[0].String() != "65000:3:4" ||
		blue.AcceptProxies[0].String() != "192.0.2.0/28" || blue.AcceptFrom[0].String() != "192.0.2.16/28" ||
		b.AcceptFrom[0].String() != "192.0.2.32/28" || b.Neighbors[0].AcceptFrom[0].String() != "192.0.2.48/28" {
		t.Errorf("policies: %+v", b)
	}
	if o.Context != "blue" || o.Prefix.String() != "198.51.100.0/24" || o.Proxy.String() != "192.0.2.2" || o.NextHop.String() != "192.0.2.3" {
		t.Errorf("%+v", o)
	}
	if f := b.Neighbors[0].Families; len(f) != 3 || f[0] != bgp.IPv4VPN || f[1] != bgp.IPv6Unicast || f[2] != bgp.IPv6VPN {
		t.Errorf("families %v", f)
	}
	if got := translatorSettings(c.Proxy).ServedPrefixes; len(got) != 1 {
		t.Errorf("translates for %v", got)
	}

	table := pnc.New(tableSettings(c))
	table.SetStatic(time.Time{}, staticRoutes(c))
	table.SetReachability(time.Time{}, map[netip.Addr]pnc.Reach{
		netip.MustParseAddr("192.0.2.98"): {Reachable: true}, netip.MustParseAddr("192.0.2.99"): {Reachable: true}})
	for context, want := range map[string]struct {
		reason pnc.Reason
		proxy  string
	}{
		"":      {pnc.ReasonFound, "192.0.2.98"},
		"blue":  {pnc.ReasonFound, "192.0.2.99"},
		"red":   {pnc.ReasonNoRoute, "invalid IP"},
		"green": {pnc.ReasonContextUnknown, "invalid IP"},
	} {
		if got := table.Resolve(context, netip.MustParseAddr("203.0.113.5"), 0); got.Reason != want.reason || got.Proxy.String() != want.proxy {
			t.Errorf("context %q: %v %s, want %v %s", context, got.Reason, got.Proxy, want.reason, want.proxy)
		}
	}

	// A context that is reloaded away takes its answers along.
	c.Contexts = c.Contexts[1:]
	table.Reconfigure(time.Time{}, tableSettings(c))
	if got := table.Resolve("blue", netip.MustParseAddr("203.0.113.5"), 0); got.Reason != pnc.ReasonContextUnknown {
		t.Errorf("a context that is gone answers %v", got.Reason)
	}
}
