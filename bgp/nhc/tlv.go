package nhc

import "net/netip"

// Characteristic codes.
const (
	// CodeEntropyLabel is the entropy label characteristic, ELCv3 (draft-ietf-idr-nhc).
	CodeEntropyLabel uint16 = 1
	// CodeNextNextHop holds the next-next-hop nodes (draft-ietf-idr-next-next-hop-nodes).
	CodeNextNextHop uint16 = 2
	// CodeBGPID is the BGP Identifier (draft-ietf-idr-nhc).
	CodeBGPID uint16 = 3
	// DefaultPNCCode is the Proxy Node Capability. Unassigned; our default, of the range for
	// private use, is configurable.
	DefaultPNCCode uint16 = 65400
)

// NewPNC makes the PNC TLV: the proxy's address, 4 or 16 octets. Its family may differ from the
// prefix's.
func NewPNC(code uint16, proxy netip.Addr) (TLV, error) {
	proxy = proxy.Unmap()
	switch {
	case !proxy.IsValid(), proxy.Zone() != "", proxy.IsUnspecified(), proxy.IsMulticast(), proxy.IsLinkLocalUnicast():
		return TLV{}, fail(0, "PNC", "%s must be a unicast address that is not link-local", proxy, ErrProxy)
	}
	return TLV{Code: code, Value: proxy.AsSlice()}, nil
}

// PNC is what an attribute says about the proxy.
type PNC struct {
	// Present reports whether there is a TLV with the PNC's code at all.
	Present bool
	// Proxy is the address in the first PNC TLV that has a known length; invalid without one.
	// Whether the address is one that a proxy can have isn't checked here.
	Proxy netip.Addr
	// Different counts the later PNC TLVs with another address: the first one wins.
	Different int
	// UnknownLength counts PNC TLVs that are neither 4 nor 16 octets long: they are ignored.
	UnknownLength int
	// Unknown is the first of them, for the reader of a log.
	Unknown []byte
}

// PNC reads the Proxy Node Capability under the given code.
func (a *Attribute) PNC(code uint16) PNC {
	var p PNC
	for _, t := range a.TLVs {
		if t.Code != code {
			continue
		}
		p.Present = true
		addr, ok := netip.AddrFromSlice(t.Value)
		switch {
		case !ok:
			if p.UnknownLength == 0 {
				p.Unknown = t.Value
			}
			p.UnknownLength++
		case !p.Proxy.IsValid():
			p.Proxy = addr.Unmap()
		case p.Proxy != addr.Unmap():
			p.Different++
		}
	}
	return p
}

// BGPID reads a BGP Identifier TLV. Implementations disagree about its length: 4 octets, or 8 with
// the AS number after the identifier. Both are read; the AS number isn't used.
func (t TLV) BGPID() (netip.Addr, error) {
	if n := len(t.Value); t.Code != CodeBGPID || n != 4 && n != 8 {
		return netip.Addr{}, fail(0, "BGP Identifier", "code %d has %d octets, must be 4 or 8", t.Code, n, ErrTLVLength)
	}
	return netip.AddrFrom4([4]byte(t.Value[:4])), nil
}

// Without gives the attribute's TLVs that don't have the code, in their order.
func (a *Attribute) Without(code uint16) []TLV {
	var kept []TLV
	for _, t := range a.TLVs {
		if t.Code != code {
			kept = append(kept, t)
		}
	}
	return kept
}
