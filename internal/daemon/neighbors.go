package daemon

import (
	"context"
	"errors"
	"net/netip"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/bgp"
	"pncd/bgp/guard"
	"pncd/proxyagent/readiness"
)

func errNoBGP() error {
	return api.Precondition(api.ReasonNotConfigured, "BGP is not configured: the configuration has no bgp section")
}

// Neighbors implements api.Node.
func (d *Daemon) Neighbors(context.Context) ([]*pncv1.Neighbor, error) {
	if d.speaker == nil {
		return nil, errNoBGP()
	}
	list := d.speaker.Neighbors()
	out := make([]*pncv1.Neighbor, len(list))
	for i := range list {
		out[i] = neighborMessage(&list[i])
	}
	return out, nil
}

// RefreshNeighbor implements api.Node.
func (d *Daemon) RefreshNeighbor(ctx context.Context, addr netip.Addr, in, out bool) ([]string, error) {
	if d.speaker == nil {
		return nil, errNoBGP()
	}
	families, err := d.speaker.Refresh(ctx, addr, in, out)
	switch {
	case errors.Is(err, bgp.ErrNoNeighbor):
		return nil, api.NotFound("%s is not a configured neighbour", addr)
	case errors.Is(err, bgp.ErrDown):
		return nil, api.Precondition(api.ReasonNotRunning, "%v", err)
	case errors.Is(err, bgp.ErrNoRefresh):
		return nil, api.Precondition(api.ReasonNotOffered, "%v", err)
	case err != nil:
		return nil, bgpError(err)
	}
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.String()
	}
	return names, nil
}

func neighborMessage(n *bgp.NeighborStatus) *pncv1.Neighbor {
	out := &pncv1.Neighbor{
		Address: n.Address.String(), PeerAs: n.PeerAS, LocalAs: n.LocalAS, State: n.State.String(), Since: stamp(n.Since),
		Received: n.Received, Advertised: n.Advertised, LastError: n.LastError, Flaps: n.Flaps,
		NhcReceived: uint64(n.NHCReceived), PncBelieved: uint64(n.PNCBelieved), NhcDisregarded: map[string]uint64{},
		Md5: n.MD5, TtlMin: uint32(n.TTLMin), Passive: n.Passive, Description: n.Description,
		HoldTime: uint32(n.HoldTime.Seconds()), Refused: n.Refused, Shutdown: n.Shutdown,
		Stale: uint64(n.Stale), StaleUntil: stamp(n.StaleUntil),
		RestartTime: uint32(n.RestartTime.Seconds()), LongLivedTime: uint32(n.LongLivedTime.Seconds()),
	}
	if n.Range.IsValid() {
		out.Range = n.Range.String()
	}
	if n.LocalAddress.IsValid() {
		out.LocalAddress, out.LocalPort, out.RemotePort = n.LocalAddress.String(), uint32(n.LocalPort), uint32(n.RemotePort)
	}
	out.MessagesSent, out.MessagesReceived = messageCounts(n.Messages.Sent), messageCounts(n.Messages.Received)
	if n.RouterID.IsValid() {
		out.RouterId = n.RouterID.String()
	}
	for _, f := range n.Families {
		out.Families = append(out.Families, f.String())
	}
	for reason, count := range n.Disregarded {
		out.NhcDisregarded[reason.String()] = count
	}
	out.Malformed, out.Faults = findings(n), n.Faults
	return out
}

// findings counts what was wrong in a neighbour's messages, with every kind.
func findings(n *bgp.NeighborStatus) map[string]uint64 {
	m := map[string]uint64{}
	for _, k := range guard.Kinds() {
		m[k.String()] = n.Findings[k]
	}
	return m
}

func messageCounts(c bgp.MessageCounts) map[string]uint64 {
	return map[string]uint64{
		"open": c.Opens, "update": c.Updates, "notification": c.Notifications, "keepalive": c.Keepalives, "refresh": c.Refreshes,
	}
}

// advertiser answers the API about what is originated.
type advertiser struct{ d *Daemon }

var modes = map[pncv1.OriginationMode]bgp.Mode{
	pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE: bgp.ModeOriginate,
	pncv1.OriginationMode_ORIGINATION_MODE_INLINE:    bgp.ModeInline,
	pncv1.OriginationMode_ORIGINATION_MODE_PATH:      bgp.ModePath,
	pncv1.OriginationMode_ORIGINATION_MODE_PREFER:    bgp.ModePrefer,
}

