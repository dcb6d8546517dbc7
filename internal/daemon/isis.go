package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/host"
	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/auth"
	"pncd/igp/isis/packet"
	"pncd/igp/isis/speaker"
	"pncd/internal/config"
	"pncd/pnc"
	"pncd/proxyagent/readiness"
)

// isisPart is the IS-IS system, and what brings it the state of its interfaces.
type isisPart struct {
	*speaker.Speaker
	links  *host.Interfaces
	attach *attachment
	log    logrus.FieldLogger

	mu       sync.Mutex
	marked   []igp.Advertisement
	circuits []string         // names of their interfaces
	errs     map[string]error // why a circuit whose link is up isn't used
}

func (d *Daemon) newISIS(c *config.Config) (*isisPart, error) {
	settings, err := isisSettings(c, d.node)
	if err != nil {
		return nil, err
	}
	log := d.log.WithField("part", "isis")
	p := &isisPart{log: log, errs: map[string]error{}, circuits: circuitNames(settings), attach: newAttachment(isisVeths(c.ISIS), log)}
	if p.Speaker, err = speaker.NewSpeaker(settings, d.isisLearned, log); err != nil {
		return nil, err
	}
	p.links = host.NewInterfaces(host.InterfacesConfig{Names: p.circuits, OnChange: p.linksChanged}, log)
	return p, nil
}

func circuitNames(c speaker.Config) (names []string) {
	for _, x := range c.Circuits {
		names = append(names, x.Name)
	}
	return names
}

// reconfigure changes the running system and the interfaces that are followed.
func (p *isisPart) reconfigure(ctx context.Context, c speaker.Config, veths map[string]host.VethConfig) error {
	if err := p.Reconfigure(ctx, c); err != nil {
		return err
	}
	names := circuitNames(c)
	p.mu.Lock()
	p.circuits = names
	maps.DeleteFunc(p.errs, func(name string, _ error) bool { return !slices.Contains(names, name) })
	p.mu.Unlock()
	p.links.Follow(names)
	p.attach.want(veths)
	return nil
}

// Run speaks until ctx ends, on interfaces that it makes where it is told to.
func (p *isisPart) Run(ctx context.Context) error {
	attaching, detach := context.WithCancel(context.Background())
	attached := make(chan error, 1)
	go func() { attached <- p.attach.run(attaching) }()
	err := p.speak(ctx)
	detach()
	return errors.Join(err, <-attached)
}

// speak follows the interfaces as long as the speaker purges what it announced.
func (p *isisPart) speak(ctx context.Context) error {
	following, stop := context.WithCancel(context.Background())
	followed := make(chan error, 1)
	go func() { followed <- p.links.Run(following) }()
	spoke := make(chan error, 1)
	speaking, hush := context.WithCancel(ctx)
	defer hush()
	go func() { spoke <- p.Speaker.Run(speaking) }()
	select {
	case err := <-spoke:
		stop()
		return errors.Join(err, <-followed)
	case err := <-followed: // not told to: nothing is known of the interfaces any more
		stop()
		hush()
		return errors.Join(err, <-spoke)
	}
}

