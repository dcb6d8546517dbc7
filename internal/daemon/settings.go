package daemon

import (
	"errors"
	"math"
	"net/netip"

	"pncd/bgp"
	"pncd/internal/config"
	"pncd/internal/version"
	"pncd/pnc"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/notifier"
	"pncd/proxyagent/nrpmap"
	"pncd/proxyagent/translator"
)

// The functions here say what a configuration means to each part.

// Check holds a configuration to the rules of the parts, beyond those that package config knows: it
// reads the files that it names, opens nothing and asks the kernel for nothing.
func Check(c *config.Config) error {
	var errs []error
	if c.BGP != nil {
		settings, err := bgpSettings(c)
		if err == nil {
			err = settings.Validate()
		}
		errs = append(errs, err)
	}
	if c.ISIS != nil {
		_, err := isisSettings(c, c.Node)
		errs = append(errs, err)
	}
	for _, o := range c.OSPFs() {
		_, err := ospfSettings(o)
		errs = append(errs, err)
	}
	if c.OSPFAPI != nil {
		errs = append(errs, ospfapiSettings(c.OSPFAPI).Check())
	}
	if c.CongestionNode != nil {
		errs = append(errs, notifierSettings(c.CongestionNode).Validate())
	}
	if c.Proxy != nil {
		errs = append(errs, translatorSettings(c.Proxy).Validate(), mapSettings(c.Proxy).Validate())
	}
	return errors.Join(errs...)
}

var sourceByName = map[string]pnc.Source{
	"static": pnc.SourceStatic, "bgp": pnc.SourceBGP, "isis": pnc.SourceISIS, "ospf": pnc.SourceOSPF,
}

func tableSettings(c *config.Config) pnc.Config {
	out := pnc.Config{
		AllowDefault: c.Resolve.DefaultRoute,
		Contexts:     contextNames(c),
		History:      c.Resolve.History,
		Rejected:     c.Resolve.History,
	}
	for _, name := range c.Resolve.Preference {
		out.Preference = append(out.Preference, sourceByName[name])
	}
	if c.Resolve.Share == "hash" {
		out.Share = pnc.ShareHash
	}
	return out
}

// staticRoutes numbers the routes of a prefix by path identifier, so that several proxies for one
// prefix are several routes.
func staticRoutes(c *config.Config) []pnc.Route {
	out := make([]pnc.Route, 0, len(c.Static))
	for i, s := range c.Static {
		out = append(out, pnc.Route{
			Context: s.Context, Prefix: s.Prefix.Prefix, Source: pnc.SourceStatic, Proxy: s.Proxy.Addr, Override: s.Override, PathID: uint32(i),
		})
	}
	return out
}

func notifierSettings(n *config.CongestionNode) notifier.Config {
	dscp := int(n.DSCP)
	if dscp == 0 {
		dscp = notifier.BestEffort
	}
	contexts := make(map[string]uint32, len(n.Contexts))
	for _, x := range n.Contexts {
		contexts[x.Name] = uint32(x.NRP)
	}
	return notifier.Config{
		Contexts: contexts, PortFormat2: n.PortFormat2,
		SourceIPv4: n.SourceIPv4.Addr, SourceIPv6: n.SourceIPv6.Addr,
		Port: n.Port, DSCP: dscp, TTL: n.TTL,
		SampleN: n.Pace.Sample, PaceWindow: n.Pace.Window.Duration, PerFlowPerSecond: n.Pace.PerFlow,
		TotalPerSecond: n.Pace.Total, TotalBurst: n.Pace.Burst, MaxFlows: n.Pace.Flows,
	}
}

func translatorSettings(p *config.Proxy) translator.Config {
	return translator.Config{
		AcceptFrom: prefixes(p.AcceptFrom), Interfaces: p.AcceptInterfaces, MinTTL: p.TTLMin,
		ServedPrefixes: p.ServedPrefixes(),
		PaceWindow:     p.Pace.Window.Duration, PerQPPerSecond: p.Pace.PerQP,
		TotalPerSecond: p.Pace.Total, TotalBurst: p.Pace.Burst, MaxQPs: p.Pace.QPs,
		CNPTOS: p.CNP.TOS, CNPTTL: p.CNP.TTL, CNPPKey: p.CNP.PKey,
		Sampled: p.Translate == config.TranslateKernel && p.TranslateRecords > 1,
	}
}

// translation gives the translator's settings with the VPNs that are on this host.
func (d *Daemon) translation(c *config.Config) translator.Config {
	if c.Proxy == nil {
		return translator.Config{}
	}
	out := translatorSettings(c.Proxy)
	out.Contexts = d.contexts.translated(c)
	return out
}

// nrpSettings gives the NRP map's entries and bound. Without the section there are none: what the API has set waits,
// unseen, for the section to come back, and nothing can be added.
func nrpSettings(p *config.Proxy) (list []nrpmap.Mapping, limit int) {
	if p.NRP == nil {
		return nil, math.MaxInt
	}
	for _, m := range p.NRP.Map {
		list = append(list, nrpmap.Mapping{
			Key:      nrpmap.Key{NRP: uint32(m.ID), Sender: m.Sender.Addr, Receiver: m.Receiver.Addr},
			SourceQP: uint32(m.SourceQP), Context: m.Context,
		})
	}
	return list, p.NRP.Entries
}

