package config

import (
	"fmt"
	"net/netip"
	"slices"
)

// SenderSource chooses routes of the kernel whose prefixes the proxy serves while they are there.
type SenderSource struct {
	Interface string       `yaml:"interface"`
	Table     uint32       `yaml:"table"`  // 0: the connected routes of the interface
	Within    []Prefix     `yaml:"within"` // empty: all
	Mode      string       `yaml:"mode"`
	Proxy     Addr         `yaml:"proxy"`
	NextHop   Addr         `yaml:"next_hop"`
	From      NeighborAddr `yaml:"from"`
}

// tableLocal is the kernel's table of its own addresses (rtnetlink(7)).
const tableLocal = 255

func (c *checker) senderSources(p *Proxy, b *BGP) {
	type key struct {
		iface  string
		table  uint32
		within string // one interface may have a next hop for each family
	}
	seen := map[key]int{}
	for i := range p.SenderSources {
		s, at := &p.SenderSources[i], index("proxy.sender_sources", i)
		c.want(s.Interface != "" || s.Table != 0, at, "interface or table is required")
		c.want(s.Table != tableLocal, at+".table", "table %d holds this host's own addresses", tableLocal)
		if s.Interface != "" {
			c.interfaceName(at+".interface", s.Interface)
		}
		k := key{s.Interface, s.Table, fmt.Sprint(s.Within)}
		first, twice := seen[k]
		c.want(!twice, at, "the same as sender_sources[%d]", first)
		seen[k] = i
		// A next hop's family is held against each prefix when there is one.
		c.announced(at, &Sender{Mode: s.Mode, Proxy: s.Proxy, NextHop: s.NextHop, From: s.From}, b)
	}
}

// WithSources gives the proxy with the prefixes of its sources among its senders, and which source each
// of those comes from; found says what a source has now. A sender that is named counts before a source,
// and an earlier source before a later one; but one whose next hop is of another family only when there is no
// other, and then the prefix is served and not announced.
func (p *Proxy) WithSources(found func(*SenderSource) []netip.Prefix) (*Proxy, map[netip.Prefix]*SenderSource) {
	out := *p
	out.Senders = slices.Clone(p.Senders)
	named := map[netip.Prefix]bool{}
	for _, s := range p.Senders {
		if s.Context == "" {
			named[s.Prefix.Prefix] = true
		}
	}
	from := map[netip.Prefix]*SenderSource{}
	// Those that announce the prefix first: a source of the other family leaves it to one of the prefix's.
	for _, announces := range []bool{true, false} {
		for i := range p.SenderSources {
			src := &p.SenderSources[i]
			for _, prefix := range found(src) {
				if src.fits(prefix) == announces && !named[prefix] && from[prefix] == nil && src.within(prefix) {
					from[prefix] = src
					out.Senders = append(out.Senders, src.sender(p, prefix))
				}
			}
		}
	}
	return &out, from
}

// fits reports whether the source's next hop, if it names one, can be that of the prefix.
func (s *SenderSource) fits(p netip.Prefix) bool {
	return !s.NextHop.IsValid() || s.NextHop.Is4() == p.Addr().Is4()
}

func (s *SenderSource) within(p netip.Prefix) bool {
	return len(s.Within) == 0 || slices.ContainsFunc(s.Within, func(w Prefix) bool {
		return w.Bits() <= p.Bits() && w.Contains(p.Addr())
	})
}

func (s *SenderSource) sender(p *Proxy, prefix netip.Prefix) Sender {
	out := Sender{Prefix: Prefix{prefix}, Mode: s.Mode, Proxy: s.Proxy, From: s.From}
	if !out.Proxy.IsValid() {
		out.Proxy = p.AddressFor(prefix)
	}
	if s.Mode != "originate" {
		return out
	}
	if s.NextHop.Is4() != prefix.Addr().Is4() {
		out.Mode = "none"
		return out
	}
	out.NextHop = s.NextHop
	return out
}
