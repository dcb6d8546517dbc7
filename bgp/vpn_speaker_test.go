package bgp_test

import (
	"net/netip"
	"testing"

	"pncd/bgp"
	"pncd/pnc"
)

var vpnFamilies = []bgp.Family{bgp.IPv4VPN, bgp.IPv6VPN}

func targets(t *testing.T, list ...string) (out []bgp.RouteTarget) {
	t.Helper()
	for _, s := range list {
		rt, err := bgp.ParseRouteTarget(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rt)
	}
	return out
}

// vpn is a context with an RD of its own that imports and exports one target.
func vpn(t *testing.T, name, rd string, imports, exports []string) bgp.ContextConfig {
	t.Helper()
	d, err := bgp.ParseRD(rd)
	if err != nil {
		t.Fatal(err)
	}
	return bgp.ContextConfig{Name: name, RD: d, Import: targets(t, imports...), Export: targets(t, exports...), Label: ptr(uint32(bgp.LabelImplicitNull))}
}

func inVPN(context, p, proxy, nextHop string) bgp.OriginateConfig {
	return bgp.OriginateConfig{Context: context, Prefix: prefix(p), Proxy: addr(proxy), NextHop: addr(nextHop)}
}

// inContext finds the proxies of a prefix in a context.
func inContext(a answer, context, p string) (out []netip.Addr) {
	for _, r := range a.Routes {
		if r.Context == context && r.Prefix == prefix(p) && r.Believed() {
			out = append(out, r.Proxy)
		}
	}
	return out
}

func one(context, p, proxy string) func(answer) bool {
	return func(a answer) bool {
		got := inContext(a, context, p)
		return len(got) == 1 && got[0] == addr(proxy)
	}
}

func TestVPNRoutesArriveInTheContextsThatImportThem(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfgA := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), Passive: true, Families: vpnFamilies})
	cfgA.Contexts = []bgp.ContextConfig{
		vpn(t, "blue", "65000:1", nil, []string{"65000:100"}),
		vpn(t, "red", "192.0.2.1:2", nil, []string{"65000:200", "4200000000:7"}),
	}
	cfgA.Originate = []bgp.OriginateConfig{
		inVPN("blue", "192.0.2.0/24", "198.51.100.7", "198.51.100.1"),
		inVPN("red", "192.0.2.0/24", "198.51.100.8", "198.51.100.1"),
		inVPN("blue", "2001:db8:7::/48", "2001:db8::7", "2001:db8::1"),
		inVPN("red", "2001:db8:7::/48", "198.51.100.8", "198.51.100.1"), // VPNv6 over an IPv4 core
	}
	cfgB := node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA), Families: vpnFamilies})
	cfgB.Contexts = []bgp.ContextConfig{
		vpn(t, "azure", "65000:9", []string{"65000:100"}, nil),
		vpn(t, "both", "65000:9", []string{"65000:100", "4200000000:7"}, nil),
		vpn(t, "none", "65000:9", []string{"65000:300"}, nil),
	}
	a, b := start(t, cfgA), start(t, cfgB)
	b.AwaitUp(atA)
	got := a.Must(request{Enable: ptr(true)})
	if len(got.Advertisements) != 4 {
		t.Fatalf("advertisements: %+v", got.Advertisements)
	}
	for _, ad := range got.Advertisements {
		if !ad.Active || !ad.Announced || ad.Context == "" || ad.RD == "" {
			t.Errorf("on, but %+v", ad)
		}
	}
	b.Await("IPv4 in azure", one("azure", "192.0.2.0/24", "198.51.100.7"))
	b.Await("IPv6 in azure", one("azure", "2001:db8:7::/48", "2001:db8::7"))
	last := b.Await("both VPNs in one context", func(a answer) bool {
		return len(inContext(a, "both", "192.0.2.0/24")) == 2 && len(inContext(a, "both", "2001:db8:7::/48")) == 2
	})
	best := 0
	for _, r := range last.Routes {
		switch {
		case r.Context == "none", r.Context == "", r.Source != pnc.SourceBGP, r.Partial, r.RD != "65000:1" && r.RD != "192.0.2.1:2":
			t.Errorf("learned %+v", r)
		case r.Context == "both" && r.Prefix == prefix("192.0.2.0/24") && r.Best:
			best++
		}
	}
	if best != 1 {
		t.Errorf("a context has %d best paths of a prefix, want one across route distinguishers", best)
	}
	if len(last.Disregarded) != 0 {
		t.Errorf("disregarded: %+v", last.Disregarded)
	}

	// A context that imports more sees what arrived before; the session stays.
	flaps := last.Neighbors[0].Flaps
	cfgB.Contexts = []bgp.ContextConfig{
		vpn(t, "azure", "65000:9", []string{"65000:200"}, nil),
		vpn(t, "none", "65000:9", []string{"65000:100"}, nil),
	}
	b.Must(request{Configure: &cfgB})
	b.Await("red in azure", one("azure", "192.0.2.0/24", "198.51.100.8"))
	last = b.Await("blue in none", one("none", "192.0.2.0/24", "198.51.100.7"))
	if n := last.Neighbors[0].Flaps; n != flaps {
		t.Errorf("the session flapped: %d, %d before", n, flaps)
	}
	if got := inContext(last, "both", "192.0.2.0/24"); got != nil {
		t.Errorf("a context that is gone still has %v", got)
	}

	// One VPN leaves and the other stays.
	cfgA.Originate = cfgA.Originate[1:2]
	a.Must(request{Configure: &cfgA})
	b.Await("blue gone", func(a answer) bool { return len(a.Routes) == 1 && one("azure", "192.0.2.0/24", "198.51.100.8")(a) })
	a.Must(request{Enable: ptr(false)})
	b.Await("all gone", func(a answer) bool { return len(a.Routes) == 0 })
}
