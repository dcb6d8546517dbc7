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
	served     bart.Lite
	interfaces map[string]struct{} // nil means all
}

func newSettings(cfg Config) *settings {
	s := &settings{Config: cfg.withDefaults()}
	for _, p := range cfg.AcceptFrom {
		s.accept.Insert(p.Masked())
	}
	for _, p := range cfg.ServedPrefixes {
		s.served.Insert(p.Masked())
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
