package config

import (
	"net/netip"
	"time"

	"go.yaml.in/yaml/v3"
)

// fillDefaults sets the defaults inside of sections that are present. A key that is present keeps its
// value, also where that is the zero value: then the check refuses it, instead of a default hiding it.
func (c *Config) fillDefaults(root *yaml.Node) {
	given := func(path string) bool { return find(root, path) != nil }
	if c.BGP != nil {
		c.BGP.fillDefaults(given)
	}
	if c.ISIS != nil {
		c.ISIS.fillDefaults(given, c.Node)
	}
	c.fillOSPF(given)
	if n := c.CongestionNode; n != nil {
		setDefault(given, "congestion_node.port", &n.Port, DefaultPort)
		setDefault(given, "congestion_node.port_format2", &n.PortFormat2, DefaultFormat2Port)
		setDefault(given, "congestion_node.dscp", &n.DSCP, 48)
		setDefault(given, "congestion_node.ttl", &n.TTL, 255)
		const p = "congestion_node.pace."
		setDefault(given, p+"window", &n.Pace.Window, Duration{DefaultPaceWindow})
		setDefault(given, p+"per_flow", &n.Pace.PerFlow, DefaultPacePerFlow)
		setDefault(given, p+"total", &n.Pace.Total, DefaultPaceTotal)
		setDefault(given, p+"burst", &n.Pace.Burst, DefaultPaceBurst)
		setDefault(given, p+"sample", &n.Pace.Sample, 1)
		setDefault(given, p+"flows", &n.Pace.Flows, DefaultPaceState)
		n.Detect.fillDefaults(given)
	}
	if c.Proxy != nil {
		mode := "originate"
		if c.BGP == nil {
			mode = "none"
		}
		c.Proxy.fillDefaults(given, mode)
	}
	c.fillBoundary(given)
}

func (b *BGP) fillDefaults(given func(string) bool) {
	setDefault(given, "bgp.port", &b.Port, DefaultBGPPort)
	setDefault(given, "bgp.pnc_code", &b.PNCCode, DefaultPNCCode)
	setDefault(given, "bgp.graceful_restart.restart_time", &b.GracefulRestart.RestartTime, Duration{DefaultRestartTime})
	setDefault(given, "bgp.graceful_restart.deferral_time", &b.GracefulRestart.DeferralTime, Duration{DefaultDeferral})
	setDefault(given, "bgp.graceful_restart.on_stop", &b.GracefulRestart.OnStop, OnStopWithdraw)
	setDefault(given, "bgp.graceful_restart.state_file", &b.GracefulRestart.StateFile, DefaultStateFile)
	for i := range b.Neighbors {
		n, at := &b.Neighbors[i], index("bgp.neighbors", i)
		setDefault(given, at+".port", &n.Port, DefaultBGPPort)
		setDefault(given, at+".connect_retry", &n.ConnectRetry, Duration{DefaultRetry})
		n.Session.fillDefaults(given, at, b.AS, n.Address.Is4())
	}
	for i := range b.BMPStations {
		setDefault(given, index("bgp.bmp_stations", i)+".policy", &b.BMPStations[i].Policy, BMPPrePolicy)
	}
	for i := range b.ListenRanges {
		r, at := &b.ListenRanges[i], index("bgp.listen_ranges", i)
		setDefault(given, at+".limit", &r.Limit, DefaultRangeLimit)
		r.Session.fillDefaults(given, at, b.AS, r.Prefix.Addr().Is4())
	}
}

// fillDefaults needs to know our AS and whether the neighbour's address is of IPv4.
func (s *Session) fillDefaults(given func(string) bool, at string, as uint32, ipv4 bool) {
	ibgp := s.AS == as
	setDefault(given, at+".local_as", &s.LocalAS, as)
	setDefault(given, at+".hold_time", &s.HoldTime, Duration{DefaultHoldTime})
	setDefault(given, at+".keepalive", &s.Keepalive, Duration{(s.HoldTime.Duration / 3).Truncate(time.Second)})
	setDefault(given, at+".graceful_restart", &s.GracefulRestart, true)
	if len(s.Families) == 0 && ipv4 {
		s.Families = []string{"ipv4-unicast"}
	} else if len(s.Families) == 0 {
		s.Families = []string{"ipv6-unicast"}
	}
	if s.SendNHC == nil {
		s.SendNHC = &ibgp
	}
}

