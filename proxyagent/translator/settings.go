package translator

import (
	"net/netip"

	"github.com/gaissmai/bart"

	"pncd/proxyagent/internal/pace"
)

// settings is a Config made ready for the packet path. It is replaced as a whole, never changed.
type settings struct {
	Config
	accept     bart.Lite
	home       *place // the default context
	contexts   map[string]*place
	interfaces map[string]struct{} // nil means all
}

func newSettings(cfg Config, deps *Deps) *settings {
	s := &settings{
		Config: cfg.withDefaults(), home: newPlace(0, cfg.ServedPrefixes, deps.Local, deps.Sender),
		contexts: make(map[string]*place, len(cfg.Contexts)),
	}
	for _, x := range cfg.Contexts {
		s.contexts[x.Name] = newPlace(x.ID, x.ServedPrefixes, x.Local, x.Sender)
	}
	for _, p := range cfg.AcceptFrom {
		s.accept.Insert(p.Masked())
	}
	if len(cfg.Interfaces) > 0 {
		s.interfaces = make(map[string]struct{}, len(cfg.Interfaces))
		for _, name := range cfg.Interfaces {
			s.interfaces[name] = struct{}{}
		}
	}
	return s
}

func (s *settings) limits() pace.Limits {
	return pace.Limits{Window: s.PaceWindow, PerSecond: s.PerQPPerSecond}
}

// inDomain reports whether a notification may come from this address by this interface.
func (s *settings) inDomain(from netip.Addr, ifname string) bool {
	if s.interfaces != nil {
		if _, ok := s.interfaces[ifname]; !ok {
			return false
		}
	}
	return s.accept.Contains(from)
}
