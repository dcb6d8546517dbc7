package daemon

import (
	"context"
	"net/netip"
	"time"

	"pncd/dataplane/host"
	"pncd/igp/backoff"
	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/speaker"
	"pncd/internal/config"
	"pncd/pnc"
)

// The two versions carry a proxy's address of their own family alone, for prefixes of that family (RFC 9084 section
// 2.2).
var (
	ospfv2Protocol = protocol{
		name: "ospfv2", link: "link", source: pnc.SourceOSPF,
		policy:  func(c *config.Config) *igpPolicy { return ospfPolicy(c.OSPFv2) },
		carries: func(prefix, proxy netip.Addr) bool { return prefix.Is4() && proxy.Is4() },
	}
	ospfv3Protocol = protocol{
		name: "ospfv3", link: "link", source: pnc.SourceOSPF,
		policy:  func(c *config.Config) *igpPolicy { return ospfPolicy(c.OSPFv3) },
		carries: func(prefix, proxy netip.Addr) bool { return prefix.Is6() && proxy.Is6() },
	}
)

func ospfPolicy(o *config.OSPF) *igpPolicy {
	if o == nil {
		return nil
	}
	return &igpPolicy{o.Advertise, o.AcceptProxies}
}

// ospfPart is the router of one version.
type ospfPart struct {
	*igpPart
	*speaker.Speaker
	version packet.Version
	marks   marks.Config // how its LSAs are read
	config  func(*config.Config) *config.OSPF
}

func (d *Daemon) newOSPF(c *config.Config) error {
	for _, p := range []*ospfPart{
		{version: packet.V2, config: func(c *config.Config) *config.OSPF { return c.OSPFv2 }},
		{version: packet.V3, config: func(c *config.Config) *config.OSPF { return c.OSPFv3 }},
	} {
		o := p.config(c)
		if o == nil {
			continue
		}
		settings, err := ospfSettings(o)
		if err != nil {
			return err
		}
		is := map[packet.Version]protocol{packet.V2: ospfv2Protocol, packet.V3: ospfv3Protocol}[p.version]
		p.igpPart = d.newIGP(is, linkNames(settings))
		if p.Speaker, err = speaker.NewSpeaker(settings, d.learned(is), p.log); err != nil {
			return err
		}
		p.marks = marks.Config{Version: p.version, Carrier: settings.Carrier}
		p.igpPart.speaker, p.changed, p.stopped = p.Speaker, p.linkChanged, speaker.ErrStopped
		d.ospf = append(d.ospf, p)
	}
	return nil
}

func linkNames(c speaker.Config) (names []string) {
	for _, x := range c.Links {
		names = append(names, x.Name)
	}
	return names
}

// change reads what a configuration changes.
func (p *ospfPart) change(next *config.Config) (igpChange, error) {
	settings, err := ospfSettings(p.config(next))
	return igpChange{part: p.igpPart, names: linkNames(settings), apply: func(ctx context.Context) error { return p.Reconfigure(ctx, settings) }}, err
}

// linkChanged tells the speaker the state of a link's interface.
func (p *ospfPart) linkChanged(ctx context.Context, name string, i *host.Interface) error {
	l := speaker.Link{}
	if i != nil {
		l = speaker.Link{Up: true, Index: i.Index, MTU: i.MTU, Address: ospfAddress(p.version, i.Addresses)}
	}
	return p.LinkChanged(ctx, name, l)
}

// ospfAddress chooses the address that a version speaks with: the lowest of IPv4, or the lowest link-local one.
func ospfAddress(v packet.Version, list []netip.Prefix) netip.Prefix {
	for _, a := range list {
		if v == packet.V2 && a.Addr().Is4() || v == packet.V3 && a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() {
			return a
		}
	}
	return netip.Prefix{}
}

var ospfAreaKinds = map[string]speaker.AreaKind{"normal": speaker.Normal, "stub": speaker.Stub, "nssa": speaker.NSSA}

// ospfSettings reads the passwords that are in files: an unreadable one is an error.
func ospfSettings(o *config.OSPF) (speaker.Config, error) {
	t := &o.Timers
	out := speaker.Config{
		Version: packet.Version(o.Version()), Router: packet.IDOf(o.RouterID.Addr), Carrier: ospfCarrier(&o.OSPFCarrier),
		LinkMetric: o.LinkMetric, MaxLSAs: o.MaxLSAs, NoHelp: !o.GracefulRestartHelper, Reoriginate: o.Reoriginate,
		MinLSInterval: t.MinLSInterval.Duration, MinLSArrival: t.MinLSArrival.Duration, Refresh: t.Refresh.Duration, AckDelay: t.AckDelay.Duration,
		SPF: backoff.Config{Initial: t.SPFInitial.Duration, Second: t.SPFSecond.Duration, Max: t.SPF.Duration},
	}
	for _, a := range o.Areas {
		out.Areas = append(out.Areas, speaker.AreaConfig{ID: packet.ID(a.ID), Kind: ospfAreaKinds[a.Type]})
	}
	for i := range o.Links {
		x := &o.Links[i]
		chain, err := ospfChain(o.Section()+": keys of link "+x.Interface, x.Keys)
		if err != nil {
			return out, err
		}
		out.Links = append(out.Links, speaker.LinkConfig{
			Name: x.Interface, Area: packet.ID(x.Area), Instance: x.Instance, Broadcast: x.Type == "broadcast",
			Hello: x.Hello.Duration, Dead: x.Dead.Duration, Retransmit: x.Retransmit.Duration, TransmitDelay: uint16(x.TransmitDelay.Duration / time.Second),
			MTUIgnore: x.MTUIgnore, MaxNeighbors: x.MaxNeighbors, Authentication: chain,
		})
	}
	return out, out.Check()
}

func ospfCarrier(c *config.OSPFCarrier) marks.Carrier {
	return marks.Carrier{TLVFlags: c.FlagMask, Bit: c.Flag} // without that carrier the mask is 0
}

// ospfChain sends the first key, and accepts all.
func ospfChain(where string, keys []config.OSPFKey) (c auth.Chain, err error) {
	for i, k := range keys {
		password, err := secret(k.Key, where, i)
		if err != nil {
			return c, err
		}
		algorithm, err := auth.ParseAlgorithm(k.Algorithm)
		if err != nil {
			return c, err // the configuration's check holds it
		}
		c.Accept = append(c.Accept, auth.Key{ID: k.ID, Algorithm: algorithm, Secret: password, BindSource: k.BindSource, SwapProtocolID: k.SwapProtocolID})
	}
	if len(c.Accept) > 0 {
		c.Send = c.Accept[0]
	}
	return c, nil
}

// checkOSPF says which of the changed keys of a reload need a restart: those that say who this router is, how it
// reads what others say, and how much it keeps.
func checkOSPF(section string, old, next *config.OSPF) []string {
	f := &fixed{section: section}
	if !f.whole(old != nil, next != nil) {
		return f.keys
	}
	f.key("router_id", old.RouterID, next.RouterID)
	f.carrier(&old.OSPFCarrier, &next.OSPFCarrier)
	f.key("max_lsas", old.MaxLSAs, next.MaxLSAs)
	return f.keys
}

func (f *fixed) carrier(old, next *config.OSPFCarrier) {
	f.key("carrier", old.Carrier, next.Carrier)
	f.key("flag", old.Flag, next.Flag)
	f.key("flag_mask", old.FlagMask, next.FlagMask)
}
