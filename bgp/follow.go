package bgp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

// Type codes of path attributes (IANA, BGP Path Attributes).
const (
	attrOrigin       = 1
	attrASPath       = 2
	attrNextHop      = 3
	attrMED          = 4
	attrLocalPref    = 5
	attrAtomic       = 6
	attrAggregator   = 7
	attrCommunities  = 8
	attrOriginatorID = 9
	attrClusterList  = 10
	attrExtended     = 16
	attrAS4Path      = 17
	attrAS4Aggr      = 18
	attrLarge        = 32
)

// follow is the announcement of a router's path as ours: inline in its place, path beside it, prefer
// above it.
func (o *originator) follow(it item, from *path, raw engine.RawPath) (*engine.Announcement, error) {
	if raw.NextHop.IsLinkLocalUnicast() || raw.NextHop.IsUnspecified() {
		return nil, fmt.Errorf("the router's next hop %s means nothing beyond its link", raw.NextHop)
	}
	localPref, err := o.localPref(it, from)
	if err != nil {
		return nil, err
	}
	a := &engine.Announcement{Prefix: it.Prefix, NextHop: raw.NextHop.Unmap()}
	var router engine.RawAttribute // NHC as the router sent it
	for _, attr := range raw.Attributes {
		switch t := attr.Type(); {
		case t == nhc.AttributeType:
			if router == nil {
				router = attr // of several the first counts (RFC 7606 section 3 g)
			}
			continue
		case t == attrLocalPref && localPref != nil:
			continue
		case t == attrClusterList && it.Mode != ModeInline:
			// The copy starts its own way: a reflector that passed the router's path to us must
			// not take it for a loop.
			continue
		case !recognised(t):
			if attr[0]&nhc.FlagTransitive == 0 {
				continue // RFC 4271 section 5: not passed on when not recognised
			}
			attr = slices.Clone(attr)
			attr[0] |= nhc.FlagPartial
		}
		a.Attributes = append(a.Attributes, attr)
	}
	if localPref != nil {
		a.Attributes = append(a.Attributes, localPref)
	}
	if !from.peer.ebgp {
		a.Attributes = o.reflected(a.Attributes, from)
		a.NotTo = from.peerID
		if it.Mode != ModeInline {
			a.NotTo = from.originator
		}
	}
	nhcAttr, err := o.withPNC(it, raw, router)
	if err != nil {
		return nil, err
	}
	if nhcAttr != nil {
		a.Attributes = append(a.Attributes, nhcAttr)
	}
	if o.off(it) == active {
		a.Attributes = tag(a.Attributes, o.tags)
	}
	slices.SortStableFunc(a.Attributes, byType)
	return a, nil
}

func byType(x, y engine.RawAttribute) int { return cmp.Compare(x.Type(), y.Type()) }

// localPref is the LOCAL_PREF of a preferred copy; nil in the other modes. It has to be higher than the
// router's: of two equal ones, a reflector passes the router's own on.
func (o *originator) localPref(it item, from *path) (engine.RawAttribute, error) {
	if it.Mode != ModePrefer {
		return nil, nil
	}
	v := o.prefer
	if v == 0 && from.localPref < math.MaxUint32 {
		v = from.localPref + 1
	}
	if v <= from.localPref {
		return nil, fmt.Errorf("the router's LOCAL_PREF %d is as high as that of mode prefer, or higher", from.localPref)
	}
	return binary.BigEndian.AppendUint32(engine.RawAttribute{nhc.FlagTransitive, attrLocalPref, 4}, v), nil
}

// reflected makes sure that ORIGINATOR_ID names the router (RFC 4456 section 8). GoBGP would put our
// identifier there, and the router could take the copy for another's route.
func (o *originator) reflected(attrs []engine.RawAttribute, from *path) []engine.RawAttribute {
	has := slices.ContainsFunc(attrs, func(a engine.RawAttribute) bool { return a.Type() == attrOriginatorID })
	if has || !from.peerID.Is4() {
		return attrs
	}
	return append(attrs, append(engine.RawAttribute{nhc.FlagOptional, attrOriginatorID, 4}, from.peerID.AsSlice()...))
}

// withPNC gives the NHC attribute of the copy. While the mechanism is off, or the gate holds the PNC back,
// it is the router's own, as it came, if there is one.
func (o *originator) withPNC(it item, raw engine.RawPath, router engine.RawAttribute) (engine.RawAttribute, error) {
	if o.off(it) != active {
		return router, nil
	}
	others := o.routerTLVs(it.Prefix, raw, router)
	attr, err := o.attribute(it.OriginateConfig, raw.NextHop, others)
	if err != nil && others != nil {
		attr, err = o.attribute(it.OriginateConfig, raw.NextHop, nil)
	}
	return attr, err
}

// routerTLVs are the characteristics that the router gives for the same next hop. What doesn't match
// it, or can't be parsed, isn't passed on.
func (o *originator) routerTLVs(prefix netip.Prefix, raw engine.RawPath, router engine.RawAttribute) []nhc.TLV {
	if router == nil {
		return nil
	}
	a, err := nhc.Parse(router)
	if err != nil {
		return nil
	}
	afi := nhc.AFIIPv4
	if prefix.Addr().Is6() {
		afi = nhc.AFIIPv6
	}
	if a.Match(nhc.Route{AFI: afi, SAFI: nhc.SAFIUnicast, NextHop: raw.NextHop}) != nil {
		return nil
	}
	return a.Without(o.code)
}

// recognised reports whether this speaker knows what an attribute means, and so passes it on without
// the Partial bit (RFC 4271 section 5).
func recognised(typ uint8) bool {
	switch typ {
	case attrOrigin, attrASPath, attrNextHop, attrMED, attrLocalPref, attrAtomic, attrAggregator,
		attrCommunities, attrOriginatorID, attrClusterList, attrExtended, attrAS4Path, attrAS4Aggr,
		attrLarge, nhc.AttributeType:
		return true
	}
	return false
}
