package bgp

import (
	"cmp"
	"encoding/binary"
	"errors"
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

// router picks the path that the modes other than ModeOriginate follow: the best one of the neighbour that
// is named. Without a name, any neighbour's best; inline then only takes what a neighbour announces itself. A
// path with a PNC on it is never the router's own but another node's copy, and two nodes that followed
// each other's copies would keep a dead route alive.
func (r *rib) router(c OriginateConfig) (*path, inactive) {
	var candidates []*path
	why := inactiveRouter
	for x := range r.of(c.key()).list() {
		switch {
		case c.From.IsValid() && x.peer.addr != c.From:
		case !c.From.IsValid() && c.Mode == ModeInline && x.reflected():
		case x.verdict.proxy.IsValid():
		case c.Mode == ModePrefer && x.reflected() && x.id == 0:
			why = inactiveReflected
		default:
			candidates = append(candidates, x)
		}
	}
	return best(slices.Values(candidates)), why
}

// of gives the first of the paths of a prefix in a context; nil when there is none.
func (r *rib) of(p PrefixKey) *path {
	if p.Context == "" {
		return r.prefixes.first(p.Prefix)
	}
	if v := r.contexts[p.Context]; v != nil {
		return v.prefixes.first(p.Prefix)
	}
	return nil
}

// key is what the engine knows the path of a prefix by.
func (x *path) key(p netip.Prefix) engine.VPNPrefix {
	if x.vpn == nil {
		return engine.VPNPrefix{Prefix: p}
	}
	return engine.VPNPrefix{RD: x.vpn.rd, VPN: true, Prefix: p}
}

// reflected reports whether the neighbour passes on another's path.
func (x *path) reflected() bool { return x.clusters > 0 || x.originator != x.peerID }

// follow is the announcement of a router's path as ours: inline in its place, path beside it, prefer
// above it. In a VPN it has the router's route distinguisher and label, and its route targets.
func (o *originator) follow(it item, from *path, raw engine.RawPath) (*engine.Announcement, error) {
	if err := o.passable(it, raw); err != nil {
		return nil, err
	}
	localPref, err := o.localPref(it, from)
	if err != nil {
		return nil, err
	}
	a := &engine.Announcement{Prefix: it.Prefix, NextHop: raw.NextHop.Unmap()}
	if from.vpn != nil {
		a.VPN = &engine.VPNInfo{RD: from.vpn.rd, Label: raw.Label}
	}
	var router engine.RawAttribute // NHC as the router sent it
	var seen [256]bool
	for _, attr := range raw.Attributes {
		t := attr.Type()
		if seen[t] {
			continue // of several the first counts (RFC 7606 section 3 g)
		}
		seen[t] = true
		switch {
		case t == nhc.AttributeType:
			router = attr
			continue
		case t == attrLocalPref && localPref != nil:
			continue
		case (t == attrLocalPref || t == attrOriginatorID || t == attrClusterList) && from.peer.ebgp:
			continue // means nothing from another AS (RFC 7606 sections 7.5, 7.9, 7.10)
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
		a.Attributes = tag(a.Attributes, o.tagsOf(it))
	}
	slices.SortStableFunc(a.Attributes, byType)
	return a, nil
}

// passable says why a router's path must not be announced by somebody else.
func (o *originator) passable(it item, raw engine.RawPath) error {
	nh := raw.NextHop.Unmap()
	switch {
	case nh.IsLinkLocalUnicast(), nh.IsUnspecified():
		return fmt.Errorf("the router's next hop %s means nothing beyond its link", raw.NextHop)
	case it.Context != "" && it.Prefix.Addr().Is4() && nh.Is6():
		return fmt.Errorf("the router's next hop %s is IPv6, which neighbours take for a VPN's IPv4 prefix only by an extension (RFC 8950) that is not spoken here", raw.NextHop)
	case hasCommunity(raw, noAdvertise):
		return errors.New("the router's path has the community no-advertise (RFC 1997)")
	case o.external && (hasCommunity(raw, noExport) || hasCommunity(raw, noExportSubconfed)):
		return errors.New("the router's path has the community no-export (RFC 1997), and announcements go to an EBGP neighbour, too")
	}
	return nil
}

// Well-known communities (RFC 1997).
const (
	noExport          = 0xFFFFFF01
	noAdvertise       = 0xFFFFFF02
	noExportSubconfed = 0xFFFFFF03
)

func hasCommunity(raw engine.RawPath, want uint32) bool {
	for _, a := range raw.Attributes {
		if a.Type() != attrCommunities {
			continue
		}
		v, err := a.Value()
		for ; err == nil && len(v) >= 4; v = v[4:] {
			if binary.BigEndian.Uint32(v) == want {
				return true
			}
		}
	}
	return false
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
// it is the router's own, as it came, if there is one that is sound and about this next hop: one that
// isn't must not go further (RFC 7606 section 2, attribute discard).
func (o *originator) withPNC(it item, raw engine.RawPath, router engine.RawAttribute) (engine.RawAttribute, error) {
	sound, whole := routerNHC(it.OriginateConfig, raw, router)
	if o.off(it) != active {
		switch {
		case !whole:
			return nil, nil
		case sound.RD != nil:
			sound.RD = nil
			return sound.Append(nil)
		}
		return router, nil
	}
	var others []nhc.TLV
	if sound != nil {
		others = slices.DeleteFunc(sound.Without(o.code), func(t nhc.TLV) bool {
			_, err := t.BGPID()
			return t.Code == nhc.CodeBGPID && err != nil
		})
	}
	attr, err := o.attribute(it.OriginateConfig, raw.NextHop, others)
	if err != nil && others != nil {
		attr, err = o.attribute(it.OriginateConfig, raw.NextHop, nil)
	}
	return attr, err
}

// routerNHC reads the router's NHC attribute; nil when it can't be parsed or is about another next hop.
// It is whole when there are TLVs and each is well-formed.
func routerNHC(c OriginateConfig, raw engine.RawPath, router engine.RawAttribute) (a *nhc.Attribute, whole bool) {
	if router == nil {
		return nil, false
	}
	parsed, err := nhc.Parse(router)
	if err != nil || parsed.Match(nhc.Route{AFI: c.afi(), SAFI: c.safi(), NextHop: raw.NextHop}) != nil {
		return nil, false
	}
	return &parsed, len(parsed.TLVs) > 0 && len(parsed.Malformed()) == 0
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
