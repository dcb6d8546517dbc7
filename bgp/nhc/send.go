package nhc

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
)

// New makes an attribute by the sender's rules: the header's next hop is the route's, the TLVs come
// in increasing order of their codes, identical ones once, and there is at least one. The TLVs'
// values are shared, not copied. VPN next hops go out without a route distinguisher.
func New(afi uint16, safi uint8, nextHop netip.Addr, tlvs ...TLV) (Attribute, error) {
	tlvs = slices.Clone(tlvs)
	// Stable and by code alone: the first of several different TLVs with one code is the one that
	// a receiver uses.
	slices.SortStableFunc(tlvs, func(x, y TLV) int { return cmp.Compare(x.Code, y.Code) })
	a := Attribute{Flags: FlagsSent, AFI: afi, SAFI: safi, NextHop: nextHop, TLVs: dropIdentical(tlvs)}
	return a, a.CheckSend()
}

// dropIdentical keeps the first of identical TLVs, in place.
func dropIdentical(tlvs []TLV) []TLV {
	kept := tlvs[:0]
	for _, t := range tlvs {
		if !slices.ContainsFunc(kept, t.equal) {
			kept = append(kept, t)
		}
	}
	return kept
}

func (t TLV) equal(o TLV) bool { return t.Code == o.Code && bytes.Equal(t.Value, o.Value) }

// CheckSend says which of the sender's rules the attribute breaks: an attribute goes out only with
// optional transitive flags, a next hop that is a usable address, at least one TLV, increasing
// codes, no identical TLVs and nothing malformed. A receiver that finds a malformed NHC with the
// Partial bit may withdraw the route, so sending one harms routing.
func (a *Attribute) CheckSend() error {
	switch nh := a.NextHop; {
	case a.Flags&(FlagOptional|FlagTransitive) != FlagsSent:
		return fail(0, "flags", "must be optional transitive, are %#02x", a.Flags, ErrFlags)
	case !nh.IsValid(), nh.IsUnspecified(), nh.IsMulticast(), nh.Zone() != "":
		return fail(3, "next hop", "%s must be the route's next hop, a unicast address", nh, ErrNextHop)
	case nh.Is4In6():
		return fail(3, "next hop", "%s must be written as IPv4", nh, ErrNextHop)
	case a.RD != nil:
		return fail(3, "next hop", "must be sent without route distinguisher", ErrNextHopLength)
	case len(a.Trailing) != 0:
		return fail(0, "TLV", "%d octets after the last TLV", len(a.Trailing), ErrTLVLength)
	case len(a.TLVs) == 0:
		return fail(0, "TLV", "an attribute needs at least one", ErrNoTLV)
	}
	for i, t := range a.TLVs {
		if i > 0 && t.Code < a.TLVs[i-1].Code {
			return fail(0, "TLV", "code %d after %d", t.Code, a.TLVs[i-1].Code, ErrTLVOrder)
		}
		if slices.ContainsFunc(a.TLVs[:i], t.equal) {
			return fail(0, "TLV", "code %d twice with the same value", t.Code, ErrDuplicateTLV)
		}
	}
	_, err := a.AppendValue(nil)
	return err
}
