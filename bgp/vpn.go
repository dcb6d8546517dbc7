package bgp

import (
	"net/netip"

	"pncd/bgp/engine"
)

// VPN families, and the numbers of VPNs.
type (
	// RD is a route distinguisher (RFC 4364 section 4.2).
	RD = engine.RD
	// RouteTarget is a route target extended community (RFC 4360 section 4).
	RouteTarget = engine.RouteTarget
)

// The VPN families.
const (
	IPv4VPN = engine.IPv4VPN // vpnv4-unicast, RFC 4364
	IPv6VPN = engine.IPv6VPN // vpnv6-unicast, RFC 4659
)

// MPLS labels (RFC 3032 section 2.1).
const (
	// LabelImplicitNull is for routes that no router imports: there is no label to send with.
	LabelImplicitNull = 3

	firstLabel = 16
	lastLabel  = 1<<20 - 1
)

// ParseRD reads a route distinguisher such as 65000:100 or 192.0.2.1:100.
func ParseRD(s string) (RD, error) { return engine.ParseRD(s) }

// ParseRouteTarget reads a route target such as 65000:100 or 192.0.2.1:100.
func ParseRouteTarget(s string) (RouteTarget, error) { return engine.ParseRouteTarget(s) }

// ContextConfig is a VPN: which routes belong to it, and how this node's announcements say so.
type ContextConfig struct {
	Name   string // the pnc context; required
	RD     RD     // of what ModeOriginate announces; required there
	Import []RouteTarget
	Export []RouteTarget // of what ModeOriginate announces; required there
	// Label is the MPLS label that ModeOriginate announces. It has no default, because a router that imports the
	// route sends the VPN's traffic with it: LabelImplicitNull where no router does, else the label
	// that the router at the next hop allocated for this VPN.
	Label *uint32

	// ImportPrefixes says which routes are taken into the context, beside the neighbour's own list.
	// RequireCommunities, AcceptProxies and AcceptFrom bound which PNCs are believed there: those of the
	// neighbour hold too, those of Config where neither has any.
	ImportPrefixes            PrefixList
	RequireCommunities        []Community
	AcceptProxies, AcceptFrom []netip.Prefix
	// ExportPrefixes says which senders are announced; empty: all. Communities are attached to them,
	// beside those of Config.
	ExportPrefixes PrefixList
	Communities    []Community
}

func (c *ContextConfig) inbound() inbound {
	return inbound{prefixes: c.ImportPrefixes, communities: c.RequireCommunities, proxies: c.AcceptProxies, from: c.AcceptFrom}
}

// checkContexts checks the contexts.
func (c *Config) checkContexts() (errs []error) {
	seen := map[string]bool{}
	for _, x := range c.Contexts {
		at := "context " + x.Name
		switch {
		case x.Name == "" || x.Name == c.Context:
			errs = append(errs, wrong(at, "needs a name of its own"))
		case seen[x.Name]:
			errs = append(errs, wrong(at, "is configured twice"))
		}
		seen[x.Name] = true
		if err := x.ImportPrefixes.Check(); err != nil {
			errs = append(errs, wrong(at, "import prefixes: %v", err))
		}
		if err := x.ExportPrefixes.Check(); err != nil {
			errs = append(errs, wrong(at, "export prefixes: %v", err))
		}
		errs = append(errs, checkBelieved(at, x.AcceptProxies, x.AcceptFrom)...)
		if l := x.Label; l != nil && (*l < firstLabel || *l > lastLabel) && *l != LabelImplicitNull {
			errs = append(errs, wrong(at, "label %d must be implicit null (3) or from %d to %d (RFC 3032 section 2.1)", *l, firstLabel, lastLabel))
		}
	}
	return errs
}

// checkInContext says what a context lacks for a prefix to be announced in it.
func (c *Config) checkInContext(o OriginateConfig) error {
	at := "originate " + o.key().String()
	x := c.vpnContext(o.Context)
	switch {
	case x == nil:
		return wrong(at, "no such context")
	case o.Mode != ModeOriginate && len(x.Import) == 0:
		return wrong(at, "the context imports no route target, so there is no route for mode %s to follow", o.Mode)
	case o.Mode != ModeOriginate:
		return nil
	case x.RD == RD{}:
		return wrong(at, "the context needs a route distinguisher to announce anything")
	case len(x.Export) == 0:
		return wrong(at, "the context exports to no route target")
	case x.Label == nil:
		return wrong(at, "the context needs a label: implicit null where no router imports the route target, else the router's own for this VPN")
	case o.Prefix.Addr().Is4() && !o.NextHop.Unmap().Is4():
		return wrong(at, "next hop %s is IPv6 and the prefix is IPv4", o.NextHop)
	}
	return nil
}

func (c *Config) vpnContext(name string) *ContextConfig {
	for i := range c.Contexts {
		if c.Contexts[i].Name == name {
			return &c.Contexts[i]
		}
	}
	return nil
}
