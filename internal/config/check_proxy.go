package config

import (
	"net/netip"
	"slices"
	"time"
)

func (c *checker) proxy(p *Proxy, b *BGP) {
	c.want(p.IPv4.IsValid() || p.IPv6.IsValid(), "proxy", "ipv4 or ipv6 is required: where notifications arrive")
	c.family("proxy.ipv4", p.IPv4, true, "IPv4")
	c.family("proxy.ipv6", p.IPv6, false, "IPv6")
	c.notificationPort("proxy.port", p.Port)
	if p.NRP != nil {
		c.format2Port("proxy", p.PortFormat2, p.Port)
	}
	c.want(len(p.Taps) > 0, "proxy.taps", "required: the interfaces on which RoCEv2 traffic passes, on both sides")
	c.interfaces("proxy.taps", p.Taps)
	c.oneOf("proxy.tap", p.Tap, TapAuto, TapRing, TapTCX, TapClsact, TapXDP)
	c.within("proxy.tap_ring", p.TapRing, 1, 1024)
	c.within("proxy.tap_flows", p.TapFlows, 1024, 1<<24)
	c.advise(p.Tap != TapRing || find(c.root, "proxy.tap_flows") == nil, "proxy.tap_flows", "not with tap: ring: there is no map of the kernel's to hold flows")
	tunnels := map[string]bool{}
	for i, name := range p.TapTunnels {
		at := index("proxy.tap_tunnels", i)
		c.oneOf(at, name, TapTunnels...)
		c.want(!tunnels[name], at, "%q is given twice", name)
		tunnels[name] = true
	}
	c.want(len(p.Senders)+len(p.SenderSources) > 0, "proxy.senders", "required, or sender_sources: the prefixes that this proxy serves")
	type place struct {
		context string
		prefix  netip.Prefix
	}
	seen := map[place]int{}
	for i := range p.Senders {
		s, at := &p.Senders[i], index("proxy.senders", i)
		c.sender(at, s, b)
		first, twice := seen[place{s.Context, s.Prefix.Prefix}]
		c.want(!twice, at+".prefix", "%s is senders[%d] already", s.Prefix, first)
		seen[place{s.Context, s.Prefix.Prefix}] = i
	}
	c.senderSources(p, b)
	c.want(len(p.AcceptFrom) > 0, "proxy.accept_from", "required: the congestion nodes of the domain")
	c.interfaces("proxy.accept_interfaces", p.AcceptInterfaces)
	c.oneOf("proxy.advertise", p.Advertise, AdvertiseAlways, AdvertiseWhenReady)
	c.readiness(&p.Readiness)
	c.oneOf("proxy.translate", p.Translate, TranslateUser, TranslateKernel)
	c.interfaces("proxy.translate_interfaces", p.TranslateInterfaces)
	c.want(p.Translate != TranslateKernel || len(p.TranslateInterfaces) > 0, "proxy.translate_interfaces", "required with translate: kernel: where notifications come in and CNPs leave")
	for i, name := range p.TranslateInterfaces {
		c.want(p.Translate != TranslateKernel || p.Tap != TapXDP || !slices.Contains(p.Taps, name), index("proxy.translate_interfaces", i),
			"%s is one of proxy.taps with tap: xdp, and an interface has room for one XDP program: choose another proxy.tap", name)
	}
	c.within("proxy.translate_records", p.TranslateRecords, 1, 1_000_000)
	inUser := p.Translate == TranslateUser
	c.advise(!inUser || len(p.TranslateInterfaces) == 0, "proxy.translate_interfaces", "only with translate: kernel: notifications are translated in user space, whatever they come in by")
	c.advise(!inUser || p.TranslateRecords == 1, "proxy.translate_records", "only with translate: kernel: what is translated in user space is recorded each time")
	c.span("proxy.pace.window", p.Pace.Window, time.Microsecond, time.Second)
	c.within("proxy.pace.per_qp", p.Pace.PerQP, 1, 1_000_000)
	c.within("proxy.pace.total", p.Pace.Total, 1, 100_000_000)
	c.within("proxy.pace.burst", p.Pace.Burst, 1, 10_000_000)
	c.within("proxy.pace.qps", p.Pace.QPs, 16, 1<<24)
	c.within("proxy.map.entries", p.Map.Entries, 16, 1<<26)
	c.span("proxy.map.age", p.Map.Age, time.Second, 24*time.Hour)
	c.within("proxy.cnp.tos", int(p.CNP.TOS), 1, 255)
	c.want(p.CNP.TOS&3 != 3, "proxy.cnp.tos", "%#x marks CNPs themselves as Congestion Experienced (RFC 3168)", p.CNP.TOS)
	c.within("proxy.cnp.p_key", int(p.CNP.PKey), 1, 0xFFFF)
	c.within("proxy.cnp.ttl", int(p.CNP.TTL), 1, 255)
	c.oneOf("proxy.emit", p.Emit, EmitRaw, EmitPacket)
}

