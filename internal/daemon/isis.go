package daemon

import (
	"context"
	"net/netip"
	"slices"

	"pncd/dataplane/host"
	"pncd/igp/backoff"
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/auth"
	"pncd/igp/isis/packet"
	"pncd/igp/isis/speaker"
	"pncd/internal/config"
	"pncd/pnc"
)

// isisProtocol is IS-IS. It carries the proxy's address in a sub-TLV of either family, whatever the prefix is.
var isisProtocol = protocol{
	name: "isis", link: "circuit", source: pnc.SourceISIS,
	policy: func(c *config.Config) *igpPolicy {
		if c.ISIS == nil {
			return nil
		}
		return &igpPolicy{c.ISIS.Advertise, c.ISIS.AcceptProxies}
	},
	carries: func(prefix, proxy netip.Addr) bool { return true },
}

// isisPart is the IS-IS system.
type isisPart struct {
	*igpPart
	*speaker.Speaker
}

func (d *Daemon) newISIS(c *config.Config) error {
	settings, err := isisSettings(c, d.node)
	if err != nil {
		return err
	}
	p := &isisPart{igpPart: d.newIGP(isisProtocol, circuitNames(settings))}
	if p.Speaker, err = speaker.NewSpeaker(settings, d.learned(isisProtocol), p.log); err != nil {
		return err
	}
	p.igpPart.speaker, p.changed, p.stopped, d.isis = p.Speaker, p.linkChanged, speaker.ErrStopped, p
	return nil
}

func circuitNames(c speaker.Config) (names []string) {
	for _, x := range c.Circuits {
		names = append(names, x.Name)
	}
	return names
}

// change reads what a configuration changes.
func (p *isisPart) change(next *config.Config, node string) (igpChange, error) {
	settings, err := isisSettings(next, node)
	return igpChange{part: p.igpPart, names: circuitNames(settings), apply: func(ctx context.Context) error { return p.Reconfigure(ctx, settings) }}, err
}

// linkChanged tells the speaker the state of a circuit's interface.
func (p *isisPart) linkChanged(ctx context.Context, name string, i *host.Interface) error {
	l := speaker.Link{}
	if i != nil && len(i.MAC) == 6 {
		l = speaker.Link{Up: true, Index: i.Index, MTU: i.MTU, MAC: [6]byte(i.MAC)}
		for _, a := range i.Addresses {
			switch a := a.Addr(); {
			case a.Is4():
				l.IPv4 = append(l.IPv4, a)
			case a.IsLinkLocalUnicast():
				l.IPv6 = append(l.IPv6, a)
			}
		}
	}
	return p.LinkChanged(ctx, name, l)
}

var (
	isisLevels   = map[string]uint8{"level-1": packet.Level1, "level-2": packet.Level2, "level-1-2": packet.Level12}
	isisPaddings = map[string]adjacency.Padding{"never": adjacency.PadNever, "until-up": adjacency.PadUntilUp, "always": adjacency.PadAlways}
)

// isisSettings reads the passwords that are in files: an unreadable one is an error.
func isisSettings(c *config.Config, node string) (speaker.Config, error) {
	s := c.ISIS
	out := speaker.Config{
		Levels: isisLevels[s.Level], Hostname: s.Hostname, Flag: s.Flag, LinkMetric: s.LinkMetric, PrefixMetric: s.PrefixMetric,
		LSPSize: s.LSPSize, MultiTopology: s.MultiTopology, MaxLSPs: s.MaxLSPs,
		LSPLifetime: s.Timers.LSPLifetime.Duration, Refresh: s.Timers.Refresh.Duration,
		Generation: backoff.Config{Initial: s.Timers.GenInitial.Duration, Second: s.Timers.GenSecond.Duration, Max: s.Timers.Generation.Duration},
		SPF:        backoff.Config{Initial: s.Timers.SPFInitial.Duration, Second: s.Timers.SPFSecond.Duration, Max: s.Timers.SPF.Duration},
		Retransmit: s.Timers.Retransmit.Duration, PSNP: s.Timers.PSNP.Duration, CSNP: s.Timers.CSNP.Duration,
	}
	if out.Hostname == "" {
		out.Hostname = node
	}
	area, system, err := packet.ParseNET(s.NET)
	if err != nil {
		return out, err // the configuration's check holds it
	}
	out.System, out.Areas = system, []packet.Area{area}
	for _, text := range s.Areas {
		if area, err = packet.ParseArea(text); err != nil {
			return out, err
		}
		out.Areas = append(out.Areas, area)
	}
	levels, circuits, err := isisKeys(s)
	if err != nil {
		return out, err
	}
	out.Authentication = levels
	for _, x := range s.Circuits {
		out.Circuits = append(out.Circuits, speaker.CircuitConfig{
			Name: x.Interface, LAN: x.Type == "broadcast", Levels: isisLevels[x.Level], Padding: isisPaddings[x.Padding],
			Hello: x.Hello.Duration, Multiple: x.Multiplier, Priority: x.Priority, Authentication: circuits[x.Interface],
		})
	}
	return out, out.Check()
}

// isisKeys gives the chains of the levels and of the circuits.
func isisKeys(s *config.ISIS) (levels map[uint8]auth.Chain, circuits map[string]auth.Chain, err error) {
	levels, circuits = map[uint8]auth.Chain{}, map[string]auth.Chain{}
	if levels[packet.Level1], err = isisChain("level_1_keys", s.Level1Keys); err != nil {
		return nil, nil, err
	}
	if levels[packet.Level2], err = isisChain("level_2_keys", s.Level2Keys); err != nil {
		return nil, nil, err
	}
	for _, x := range s.Circuits {
		if circuits[x.Interface], err = isisChain("keys of circuit "+x.Interface, x.Keys); err != nil {
			return nil, nil, err
		}
	}
	return levels, circuits, nil
}

// isisChain sends the first key, and accepts all.
func isisChain(name string, keys []config.Key) (c auth.Chain, err error) {
	for i, k := range keys {
		password, err := secret(k, "isis: "+name, i)
		if err != nil {
			return c, err
		}
		algorithm, err := auth.ParseAlgorithm(k.Algorithm)
		if err != nil {
			return c, err // the configuration's check holds it
		}
		c.Accept = append(c.Accept, auth.Key{ID: k.ID, Algorithm: algorithm, Secret: password})
	}
	if len(c.Accept) > 0 {
		c.Send = c.Accept[0]
	}
	return c, nil
}

// checkISIS says which of the changed keys of a reload need a restart: those that say who this system is, and
// those that would end adjacencies.
func checkISIS(old, next *config.ISIS) []string {
	f := &fixed{section: "isis"}
	if !f.whole(old != nil, next != nil) {
		return f.keys
	}
	f.key("net", old.NET, next.NET)
	f.key("areas", old.Areas, next.Areas)
	f.key("level", old.Level, next.Level)
	f.key("flag", old.Flag, next.Flag)
	f.key("multi_topology", old.MultiTopology, next.MultiTopology)
	f.key("max_lsps", old.MaxLSPs, next.MaxLSPs)
	for _, x := range old.Circuits {
		i := slices.IndexFunc(next.Circuits, func(y config.ISISCircuit) bool { return x.Interface == y.Interface })
		if i < 0 {
			continue
		}
		at, y := "circuits["+x.Interface+"].", next.Circuits[i]
		f.key(at+"type", x.Type, y.Type)
		f.key(at+"level", x.Level, y.Level)
	}
	return f.keys
}
