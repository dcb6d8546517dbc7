package daemon

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pncd/bgp"
	"pncd/internal/config"
	"pncd/proxyagent/readiness"
)

// senderReadiness follows which sender prefixes this proxy is ready for, and lets the speaker announce
// those. Package readiness decides; conditions.go says what is wrong.
type senderReadiness struct {
	mu      sync.Mutex
	book    *readiness.Book
	own     map[readiness.Key]netip.Addr // the prefixes, with the proxy's address that is announced
	gate    bgp.Gate                     // as the speaker has it
	paths   senderPaths
	taps    map[string]*readiness.Meter // by interface
	evicted readiness.Meter
	cnps    map[readiness.Key]*readiness.Meter
}

func newSenderReadiness(paths senderPaths) *senderReadiness {
	return &senderReadiness{
		book: readiness.NewBook(readiness.Config{Always: true}), own: map[readiness.Key]netip.Addr{}, paths: paths,
		taps: map[string]*readiness.Meter{}, cnps: map[readiness.Key]*readiness.Meter{},
	}
}

func readinessConfig(p *config.Proxy) readiness.Config {
	if p == nil {
		return readiness.Config{Always: true}
	}
	r := &p.Readiness
	return readiness.Config{
		Always:        p.Advertise != config.AdvertiseWhenReady,
		WithdrawAfter: r.WithdrawAfter.Duration, AnnounceAfter: r.AnnounceAfter.Duration,
		Damping: readiness.Damping{HalfLife: r.Damping.HalfLife.Duration, Suppress: r.Damping.Suppress, Reuse: r.Damping.Reuse},
	}
}

// keepReadiness looks each second, and when a hold-down or a suppression ends.
func (d *Daemon) keepReadiness(ctx context.Context) error {
	for {
		d.followReadiness()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(d.nextLook()):
		}
	}
}

func (d *Daemon) nextLook() time.Duration {
	s := d.senders
	s.mu.Lock()
	defer s.mu.Unlock()
	wake := s.book.Wake()
	if wake.IsZero() {
		return time.Second
	}
	return min(max(wake.Sub(d.now()), 10*time.Millisecond), time.Second)
}

// followReadiness looks at every prefix that is announced here, and lets the announcements follow.
func (d *Daemon) followReadiness() {
	var requested []bgp.OriginateConfig
	if d.speaker != nil {
		requested = d.speaker.Requested() // may wait for a change of many routes
	}
	s := d.senders
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg, _ := d.withSources(d.config.Load())
	now := d.now()
	rules := readinessConfig(cfg.Proxy)
	s.book.Configure(rules, now)
	s.own = announcedHere(cfg, requested)
	changes := s.book.Step(now, d.enabled.Load(), d.conditions(now, cfg))
	d.setGate(s.gateFor(cfg.Proxy))
	d.mark(cfg)
	for i := range changes {
		d.tellReadiness(now, &changes[i], rules.Always)
	}
}

// announcedHere lists the prefixes that are announced, or would be, with an address of this proxy's own
// as the PNC. Whether another proxy is ready is not this node's to say.
func announcedHere(c *config.Config, requested []bgp.OriginateConfig) map[readiness.Key]netip.Addr {
	out := map[readiness.Key]netip.Addr{}
	p := c.Proxy
	if p == nil {
		return out
	}
	own := ownAddresses(p)
	for _, s := range p.Senders {
		k := readiness.Key{Context: s.Context, Prefix: s.Prefix.Prefix}
		if (s.Mode != "none" || marksSender(c, k, s.Proxy.Addr)) && slices.Contains(own, s.Proxy.Addr) {
			out[k] = s.Proxy.Addr
		}
	}
	for _, o := range requested {
		if slices.Contains(own, o.Proxy.Unmap()) {
			out[readiness.Key{Context: o.Context, Prefix: o.Prefix}] = o.Proxy.Unmap()
		}
	}
	return out
}

func ownAddresses(p *config.Proxy) (out []netip.Addr) {
	for _, a := range []config.Addr{p.IPv4, p.IPv6} {
		if a.IsValid() {
			out = append(out, a.Addr)
		}
	}
	return out
}

// gateFor gives what the speaker may announce. With p nil, or when all is announced always, it holds
// nothing back.
func (s *senderReadiness) gateFor(p *config.Proxy) bgp.Gate {
	if readinessConfig(p).Always {
		return bgp.Gate{}
	}
	g := bgp.Gate{Proxies: ownAddresses(p), Released: map[bgp.PrefixKey]struct{}{}}
	for _, st := range s.book.Status() {
		if st.State.Announced() {
			g.Released[bgp.PrefixKey{Context: st.Context, Prefix: st.Prefix}] = struct{}{}
		}
	}
	return g
}

// setGate needs senders.mu.
func (d *Daemon) setGate(g bgp.Gate) {
	s := d.senders
	if d.speaker == nil || slices.Equal(s.gate.Proxies, g.Proxies) && maps.Equal(s.gate.Released, g.Released) {
		return
	}
	s.gate = g
	if err := d.speaker.SetGate(g); err != nil {
		d.log.WithError(err).Error("the capabilities do not follow readiness yet; trying again")
	}
}

// gateBefore sets the gate for a configuration that is about to be applied.
func (d *Daemon) gateBefore(next *config.Config) {
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	d.setGate(d.senders.gateUntil(next.Proxy))
}

// gateUntil gives the gate until a changed configuration was looked at: what is announced now stays, and
// nothing that comes with it slips through.
func (s *senderReadiness) gateUntil(next *config.Proxy) bgp.Gate {
	g := s.gateFor(next)
	if len(s.gate.Proxies) > 0 && g.Released == nil {
		g.Released = s.gate.Released
	}
	for _, a := range s.gate.Proxies {
		if !slices.Contains(g.Proxies, a) {
			g.Proxies = append(g.Proxies, a)
		}
	}
	return g
}
