package marks

import (
	"net/netip"

	"pncd/igp/ospf/packet"
)

// addV3 takes an LSA of OSPFv3.
func (r *reader) addV3(l packet.LSA) error {
	switch l.Type {
	case packet.V3IntraAreaPrefix:
		body, err := packet.ParseV3IntraArea(l.Body())
		if err != nil {
			return err
		}
		for _, p := range body.Prefixes {
			r.host(body.Referenced, p.Prefix, p.Options)
		}
	case packet.V3EIntraAreaPrefix:
		body, err := packet.ParseV3EIntraArea(l.Body())
		if err != nil {
			return err
		}
		if err := r.addV3Prefixes(l, body.Prefixes); err != nil {
			return err
		}
		for _, p := range body.Prefixes {
			if p.Type == packet.V3TLVIntraAreaPrefix {
				r.host(body.Referenced, p.Prefix, p.Options)
			}
		}
	case packet.V3EInterAreaPrefix, packet.V3ENSSA, packet.V3EExternal:
		list, err := packet.ParseV3ExtendedPrefixes(l.Body())
		if err != nil {
			return err
		}
		return r.addV3Prefixes(l, list)
	case packet.V3IntraAreaTE:
		return r.readTE(l)
	}
	return nil
}

// v3Order is the order of the LSA types with prefixes, and which TLV is at home in them: others are ignored
// (RFC 8362 sections 3.4, 3.6 and 3.7).
var v3Order = map[packet.LSType]struct {
	rank int
	tlv  uint16
}{
	packet.V3EIntraAreaPrefix: {0, packet.V3TLVIntraAreaPrefix},
	packet.V3EInterAreaPrefix: {1, packet.V3TLVInterAreaPrefix},
	packet.V3ENSSA:            {2, packet.V3TLVExternalPrefix},
	packet.V3EExternal:        {3, packet.V3TLVExternalPrefix},
}

// addV3Prefixes takes the prefixes of an Extended LSA (RFC 8362 section 4).
func (r *reader) addV3Prefixes(l packet.LSA, list []packet.V3ExtendedPrefix) error {
	sources := make([]packet.Source, len(list)) // all of them first, since an LSA is left out as a whole
	for i, p := range list {
		var err error
		if sources[i], err = packet.ParseSource(packet.V3, p.Subs); err != nil {
			return err
		}
	}
	order := v3Order[l.Type]
	for i, p := range list {
		if p.Type != order.tlv {
			continue
		}
		r.add(p.Prefix, found{
			rank: order.rank, id: l.ID,
			p:      l.Type != packet.V3EExternal && r.Carrier.extended(p.Subs, packet.V3SubPrefixFlags),
			leaked: l.Type != packet.V3EIntraAreaPrefix,
			source: sources[i],
		})
	}
	return nil
}

// host notes an address that the router says to be its own and reachable: LA or N, not NU, and not of a network that
// it is the Designated Router of.
func (r *reader) host(of packet.Key, p netip.Prefix, options uint8) {
	const own = packet.PrefixLA | packet.PrefixN
	self := (of.Type == packet.V3Router || of.Type == packet.V3ERouter) && of.Adv == r.router
	if self && p.IsSingleIP() && options&own != 0 && options&packet.PrefixNU == 0 && usable(p.Addr()) {
		r.own[p.Addr()] = true
	}
}
