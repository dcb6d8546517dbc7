package daemon

import (
	"errors"
	"net/netip"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/host"
	"pncd/internal/config"
)

// routeBook is what the kernel's routes say about the sources of senders.
type routeBook map[host.RouteSource][]netip.Prefix

func routeSource(s *config.SenderSource) host.RouteSource {
	return host.RouteSource{Interface: s.Interface, Table: s.Table}
}

func routeSources(c *config.Config) (out []host.RouteSource) {
	if c.Proxy != nil {
		for i := range c.Proxy.SenderSources {
			out = append(out, routeSource(&c.Proxy.SenderSources[i]))
		}
	}
	return out
}

// withSources gives a configuration with what its sources have now among the senders, and which source
// each of those comes from.
func (d *Daemon) withSources(c *config.Config) (*config.Config, map[netip.Prefix]*config.SenderSource) {
	if c.Proxy == nil || len(c.Proxy.SenderSources) == 0 {
		return c, nil
	}
	var book routeBook
	if p := d.routeBook.Load(); p != nil {
		book = *p
	}
	out := *c
	var from map[netip.Prefix]*config.SenderSource
	out.Proxy, from = c.Proxy.WithSources(func(s *config.SenderSource) []netip.Prefix { return book[routeSource(s)] })
	return &out, from
}

// routesChanged lets what is served and announced follow the kernel's routes.
func (d *Daemon) routesChanged(now map[host.RouteSource][]netip.Prefix) {
	d.control.Lock()
	defer d.control.Unlock()
	if d.stopping {
		return
	}
	_, before := d.withSources(d.config.Load())
	book := routeBook(now)
	d.routeBook.Store(&book)
	cfg, after := d.withSources(d.config.Load())
	d.logSources(before, after)
	if cfg.Proxy == nil {
		return
	}
	if p := d.parts.Load(); p.translator != nil {
		if err := errors.Join(p.translator.Reconfigure(d.translation(cfg)), p.kernel.configure(cfg.Proxy)); err != nil {
			d.log.WithError(err).Error("the served prefixes don't follow the kernel's routes")
		}
	}
	if d.speaker != nil {
		defer d.followReadiness() // new prefixes wait for it, if any do
		if err := d.speaker.SetOriginated(originations(cfg.Proxy)); err != nil {
			d.log.WithError(err).Error("the announced prefixes don't follow the kernel's routes")
		}
	}
}

func (d *Daemon) logSources(before, after map[netip.Prefix]*config.SenderSource) {
	tell := func(p netip.Prefix, s *config.SenderSource, what string) {
		d.log.WithFields(logrus.Fields{"prefix": p.String(), "source": routeSource(s).String()}).Info(what)
	}
	for p, s := range before {
		if after[p] == nil {
			tell(p, s, "sender prefix is gone")
		}
	}
	for p, s := range after {
		if before[p] == nil {
			tell(p, s, "sender prefix is there")
		}
	}
}
