package bgp

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"unicode/utf8"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

// PrefixList is a list of prefix rules; the first that matches decides.
type PrefixList = engine.PrefixList

// PrefixRule is one line of a prefix list.
type PrefixRule = engine.PrefixRule

// Community is a community (RFC 1997) or a large one (RFC 8092).
type Community = engine.Community

// ParseCommunity reads 65000:1, 65000:1:2, no-export or no-advertise.
func ParseCommunity(s string) (Community, error) { return engine.ParseCommunity(s) }

// inbound is the policy for what a neighbour announces, or for what goes into a context. It may change while
// the session stays.
type inbound struct {
	prefixes    PrefixList     // what is taken at all
	communities []Community    // a PNC is believed with one of these only; none: with any
	proxies     []netip.Prefix // instead of what holds for all; none: that
	from        []netip.Prefix // originators, likewise
	border      bool           // routes are taken, and their NHC is not believed
}

func (n *NeighborConfig) inbound() inbound {
	return inbound{prefixes: n.ImportPrefixes, communities: n.RequireCommunities, proxies: n.AcceptProxies, from: n.AcceptFrom, border: n.Border}
}

func (a inbound) equal(b inbound) bool {
	return slices.Equal(a.prefixes, b.prefixes) && slices.Equal(a.communities, b.communities) &&
		slices.Equal(a.proxies, b.proxies) && slices.Equal(a.from, b.from) && a.border == b.border
}

// tagged reports whether a path with these communities may be believed.
func (a inbound) tagged(have []Community) bool {
	return len(a.communities) == 0 || slices.ContainsFunc(a.communities, func(c Community) bool { return slices.Contains(have, c) })
}

// allowed reports whether an address may be believed: each of the closer lists that is given must hold it, or
// the general one where none is. An empty general list holds everything.
func allowed(a netip.Addr, general []netip.Prefix, closer ...[]netip.Prefix) bool {
	holds := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	given := false
	for _, list := range closer {
		if len(list) > 0 {
			if given = true; !holds(list) {
				return false
			}
		}
	}
	return given || len(general) == 0 || holds(general)
}

// permits reports whether the neighbour's prefix list takes an announcement, and counts those it doesn't.
func (p *ribPeer) permits(prefix netip.Prefix) bool {
	ok := p.in.prefixes.Permits(prefix)
	if !ok {
		p.refused++
	}
	return ok
}

// broughtBy is the BGP Identifier of the speaker that brought a route into this AS. ORIGINATOR_ID says nothing
// about a route from another AS (RFC 4456 section 8).
func (p *peerInfo) broughtBy(from *engine.Path) (id [4]byte) {
	a := from.OriginatorID
	if p.ebgp || !a.IsValid() {
		a = from.PeerID
	}
	if a.Is4() {
		id = a.As4()
	}
	return id
}

// maxShutdown is how many octets a shutdown communication has at most.
const maxShutdown = 255

// checkBelieved says what is wrong with the lists of believed proxies and originators.
func checkBelieved(at string, proxies, from []netip.Prefix) (errs []error) {
	for _, p := range proxies {
		if !p.IsValid() {
			errs = append(errs, wrong(at, "accepted proxies: %q is no prefix", p))
		}
	}
	for _, p := range from {
		if !p.IsValid() || !p.Addr().Is4() {
			errs = append(errs, wrong(at, "accepted originators: %q is no IPv4 prefix; a BGP Identifier is written as an IPv4 address", p))
		}
	}
	return errs
}

// checkPolicy says what is wrong with a neighbour's policy.
func (n *NeighborConfig) checkPolicy() (errs []error) {
	at := "neighbor " + n.Address.String()
	if err := n.ImportPrefixes.Check(); err != nil {
		errs = append(errs, wrong(at, "import prefixes: %v", err))
	}
	if err := n.ExportPrefixes.Check(); err != nil {
		errs = append(errs, wrong(at, "export prefixes: %v", err))
	}
	errs = append(errs, checkBelieved(at, n.AcceptProxies, n.AcceptFrom)...)
	if len(n.Shutdown) > maxShutdown || !utf8.ValidString(n.Shutdown) {
		errs = append(errs, wrong(at, "shutdown must be UTF-8 of at most %d octets (RFC 9003 section 2)", maxShutdown))
	}
	switch {
	case n.Border && !n.ebgp():
		errs = append(errs, wrong(at, "is IBGP: the border of the domain is at EBGP neighbours"))
	case n.Border && (n.AcceptEBGP || *n.SendNHC):
		errs = append(errs, wrong(at, "is at the border of the domain: NHC is neither believed from there nor sent there"))
	}
	return errs
}

// tag adds our communities to those that are there.
func tag(attrs []engine.RawAttribute, ours []Community) []engine.RawAttribute {
	var small, large []byte
	for _, c := range ours {
		if c.Large {
			large = binary.BigEndian.AppendUint32(large, c.Global)
			large = binary.BigEndian.AppendUint32(large, c.Local)
			large = binary.BigEndian.AppendUint32(large, c.Local2)
		} else {
			small = binary.BigEndian.AppendUint32(small, c.Global<<16|c.Local)
		}
	}
	return withMembers(withMembers(attrs, attrCommunities, small, 4), attrLarge, large, 12)
}

// withMembers adds members of a size to the attribute of a type, each once.
func withMembers(attrs []engine.RawAttribute, typ uint8, members []byte, size int) []engine.RawAttribute {
	if len(members) == 0 {
		return attrs
	}
	flags := nhc.FlagsSent
	var value []byte
	attrs = slices.Clone(attrs)
	if i := slices.IndexFunc(attrs, func(a engine.RawAttribute) bool { return a.Type() == typ }); i >= 0 {
		if v, err := attrs[i].Value(); err == nil {
			flags |= attrs[i][0] & nhc.FlagPartial
			value = slices.Clone(v)
		}
		attrs = slices.Delete(attrs, i, i+1)
	}
	have := map[string]bool{}
	for c := range slices.Chunk(value, size) {
		have[string(c)] = true
	}
	for c := range slices.Chunk(members, size) {
		if !have[string(c)] {
			have[string(c)] = true
			value = append(value, c...)
		}
	}
	a := engine.RawAttribute{flags, typ, uint8(len(value))}
	if len(value) > 255 {
		a = binary.BigEndian.AppendUint16(engine.RawAttribute{flags | nhc.FlagExtended, typ}, uint16(len(value)))
	}
	return append(attrs, append(a, value...))
}

// repolicy puts changed inbound policies into force. It reports whether the neighbours' paths have to be
// read again from the adj-RIB-in. It needs s.mu.
func (s *Speaker) repolicy(next Config) (changed bool) {
	all := slices.Clone(next.Neighbors)
	for _, d := range s.dynamic {
		all = append(all, d.NeighborConfig)
	}
	for _, n := range all {
		p := s.rib.peers[n.Address]
		if p == nil {
			continue
		}
		p.longLived = n.LongLivedRestart
		if !p.in.equal(n.inbound()) {
			p.in, changed = n.inbound(), true
			s.rib.seen.forget()
		}
	}
	return changed
}
