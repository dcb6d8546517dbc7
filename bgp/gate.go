package bgp

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
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

// String is for logs and errors.
func (k PrefixKey) String() string {
	if k.Context == "" {
		return k.Prefix.String()
	}
	return k.Prefix.String() + " in context " + k.Context
}

func (k PrefixKey) compare(o PrefixKey) int {
	return cmp.Or(strings.Compare(k.Context, o.Context), k.Prefix.Compare(o.Prefix))
}

// holds reports whether the gate holds the PNC of a prefix back.
func (g *Gate) holds(k PrefixKey, proxy netip.Addr) bool {
	if !slices.Contains(g.Proxies, proxy.Unmap()) {
		return false
	}
	_, released := g.Released[k]
	return !released
}

// SetGate changes what is held back. Announcements that fail are tried again every second.
func (s *Speaker) SetGate(g Gate) error {
	g.Proxies, g.Released = slices.Clone(g.Proxies), maps.Clone(g.Released)
	s.mu.Lock()
	s.orig.setGate(g)
	s.mu.Unlock()
	return s.originate(context.Background())
}

func (o *originator) setGate(g Gate) {
	for p, it := range o.items {
		if o.gate.holds(p, it.Proxy) != g.holds(p, it.Proxy) {
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
	case o.gate.holds(it.key(), it.Proxy):
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
