package nhc

import "net/netip"

// Route is what a receiver compares the attribute with: the route that it came with.
type Route struct {
	AFI  uint16
	SAFI uint8
	// NextHop is the route's next hop.
	NextHop netip.Addr
	// BGPID is the BGP Identifier of the speaker that the route came from, as the four octets of an
	// IPv4 address. It is compared when the next hop is link-local only.
	BGPID netip.Addr
}

// Match compares the header with the route. An error (ErrMismatch) means that the attribute isn't
// about this next hop: somebody on the way changed the next hop and kept the attribute. It has to be
// disregarded and the route kept.
//
// A next hop that is link-local only says nothing about the node, so the attribute also needs a BGP
// Identifier TLV with the identifier of the speaker.
func (a *Attribute) Match(r Route) error {
	if a.AFI != r.AFI || a.SAFI != r.SAFI {
		return fail(0, "AFI and SAFI", "are %d and %d, the route's are %d and %d", a.AFI, a.SAFI, r.AFI, r.SAFI, ErrMismatch)
	}
	header, next := a.NextHop.Unmap(), r.NextHop.Unmap().WithZone("")
	if !next.IsValid() || header.IsUnspecified() || header != next {
		return fail(3, "next hop", "is %s, the route's is %s", a.NextHop, r.NextHop, ErrMismatch)
	}
	if !next.IsLinkLocalUnicast() {
		return nil
	}
	for _, t := range a.TLVs {
		if t.Code != CodeBGPID {
			continue
		}
		if id, err := t.BGPID(); err == nil && id == r.BGPID {
			return nil
		}
	}
	return fail(3, "next hop", "%s is link-local and no BGP Identifier TLV says %s", a.NextHop, r.BGPID, ErrMismatch)
}

// Malformed says what is wrong with each TLV that can't be used; the others can. It holds what the
// codec knows: a TLV that is cut short, and BGP Identifiers of a wrong length. The PNC's own rules are
// in PNC.
func (a *Attribute) Malformed() []error {
	var errs []error
	for _, t := range a.TLVs {
		if t.Code == CodeBGPID {
			if _, err := t.BGPID(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if n := len(a.Trailing); n != 0 {
		errs = append(errs, fail(0, "TLV", "the last one is cut short: %d octets %x", n, clip(a.Trailing), ErrTruncated))
	}
	return errs
}

func clip(b []byte) []byte { return b[:min(len(b), 16)] }