// fillDefaults takes the mode of senders that name none.
func (p *Proxy) fillDefaults(given func(string) bool, mode string) {
	setDefault(given, "proxy.port", &p.Port, DefaultPort)
	setDefault(given, "proxy.port_format2", &p.PortFormat2, DefaultFormat2Port)
	if p.NRP != nil {
		setDefault(given, "proxy.nrp.entries", &p.NRP.Entries, DefaultNRPEntries)
	}
	setDefault(given, "proxy.tap", &p.Tap, TapAuto)
	setDefault(given, "proxy.tap_ring", &p.TapRing, 16)
	setDefault(given, "proxy.tap_flows", &p.TapFlows, DefaultMapEntries)
	setDefault(given, "proxy.advertise", &p.Advertise, AdvertiseAlways)
	p.Readiness.fillDefaults(given)
	setDefault(given, "proxy.translate", &p.Translate, TranslateUser)
	setDefault(given, "proxy.translate_records", &p.TranslateRecords, 1)
	setDefault(given, "proxy.pace.window", &p.Pace.Window, Duration{DefaultPaceWindow})
	setDefault(given, "proxy.pace.per_qp", &p.Pace.PerQP, DefaultPacePerFlow)
	setDefault(given, "proxy.pace.total", &p.Pace.Total, DefaultPaceTotal)
	setDefault(given, "proxy.pace.burst", &p.Pace.Burst, DefaultPaceBurst)
	setDefault(given, "proxy.pace.qps", &p.Pace.QPs, DefaultPaceState)
	setDefault(given, "proxy.map.entries", &p.Map.Entries, DefaultMapEntries)
	setDefault(given, "proxy.map.age", &p.Map.Age, Duration{DefaultMapAge})
	setDefault(given, "proxy.emit", &p.Emit, EmitRaw)
	setDefault(given, "proxy.cnp.tos", &p.CNP.TOS, 0xC2)
	setDefault(given, "proxy.cnp.ttl", &p.CNP.TTL, 64)
	setDefault(given, "proxy.cnp.p_key", &p.CNP.PKey, 0xFFFF)
	for i := range p.Senders {
		s, at := &p.Senders[i], index("proxy.senders", i)
		setDefault(given, at+".mode", &s.Mode, mode)
		if !s.Proxy.IsValid() {
			s.Proxy = p.AddressFor(s.Prefix.Prefix)
		}
	}
	for i := range p.SenderSources {
		setDefault(given, index("proxy.sender_sources", i)+".mode", &p.SenderSources[i].Mode, mode)
	}
}

func (r *Readiness) fillDefaults(given func(string) bool) {
	const at = "proxy.readiness."
	setDefault(given, at+"traffic_within", &r.TrafficWithin, Duration{DefaultTrafficWithin})
	setDefault(given, at+"loss_max", &r.LossMax, DefaultLossMax)
	setDefault(given, at+"window", &r.Window, Duration{DefaultLossWindow})
	setDefault(given, at+"withdraw_after", &r.WithdrawAfter, Duration{DefaultWithdrawAfter})
	setDefault(given, at+"announce_after", &r.AnnounceAfter, Duration{DefaultAnnounceAfter})
	setDefault(given, at+"damping.half_life", &r.Damping.HalfLife, Duration{DefaultHalfLife})
	setDefault(given, at+"damping.suppress", &r.Damping.Suppress, DefaultSuppress)
	setDefault(given, at+"damping.reuse", &r.Damping.Reuse, DefaultReuse)
}

// AddressFor returns the proxy's address of the prefix's family, else the other one.
func (p *Proxy) AddressFor(prefix netip.Prefix) Addr {
	own, other := p.IPv4, p.IPv6
	if prefix.IsValid() && !prefix.Addr().Is4() {
		own, other = other, own
	}
	if own.IsValid() {
		return own
	}
	return other
}

func setDefault[T any](given func(string) bool, key string, v *T, def T) {
	if !given(key) {
		*v = def
	}
}
