package marks

import "pncd/igp/ospf/packet"

// allOnes is the mask of a host prefix.
const allOnes = ^uint32(0)

// addV2 takes an LSA of OSPFv2.
func (r *reader) addV2(l packet.LSA) error {
	switch l.Type {
	case packet.V2Router:
		if body, err := packet.ParseV2Router(l.Body()); err == nil {
			for _, x := range body.Links {
				if x.Kind == packet.LinkStub && uint32(x.Data) == allOnes {
					r.hosts[x.ID.Address()] = true
				}
			}
		}
	case packet.V2Summary:
		mask, metric, err := packet.ParseV2Summary(l.Body())
		if err != nil {
			return err
		}
		if mask == allOnes && metric < packet.MaxMetric {
			r.hosts[l.ID.Address()] = true
		}
	case packet.V2OpaqueLink, packet.V2OpaqueArea, packet.V2OpaqueAS:
		switch {
		case l.ID.OpaqueType() == packet.OpaqueExtendedPrefix:
			return r.addExtendedPrefixes(l)
		case l.ID.OpaqueType() == packet.OpaqueTE && l.Type == packet.V2OpaqueArea:
			return r.readTE(l)
		}
	}
	return nil
}

// addExtendedPrefixes takes an Extended Prefix Opaque LSA (RFC 7684 section 2).
func (r *reader) addExtendedPrefixes(l packet.LSA) error {
	list, err := packet.ParseV2ExtendedPrefixes(l.Body())
	if err != nil {
		return err
	}
	sources := make([]packet.Source, len(list)) // all of them first, since an LSA is left out as a whole
	for i, p := range list {
		if sources[i], err = packet.ParseSource(packet.V2, p.Subs); err != nil {
			return err
		}
	}
	rank := map[packet.LSType]int{packet.V2OpaqueArea: 0, packet.V2OpaqueLink: 1, packet.V2OpaqueAS: 2}[l.Type]
	for i, p := range list {
		intra := p.RouteType == packet.RouteUnspecified || p.RouteType == packet.RouteIntraArea
		r.add(p.Prefix, found{
			rank: rank, id: l.ID,
			p:      l.Type == packet.V2OpaqueArea && r.Carrier.v2(p),
			leaked: !intra || p.Flags&packet.ExtPrefixA != 0,
			source: sources[i],
		})
		if p.Prefix.IsSingleIP() {
			r.hosts[p.Prefix.Addr()] = true
		}
	}
	return nil
}
