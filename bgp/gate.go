package bgp

import (
	"maps"
	"net/netip"
	"slices"
)

// Gate holds announcements of the PNC back until they are released: those of proxies that are not
// ready. Prefixes that it holds back count as with the mechanism off: `inline` ones go on without the
// PNC. The zero value holds nothing back.
type Gate struct {
	// Proxies are the addresses whose announcements wait to be released: the node's own. What names
	// another proxy is not held back.
	Proxies []netip.Addr
	// Released are the prefixes that may be announced all the same.
	Released map[PrefixKey]struct{}
}

// PrefixKey names a prefix that is announced.
type PrefixKey struct {
	Context string // the VPN; empty outside
	Prefix  netip.Prefix
}

// holds reports whether the gate holds the PNC of a prefix back.
func (g *Gate) holds(context string, prefix netip.Prefix, proxy netip.Addr) bool {
	if !slices.Contains(g.Proxies, proxy.Unmap()) {
		return false
	}
	_, released := g.Released[PrefixKey{context, prefix}]
	return !released
}

// SetGate changes what is held back. Announcements that fail are tried again every second.
func (s *Speaker) SetGate(g Gate) error {
	g.Proxies, g.Released = slices.Clone(g.Proxies), maps.Clone(g.Released)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orig.setGate(g)
	return s.originateNow()
}

func (o *originator) setGate(g Gate) {
	for p, it := range o.items {
		if o.gate.holds("", p, it.Proxy) != g.holds("", p, it.Proxy) {
			o.touch(p)
		}
	}
	o.gate = g
}

// off says why the PNC of an item is not announced whatever routes there are.
func (o *originator) off(it item) inactive {
	switch {
	case !o.enabled:
		return inactiveOff
	case o.gate.holds("", it.Prefix, it.Proxy):
		return inactiveHeld
	}
	return active
}

// vpnOff says so of a prefix inside a VPN.
func (o *originator) vpnOff(it vpnItem) inactive {
	switch {
	case !o.enabled:
		return inactiveOff
	case o.gate.holds(it.Context, it.Prefix, it.Proxy):
		return inactiveHeld
	}
	return active
}

// Requested lists what Advertise was asked to announce and what still stands, in no order.
func (s *Speaker) Requested() []OriginateConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []OriginateConfig
	for _, it := range s.orig.items {
		if it.requested {
			out = append(out, it.OriginateConfig)
		}
	}
	return out
}