func (c *checker) readiness(r *Readiness) {
	const at = "proxy.readiness."
	c.want(r.TrafficWithin.Duration == 0 || r.TrafficWithin.Duration >= time.Second && r.TrafficWithin.Duration <= 7*24*time.Hour,
		at+"traffic_within", "%s is neither 0s nor between 1s and 168h0m0s", r.TrafficWithin)
	c.within(at+"loss_max", r.LossMax, 0, 100)
	c.span(at+"window", r.Window, time.Second, time.Hour)
	c.span(at+"withdraw_after", r.WithdrawAfter, 0, time.Hour)
	c.span(at+"announce_after", r.AnnounceAfter, 0, time.Hour)
	d := &r.Damping
	c.want(d.HalfLife.Duration == 0 || d.HalfLife.Duration >= time.Second && d.HalfLife.Duration <= time.Hour,
		at+"damping.half_life", "%s is neither 0s nor between 1s and 1h0m0s", d.HalfLife)
	c.within(at+"damping.suppress", d.Suppress, 1000, 20_000)
	c.within(at+"damping.reuse", d.Reuse, 1, 20_000)
	c.want(d.Reuse < d.Suppress, at+"damping.reuse", "%d is not less than suppress, %d", d.Reuse, d.Suppress)
}

func (c *checker) sender(at string, s *Sender, b *BGP) {
	c.want(s.Prefix.IsValid(), at+".prefix", "required")
	c.senders(at+".prefix", s.Prefix)
	c.want(s.Mode == "none" || !s.Prefix.IsValid() || s.Prefix.Bits() > 0, at+".prefix", "a default route can't be announced with PNC; mode none serves it")
	c.announced(at, s, b)
}

// announced checks how a sender is announced, and whether it can be.
func (c *checker) announced(at string, s *Sender, b *BGP) {
	c.oneOf(at+".mode", s.Mode, "inline", "originate", "path", "prefer", "none")
	if s.Mode == "none" {
		return
	}
	c.want(b != nil, at+".mode", "%q needs the bgp section; mode none serves the prefix without announcing it", s.Mode)
	c.beyondHost(at+".proxy", s.Proxy)
	switch s.Mode {
	case "originate":
		c.want(!s.From.IsValid(), at+".from", "only for inline, path and prefer")
		c.want(s.NextHop.IsValid(), at+".next_hop", "required with mode originate: where traffic to the prefix goes, normally the router's loopback")
		c.nextHop(at+".next_hop", s)
		c.beyondHost(at+".next_hop", s.NextHop)
	case "inline", "path", "prefer":
		c.want(!s.NextHop.IsValid(), at+".next_hop", "only for originate: this mode keeps the router's")
		c.want(s.From.IsValid(), at+".from", "required: the neighbour whose announcement is followed")
		if b != nil && s.From.IsValid() {
			c.want(b.has(s.From.Addr), at+".from", "%s is not one of bgp.neighbors", s.From)
		}
	}
}

// nextHop checks the next hop's family against the prefix's. An IPv6 next hop of an IPv4 prefix needs
// RFC 8950, an IPv4 next hop of an IPv6 prefix is for VPNs over an IPv4 core (RFC 4659 section 3.2.1.2).
func (c *checker) nextHop(key string, s *Sender) {
	if !s.Prefix.IsValid() {
		return // of a source: held against each prefix when there is one
	}
	four, nextFour := s.Prefix.Addr().Is4(), s.NextHop.Is4()
	switch {
	case !s.NextHop.IsValid(), four == nextFour:
	case four:
		c.want(s.Context == "", key, "%s is IPv6 and the VPN's prefix is IPv4", s.NextHop)
	default:
		c.want(s.Context != "", key, "%s is IPv4 and the prefix is IPv6", s.NextHop)
	}
}

// has says whether a neighbour of this address is configured.
func (b *BGP) has(a netip.Addr) bool {
	for i := range b.Neighbors {
		if b.Neighbors[i].Address.Addr == a {
			return true
		}
	}
	return false
}
