package bgp

import (
	"fmt"
	"net/netip"
	"slices"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
	"pncd/pnc"
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
	RD     RD     // of what is announced; required there
	Import []RouteTarget
	Export []RouteTarget // of what is announced; required there
	// Label is the MPLS label that is announced. It has no default, because a router that imports the
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

// VPNOriginateConfig is one sender prefix inside a VPN for which this node announces the PNC, as
// ModeOriginate does outside.
type VPNOriginateConfig struct {
	Context string       // required: the name of a ContextConfig
	Prefix  netip.Prefix // required
	Proxy   netip.Addr   // required: the proxy's address in the PNC
	NextHop netip.Addr   // required: normally the router's loopback
}

// checkVPN checks the contexts and what is announced inside them.
func (c *Config) checkVPN() (errs []error) {
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
	type place struct {
		context string
		prefix  netip.Prefix
	}
	twice := map[place]bool{}
	for _, o := range c.OriginateVPN {
		if err := c.checkOriginateVPN(o); err != nil {
			errs = append(errs, err)
		}
		k := place{o.Context, o.Prefix}
		if twice[k] {
			errs = append(errs, wrong("originate "+o.Prefix.String(), "is configured twice in context %s", o.Context))
		}
		twice[k] = true
	}
	return errs
}

func (c *Config) checkOriginateVPN(o VPNOriginateConfig) error {
	at := fmt.Sprintf("originate %s in context %s", o.Prefix, o.Context)
	x := c.vpnContext(o.Context)
	nh := o.NextHop
	switch {
	case !o.Prefix.IsValid(), o.Prefix != o.Prefix.Masked():
		return wrong(at, "must be a prefix without host bits")
	case x == nil:
		return wrong(at, "no such context")
	case x.RD == RD{}:
		return wrong(at, "the context needs a route distinguisher to announce anything")
	case len(x.Export) == 0:
		return wrong(at, "the context exports to no route target")
	case x.Label == nil:
		return wrong(at, "the context needs a label: implicit null where no router imports the route target, else the router's own for this VPN")
	case pnc.CheckProxy(o.Proxy) != nil:
		return wrong(at, "%v", pnc.CheckProxy(o.Proxy))
	case !nh.IsValid(), nh.IsUnspecified(), nh.IsMulticast(), nh.IsLinkLocalUnicast():
		return wrong(at, "needs a next hop, a unicast address that is not link-local: normally the router's loopback")
	case o.Prefix.Addr().Is4() && !nh.Unmap().Is4():
		return wrong(at, "next hop %s is IPv6 and the prefix is IPv4", nh)
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

// vpnOriginator decides what is announced inside VPNs. It is pure.
type vpnOriginator struct {
	wanted  map[engine.VPNPrefix]vpnItem
	current map[engine.VPNPrefix]engine.Announcement
	err     error // of the last attempt; what failed is tried again
}

type vpnItem struct {
	VPNOriginateConfig
	announcement engine.Announcement
	denied       bool // the context's list doesn't permit it
}

// configure takes over what a configuration that is complete announces.
func (o *vpnOriginator) configure(c Config) {
	o.wanted = map[engine.VPNPrefix]vpnItem{}
	for _, v := range c.OriginateVPN {
		x := c.vpnContext(v.Context)
		a, err := v.announcement(x, c.PNCCode)
		a.Attributes = tag(a.Attributes, slices.Concat(c.Communities, x.Communities))
		if err != nil {
			o.err = err // the configuration's check leaves nothing that can fail
			continue
		}
		o.wanted[engine.VPNPrefix{RD: x.RD, VPN: true, Prefix: v.Prefix}] = vpnItem{v, a, !x.ExportPrefixes.Permits(v.Prefix)}
	}
}

// announcement is our own route, so NHC goes without Partial, and its header's next hop without RD.
func (v *VPNOriginateConfig) announcement(x *ContextConfig, code uint16) (engine.Announcement, error) {
	tlv, err := nhc.NewPNC(code, v.Proxy)
	if err != nil {
		return engine.Announcement{}, err
	}
	afi := nhc.AFIIPv4
	if v.Prefix.Addr().Is6() {
		afi = nhc.AFIIPv6
	}
	nextHop := v.NextHop.Unmap()
	a, err := nhc.New(afi, nhc.SAFIVPN, nextHop, tlv)
	if err != nil {
		return engine.Announcement{}, err
	}
	attr, err := a.Append(nil)
	return engine.Announcement{
		Prefix: v.Prefix, NextHop: nextHop, VPN: &engine.VPNInfo{RD: x.RD, Label: *x.Label},
		Attributes: []engine.RawAttribute{{nhc.FlagTransitive, attrOrigin, 1, 0}, engine.TargetsAttribute(x.Export), attr},
	}, err
}

// inactivePolicy is why a sender inside a context is not announced though the mechanism is on.
const inactivePolicy inactive = "export_prefixes of the context does not permit it"

// why an item is not announced; off says so for reasons that are not its context's.
func (it vpnItem) why(off func(vpnItem) inactive) inactive {
	if w := off(it); w != active || !it.denied {
		return w
	}
	return inactivePolicy
}

// plan says what has to be told to the engine.
func (o *vpnOriginator) plan(off func(vpnItem) inactive) (announce []engine.Announcement, withdraw []engine.VPNPrefix) {
	for k, it := range o.wanted {
		have, announced := o.current[k]
		if it.why(off) == active && !(announced && equalVPN(have, it.announcement)) {
			announce = append(announce, it.announcement)
		}
	}
	for k := range o.current {
		if it, ok := o.wanted[k]; !ok || it.why(off) != active {
			withdraw = append(withdraw, k)
		}
	}
	return announce, withdraw
}

func equalVPN(a, b engine.Announcement) bool { return *a.VPN == *b.VPN && equalAnnouncement(a, b) }

// done says that the engine took what plan gave, or why it did not.
func (o *vpnOriginator) done(announce []engine.Announcement, withdraw []engine.VPNPrefix, err error) error {
	if o.err = err; err != nil {
		return err
	}
	for _, a := range announce {
		o.current[engine.VPNPrefix{RD: a.VPN.RD, VPN: true, Prefix: a.Prefix}] = a
	}
	for _, k := range withdraw {
		delete(o.current, k)
	}
	return nil
}

// status lists what is announced or would be, by context, prefix and RD.
func (o *vpnOriginator) status(running bool, off func(vpnItem) inactive) (out []AdvertisementStatus) {
	for k, it := range o.wanted {
		_, announced := o.current[k]
		st := AdvertisementStatus{
			OriginateConfig: OriginateConfig{Prefix: it.Prefix, Mode: ModeOriginate, Proxy: it.Proxy, NextHop: it.NextHop},
			NextHop:         it.NextHop, Context: it.Context, RD: k.RD.String(), Configured: true,
			Announced: announced && running, Active: announced && running,
		}
		switch {
		case st.Active:
		case !running:
			st.InactiveReason = ErrNotRunning.Error()
		case it.why(off) != active:
			st.InactiveReason = string(it.why(off))
		case o.err != nil:
			st.InactiveReason = o.err.Error()
		}
		out = append(out, st)
	}
	return out
}