func modeMessage(m bgp.Mode) pncv1.OriginationMode {
	for message, mode := range modes {
		if mode == m {
			return message
		}
	}
	return pncv1.OriginationMode_ORIGINATION_MODE_UNSPECIFIED
}

// Advertise implements api.Advertiser. Without a proxy address it takes the node's own, of the prefix's
// family if there is one.
func (a advertiser) Advertise(_ context.Context, req api.Advertise) (*pncv1.Advertisement, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	o := bgp.OriginateConfig{
		Context: req.Context, Prefix: req.Prefix, Mode: modes[req.Mode], Proxy: req.Proxy, NextHop: req.NextHop, From: req.From,
	}
	if p := a.d.config.Load().Proxy; p != nil && !o.Proxy.IsValid() {
		o.Proxy = p.AddressFor(req.Prefix).Addr
	}
	if !o.Proxy.IsValid() {
		return nil, api.Invalid("proxy", "required: this node has no proxy address configured")
	}
	cfg, _ := a.d.withSources(a.d.config.Load())
	// Inside a context nothing is translated, whatever is announced there.
	if p := cfg.Proxy; p != nil && o.Context == "" && (o.Proxy == p.IPv4.Addr || o.Proxy == p.IPv6.Addr) && !serves(p, o.Prefix) {
		return nil, api.Invalid("prefix", "%s is in none of proxy.senders: this proxy would refuse every notification about it; add it there with mode none, or name the proxy that serves it", o.Prefix)
	}
	err := a.d.speaker.Advertise(o, req.Lease)
	if err != nil {
		return nil, bgpError(err)
	}
	a.d.followReadiness() // so that the answer says why it is held back, if it is
	for _, st := range a.d.speaker.Advertisements() {
		if st.Prefix == req.Prefix && st.Context == req.Context {
			return a.d.advertisement(&st), nil
		}
	}
	return nil, api.NotFound("the advertisement of %s was withdrawn meanwhile", req.Prefix)
}

// Withdraw implements api.Advertiser.
func (a advertiser) Withdraw(_ context.Context, vpn string, prefix netip.Prefix) error {
	if a.d.speaker == nil {
		return api.Precondition(api.ReasonNotConfigured, "the configuration has no bgp section")
	}
	return bgpError(a.d.speaker.Withdraw(vpn, prefix))
}

// Advertisements implements api.Advertiser.
func (a advertiser) Advertisements() []*pncv1.Advertisement {
	if a.d.speaker == nil {
		return nil
	}
	list := a.d.speaker.Advertisements()
	_, sources := a.d.withSources(a.d.config.Load())
	out := make([]*pncv1.Advertisement, len(list))
	for i := range list {
		out[i] = a.d.advertisement(&list[i])
		if s := sources[list[i].Prefix]; s != nil && list[i].Configured && list[i].Context == "" {
			out[i].FollowedFrom = routeSource(s).String()
		}
	}
	return out
}

func (a advertiser) check() error {
	if a.d.speaker == nil {
		return api.Precondition(api.ReasonNotConfigured, "the configuration has no bgp section")
	}
	if !a.d.Enabled() {
		return api.Precondition(api.ReasonDisabled, "the mechanism is disabled")
	}
	return nil
}

func (d *Daemon) advertisement(s *bgp.AdvertisementStatus) *pncv1.Advertisement {
	return d.heldBack(advertisementMessage(s), readiness.Key{Context: s.Context, Prefix: s.Prefix})
}

func advertisementMessage(s *bgp.AdvertisementStatus) *pncv1.Advertisement {
	out := &pncv1.Advertisement{
		Prefix: s.Prefix.String(), Mode: modeMessage(s.Mode), Proxy: s.Proxy.String(),
		Active: s.Active, InactiveReason: s.InactiveReason, Configured: s.Configured,
		Context: s.Context, RouteDistinguisher: s.RD,
	}
	if s.NextHop.IsValid() {
		out.NextHop = s.NextHop.String()
	}
	if !s.Expires.IsZero() {
		out.ExpiresAt = stamp(s.Expires)
	}
	return out
}