// linksChanged tells the speaker the state of its interfaces; one that isn't there is down.
func (p *isisPart) linksChanged(now map[string]host.Interface) {
	p.mu.Lock()
	names := p.circuits
	p.mu.Unlock()
	p.attach.linksChanged(now)
	for _, name := range names {
		i, there := now[name]
		l := speaker.Link{}
		if there && i.Up && i.Carrier && len(i.MAC) == 6 {
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
		err := p.LinkChanged(context.Background(), name, l)
		if errors.Is(err, speaker.ErrStopped) {
			return
		}
		if err != nil {
			p.log.WithError(err).WithField("circuit", name).Error("the circuit can't be used")
		}
		p.mu.Lock()
		p.errs[name] = err
		if !there {
			p.errs[name] = cmp.Or(p.attach.err(name), errors.New("there is no such interface"))
		}
		p.mu.Unlock()
	}
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
		password := k.Password
		if k.PasswordFile != "" {
			if password, err = firstLine(k.PasswordFile); err != nil {
				return c, &config.Error{Problems: []config.Problem{{Key: fmt.Sprintf("isis: %s: password_file of key %d", name, i), Rule: err.Error()}}}
			}
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

// firstLine is what a password file holds.
func firstLine(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line == "" {
		return "", errors.New("the first line is empty")
	}
	return line, nil
}

// isisLearned brings what IS-IS knows to the table: every prefix, for one without the P flag can hide a
// shorter one with it.
func (d *Daemon) isisLearned(list []igp.Learned) {
	now := d.now()
	accept := prefixes(d.config.Load().ISIS.AcceptProxies)
	updates := make([]pnc.Update, 0, len(list))
	var rejected []pnc.Event
	for _, l := range list {
		u := pnc.Update{Withdraw: l.Gone, Route: pnc.Route{
			Prefix: l.Prefix, Source: pnc.SourceISIS, Originator: l.Originator, Peer: l.Originator, PathID: uint32(l.Level), Metric: l.Cost,
		}}
		if l.P {
			r := &u.Route
			r.Proxy = l.Proxy
			detail := ""
			if r.Disregarded, detail = judgeProxy(l.Proxy, accept); r.Disregarded != pnc.DisregardNone {
				rejected = append(rejected, pnc.Event{Kind: pnc.EventDisregarded, Route: *r, Reason: r.Disregarded, Detail: detail})
			}
		}
		updates = append(updates, u)
	}
	d.table.Apply(now, updates...)
	for _, e := range rejected {
		d.table.Disregard(now, e)
	}
}

// judgeProxy says why the proxy that a P flag names is not believed.
func judgeProxy(proxy netip.Addr, accept []netip.Prefix) (pnc.DisregardReason, string) {
	if !proxy.IsValid() {
		return pnc.DisregardInvalidProxyAddress, "the originator says no address: neither a source router ID nor a TE router ID"
	}
	if err := pnc.CheckProxy(proxy); err != nil {
		return pnc.DisregardInvalidProxyAddress, err.Error()
	}
	if len(accept) > 0 && !slices.ContainsFunc(accept, func(p netip.Prefix) bool { return p.Contains(proxy) }) {
		return pnc.DisregardProxyNotAccepted, "isis.accept_proxies has no prefix with " + proxy.String()
	}
	return pnc.DisregardNone, ""
}

// setMarking lets IS-IS mark prefixes, or takes all marks away.
func (d *Daemon) setMarking(on bool) {
	d.marking.Store(on)
	cfg, _ := d.withSources(d.config.Load())
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	d.mark(cfg)
}

// mark lets IS-IS mark the prefixes that this proxy serves and is ready for. It needs senders.mu.
func (d *Daemon) mark(c *config.Config) {
	if d.isis == nil {
		return
	}
	var ads []igp.Advertisement
	if d.marking.Load() && c.ISIS.Advertise && c.Proxy != nil {
		always := readinessConfig(c.Proxy).Always
		for key, proxy := range d.senders.own {
			st, known := d.senders.book.Get(key)
			if key.Context == "" && (always || known && st.State.Announced()) {
				ads = append(ads, igp.Advertisement{Prefix: key.Prefix, Proxy: proxy})
			}
		}
	}
	slices.SortFunc(ads, func(a, b igp.Advertisement) int { return a.Prefix.Compare(b.Prefix) })
	p := d.isis
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.marked, ads) {
		p.marked = ads
		p.Advertise(ads)
	}
}

// marks reports whether IS-IS marks a sender although BGP doesn't announce it.
func marks(c *config.Config, k readiness.Key) bool {
	return c.ISIS != nil && c.ISIS.Advertise && k.Context == ""
}

// checkISIS says which of the changed keys of a reload need a restart: those that say who this system is, and
// those that would end adjacencies.
func checkISIS(old, next *config.ISIS) (keys []string) {
	if (old == nil) != (next == nil) {
		return []string{"isis: added or removed as a whole"}
	}
	if old == nil {
		return nil
	}
	changed := func(key string, was, is any) {
		if a, b := fmt.Sprint(was), fmt.Sprint(is); a != b {
			keys = append(keys, "isis."+key+": "+a+" -> "+b)
		}
	}
	changed("net", old.NET, next.NET)
	changed("areas", old.Areas, next.Areas)
	changed("level", old.Level, next.Level)
	changed("flag", old.Flag, next.Flag)
	changed("multi_topology", old.MultiTopology, next.MultiTopology)
	changed("max_lsps", old.MaxLSPs, next.MaxLSPs)
	for _, x := range old.Circuits {
		i := slices.IndexFunc(next.Circuits, func(y config.ISISCircuit) bool { return x.Interface == y.Interface })
		if i < 0 {
			continue
		}
		at, y := "circuits["+x.Interface+"].", next.Circuits[i]
		changed(at+"type", x.Type, y.Type)
		changed(at+"level", x.Level, y.Level)
	}
	return keys
}

// reconfigureISIS applies what can change; next is the configuration that is in force already.
func (d *Daemon) reconfigureISIS(ctx context.Context, old, next *config.ISIS, settings speaker.Config) {
	if d.isis == nil {
		return
	}
	if err := d.isis.reconfigure(ctx, settings, isisVeths(next)); err != nil {
		d.log.WithError(err).Error("isis: the settings were not changed")
	}
	if !slices.Equal(old.AcceptProxies, next.AcceptProxies) {
		if err := d.isis.Replay(ctx); err != nil {
			d.log.WithError(err).Error("isis: what was learned is not judged again")
		}
	}
}