func mapSettings(p *config.Proxy) flowmap.Config {
	return flowmap.Config{
		MaxEntries: p.Map.Entries, AgeAfter: p.Map.Age.Duration, TapComplete: p.TapComplete, IgnoreVLAN: p.Map.IgnoreVLAN,
	}
}

// bgpSettings reads the passwords that are in files: an unreadable one is an error.
func bgpSettings(c *config.Config) (bgp.Config, error) {
	b := c.BGP
	out := bgp.Config{
		RouterID: b.RouterID.Addr, AS: b.AS, ListenPort: b.Port, ListenAddresses: addrs(b.Listen),
		PNCCode: b.PNCCode, AcceptProxies: prefixes(b.AcceptProxies), AcceptFrom: prefixes(b.AcceptFrom), PreferLocalPref: b.PreferLocalPref,
		Communities: communities(b.Communities), GobgpSocket: b.GobgpSocket,
	}
	out.Descr = "pncd " + version.Get().String()
	for i := range b.BMPStations {
		s := &b.BMPStations[i]
		out.Stations = append(out.Stations, bgp.Station{Address: s.AddrPort(), Statistics: s.Statistics.Duration})
	}
	out.Restart = restartSettings(&b.GracefulRestart)
	for i := range b.Neighbors {
		n, err := neighborSettings(&b.Neighbors[i])
		if err != nil {
			return bgp.Config{}, err
		}
		out.Neighbors = append(out.Neighbors, n)
	}
	for i := range b.ListenRanges {
		r, err := rangeSettings(&b.ListenRanges[i])
		if err != nil {
			return bgp.Config{}, err
		}
		out.Ranges = append(out.Ranges, r)
	}
	if c.Proxy != nil {
		out.Originate = originations(c.Proxy)
	}
	var err error
	out.Contexts, err = bgpContexts(c)
	return out, err
}

func neighborSettings(n *config.Neighbor) (bgp.NeighborConfig, error) {
	password := n.Password
	if n.PasswordFile != "" {
		var err error
		if password, err = firstLine(n.PasswordFile); err != nil {
			return bgp.NeighborConfig{}, &config.Error{Problems: []config.Problem{{Key: "password_file of neighbour " + n.Address.String(), Rule: err.Error()}}}
		}
	}
	out := bgp.NeighborConfig{
		Address: n.Address.Addr, Port: n.Port, PeerAS: n.AS, LocalAS: n.LocalAS, Description: n.Description,
		Passive: n.Passive, Password: password, TTLMin: n.TTLMin, EBGPMultihop: n.MultihopTTL,
		HoldTime: n.HoldTime.Duration, Keepalive: n.Keepalive.Duration, ConnectRetry: n.ConnectRetry.Duration,
		LocalAddress: n.LocalAddress.Addr, AddPath: n.AddPath, AcceptEBGP: n.AcceptEBGP, SendNHC: n.SendNHC,
		GracefulRestart: n.GracefulRestart, LongLivedRestart: n.LongLivedRestart.Duration, AllowOwnAS: n.AllowOwnAS,
		Border: n.Border, ImportPrefixes: prefixList(n.ImportPrefixes), ExportPrefixes: prefixList(n.ExportPrefixes),
		RequireCommunities: communities(n.RequireCommunities), AcceptProxies: prefixes(n.AcceptProxies), AcceptFrom: prefixes(n.AcceptFrom),
		MaxPrefixes: n.MaxPrefixes, Shutdown: n.Shutdown,
	}
	for _, f := range n.Families {
		out.Families = append(out.Families, familyByName[f])
	}
	return out, nil
}

func originations(p *config.Proxy) []bgp.OriginateConfig {
	var out []bgp.OriginateConfig
	for _, s := range p.Senders {
		mode, announced := bgp.ParseMode(s.Mode)
		if !announced {
			continue // mode none: served, not announced
		}
		out = append(out, bgp.OriginateConfig{
			Context: s.Context, Prefix: s.Prefix.Prefix, Mode: mode, Proxy: s.Proxy.Addr, NextHop: s.NextHop.Addr, From: s.From.Addr,
		})
	}
	return out
}

func prefixList(list []config.PrefixRule) (out bgp.PrefixList) {
	for _, r := range list {
		out = append(out, bgp.PrefixRule{Prefix: r.Prefix.Prefix, GE: r.GE, LE: r.LE, Deny: r.Deny})
	}
	return out
}

// communities reads what the configuration's check has found good.
func communities(list []string) (out []bgp.Community) {
	for _, s := range list {
		if c, err := bgp.ParseCommunity(s); err == nil {
			out = append(out, c)
		}
	}
	return out
}

func prefixes[P config.Prefix | config.InterfaceAddr](list []P) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(list))
	for _, p := range list {
		out = append(out, config.Prefix(p).Prefix)
	}
	return out
}

func addrs(list []config.Addr) []netip.Addr {
	out := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		out = append(out, a.Addr)
	}
	return out
}
