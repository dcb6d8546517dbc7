package daemon

import (
	"fmt"

	"pncd/bgp"
	"pncd/internal/config"
)

// The functions here say what the VPNs of a configuration mean to the speaker and the table.

var familyByName = map[string]bgp.Family{
	bgp.IPv4Unicast.String(): bgp.IPv4Unicast, bgp.IPv6Unicast.String(): bgp.IPv6Unicast,
	bgp.IPv4VPN.String(): bgp.IPv4VPN, bgp.IPv6VPN.String(): bgp.IPv6VPN,
}

// inContext is the name of something in a context: as in blue/eth1, or alone in the default one.
func inContext(context, name string) string {
	if context == "" {
		return name
	}
	return context + "/" + name
}

func contextNames(c *config.Config) (out []string) {
	for _, x := range c.Contexts {
		out = append(out, x.Name)
	}
	return out
}

// bgpContexts gives an error for numbers that package config would have refused.
func bgpContexts(c *config.Config) ([]bgp.ContextConfig, error) {
	var out []bgp.ContextConfig
	for i, x := range c.Contexts {
		var err error
		v := bgp.ContextConfig{
			Name: x.Name, ImportPrefixes: prefixList(x.ImportPrefixes), RequireCommunities: communities(x.RequireCommunities),
			AcceptProxies: prefixes(x.AcceptProxies), AcceptFrom: prefixes(x.AcceptFrom),
			ExportPrefixes: prefixList(x.ExportPrefixes), Communities: communities(x.Communities),
		}
		if x.RD != "" {
			if v.RD, err = bgp.ParseRD(x.RD); err != nil {
				return nil, fmt.Errorf("contexts[%d].rd: %w", i, err)
			}
		}
		if v.Import, err = routeTargets(x.Import); err != nil {
			return nil, fmt.Errorf("contexts[%d].import: %w", i, err)
		}
		if v.Export, err = routeTargets(x.Export); err != nil {
			return nil, fmt.Errorf("contexts[%d].export: %w", i, err)
		}
		if x.Label.Given {
			v.Label = &x.Label.Value
		}
		out = append(out, v)
	}
	return out, nil
}

func routeTargets(list []string) (out []bgp.RouteTarget, err error) {
	for _, s := range list {
		t, err := bgp.ParseRouteTarget(s)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
