package daemon

import (
	"net/netip"
	"slices"

	"pncd/igp"
	"pncd/internal/config"
	"pncd/proxyagent/readiness"
)

// setMarking lets the IGPs mark prefixes, or takes all marks away.
func (d *Daemon) setMarking(on bool) {
	d.marking.Store(on)
	cfg, _ := d.withSources(d.config.Load())
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	d.mark(cfg)
}

// mark lets the IGPs mark the prefixes that this proxy serves and is ready for. It needs senders.mu.
func (d *Daemon) mark(c *config.Config) {
	for _, p := range d.igps {
		ads, not := []igp.Advertisement(nil), 0
		if policy := p.policy(c); d.marking.Load() && policy.advertise && c.Proxy != nil {
			ads = d.markable(c.Proxy, p.carries)
			not = notMarkable(c.Proxy, p.carries)
		}
		p.mark(ads, not)
	}
}

// markable lists what is served and ready, and can be marked.
func (d *Daemon) markable(proxy *config.Proxy, carries func(prefix, proxy netip.Addr) bool) (ads []igp.Advertisement) {
	always := readinessConfig(proxy).Always
	for key, proxy := range d.senders.own {
		if key.Context != "" || !carries(key.Prefix.Addr(), proxy) {
			continue
		}
		if st, known := d.senders.book.Get(key); always || known && st.State.Announced() {
			ads = append(ads, igp.Advertisement{Prefix: key.Prefix, Proxy: proxy})
		}
	}
	slices.SortFunc(ads, func(a, b igp.Advertisement) int { return a.Prefix.Compare(b.Prefix) })
	return ads
}

// notMarkable counts the senders that can't be marked with the proxy's address that they have, and could with one of
// their own family.
func notMarkable(p *config.Proxy, carries func(prefix, proxy netip.Addr) bool) (n int) {
	own := ownAddresses(p)
	for _, s := range p.Senders {
		prefix := s.Prefix.Addr()
		if s.Context == "" && slices.Contains(own, s.Proxy.Addr) && carries(prefix, prefix) && !carries(prefix, s.Proxy.Addr) {
			n++
		}
	}
	return n
}

// mark tells the speaker what is changed.
func (p *igpPart) mark(ads []igp.Advertisement, notMarked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if notMarked > p.notMarked {
		p.log.WithField("senders", notMarked).Warn("senders are not marked: the address of their proxy is not of the family of their prefix")
	}
	p.notMarked = notMarked
	if !slices.Equal(p.marked, ads) {
		p.marked = ads
		p.speaker.Advertise(ads)
	}
}

// marksSender reports whether an IGP marks a sender although BGP doesn't announce it.
func marksSender(c *config.Config, k readiness.Key, proxy netip.Addr) bool {
	return k.Context == "" && slices.ContainsFunc(protocols, func(p protocol) bool {
		policy := p.policy(c)
		return policy != nil && policy.advertise && p.carries(k.Prefix.Addr(), proxy)
	})
}
