package nhc

import (
	"encoding/binary"
	"net/netip"
)

// Code points of the attribute.
const (
	// AttributeType is the path attribute's type code (IANA, BGP Path Attributes).
	AttributeType = 39

	// FlagOptional, FlagTransitive, FlagPartial and FlagExtended are the attribute flags of
	// RFC 4271 section 4.3.
	FlagOptional   uint8 = 0x80
	FlagTransitive uint8 = 0x40
	FlagPartial    uint8 = 0x20
	FlagExtended   uint8 = 0x10

	// FlagsSent are the flags of an attribute that this node originates: optional transitive.
	FlagsSent = FlagOptional | FlagTransitive
)

// Address families and subsequent address families (IANA) whose next hops are understood.
const (
	AFIIPv4 uint16 = 1
	AFIIPv6 uint16 = 2

	SAFIUnicast   uint8 = 1
	SAFIMulticast uint8 = 2
	SAFILabeled   uint8 = 4
	SAFIVPN       uint8 = 128
	SAFIVPNMcast  uint8 = 129
)

// headerLen is the length of AFI, SAFI and next hop length.
const headerLen = 4

// rdLen is the length of a route distinguisher (RFC 4364 section 4.2).
const rdLen = 8

// Attribute is one NHC attribute.
type Attribute struct {
	// Flags are the attribute flags. The extended length bit follows the length when the
	// attribute is written, unless it was set already; the other bits are kept.
	Flags uint8
	// AFI and SAFI are those of the NLRI that the attribute belongs to.
	AFI  uint16
	SAFI uint8
	// RD is the route distinguisher before a VPN next hop, 8 octets, as some implementations send
	// it; nil without.
	RD []byte
	// NextHop is the next hop for which the characteristics hold: IPv4 (4 octets on the wire) or
	// IPv6 (16). An IPv4-mapped IPv6 address stays what it was on the wire.
	NextHop netip.Addr
	// TLVs are the characteristics in the order of the wire.
	TLVs []TLV
	// Trailing is what follows the last TLV that could be delimited: a TLV header that is cut
	// short, or a TLV whose length runs past the end. It is written back as it came.
	Trailing []byte
}

// TLV is one characteristic.
type TLV struct {
	Code  uint16
	Value []byte
}

// Partial reports whether the attribute passed a speaker that didn't recognise it, or was attached
// by another speaker than the route's originator (RFC 4271 section 5).
func (a *Attribute) Partial() bool { return a.Flags&FlagPartial != 0 }

// Parse reads a whole attribute: flags, type, length, value. The attribute must fill b. The result
// shares memory with b.
//
// An error means that the attribute is malformed and has to be discarded, the route kept
// (RFC 7606 section 2, attribute discard). A malformed TLV is no error: the TLVs before it are there,
// the rest is in Trailing, and Malformed says what is wrong.
func Parse(b []byte) (Attribute, error) {
	if len(b) < 3 {
		return Attribute{}, fail(0, "attribute header", "needs 3 octets, has %d", len(b), ErrTruncated)
	}
	flags, typ, off, n := b[0], b[1], 3, int(b[2])
	if typ != AttributeType {
		return Attribute{}, fail(1, "type", "must be %d, is %d", AttributeType, typ, ErrType)
	}
	if flags&FlagExtended != 0 {
		if len(b) < 4 {
			return Attribute{}, fail(2, "length", "extended length needs 2 octets, has %d", len(b)-2, ErrTruncated)
		}
		off, n = 4, int(binary.BigEndian.Uint16(b[2:]))
	}
	if len(b)-off != n {
		return Attribute{}, fail(2, "length", "says %d octets, %d follow", n, len(b)-off, ErrLength)
	}
	a, err := parseValue(flags, b[off:], off)
	return a, err
}

// ParseValue reads an attribute whose flags and value were separated already, as a BGP library
// hands them out. Otherwise as Parse; offsets in errors count from the start of the value.
func ParseValue(flags uint8, value []byte) (Attribute, error) { return parseValue(flags, value, 0) }

func parseValue(flags uint8, v []byte, base int) (Attribute, error) {
	a := Attribute{Flags: flags}
	if flags&(FlagOptional|FlagTransitive) != FlagsSent {
		return a, fail(0, "flags", "must be optional transitive, are %#02x", flags, ErrFlags)
	}
	if len(v) < headerLen {
		return a, fail(base, "header", "needs %d octets, has %d", headerLen, len(v), ErrTruncated)
	}
	a.AFI, a.SAFI = binary.BigEndian.Uint16(v), v[2]
	n := int(v[3])
	if len(v)-headerLen < n {
		return a, fail(base+3, "next hop", "length says %d octets, %d follow", n, len(v)-headerLen, ErrTruncated)
	}
	if err := a.parseNextHop(v[headerLen:headerLen+n], base+3); err != nil {
		return a, err
	}
	a.TLVs, a.Trailing = parseTLVs(v[headerLen+n:])
	return a, nil
}

// parseNextHop accepts 4 and 16 octets, and for VPN families also 12 and 24, with a route
// distinguisher in front.
func (a *Attribute) parseNextHop(b []byte, at int) error {
	switch n := len(b); {
	case n == 4, n == 16:
	case a.isVPN() && (n == rdLen+4 || n == rdLen+16):
		a.RD, b = b[:rdLen:rdLen], b[rdLen:]
	default:
		return fail(at, "next hop length", "is %d for AFI %d SAFI %d: must be 4 or 16, in a VPN also 12 or 24",
			n, a.AFI, a.SAFI, ErrNextHopLength)
	}
	a.NextHop, _ = netip.AddrFromSlice(b)
	return nil
}

func (a *Attribute) isVPN() bool { return a.SAFI == SAFIVPN || a.SAFI == SAFIVPNMcast }

func parseTLVs(b []byte) (tlvs []TLV, trailing []byte) {
	for len(b) >= 4 {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if len(b)-4 < n {
			break
		}
		tlvs = append(tlvs, TLV{Code: binary.BigEndian.Uint16(b), Value: b[4 : 4+n : 4+n]})
		b = b[4+n:]
	}
	if len(b) == 0 {
		return tlvs, nil
	}
	return tlvs, b
}

// Append writes the attribute as it is: the order of the TLVs, duplicates, unknown ones and Trailing
// are kept, so that what Parse read comes back byte for byte. It doesn't apply the sender's rules:
// New and CheckSend do.
func (a *Attribute) Append(dst []byte) ([]byte, error) {
	value, err := a.AppendValue(nil)
	if err != nil {
		return dst, err
	}
	flags := a.Flags
	if len(value) > 0xff {
		flags |= FlagExtended
	}
	dst = append(dst, flags, AttributeType)
	if flags&FlagExtended != 0 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(value)))
	} else {
		dst = append(dst, uint8(len(value)))
	}
	return append(dst, value...), nil
}

// AppendValue writes what follows the length.
func (a *Attribute) AppendValue(dst []byte) ([]byte, error) {
	start := len(dst)
	if !a.NextHop.IsValid() || a.NextHop.Zone() != "" {
		return dst, fail(3, "next hop", "%q must be an IPv4 or IPv6 address without zone", a.NextHop, ErrNextHop)
	}
	if n := len(a.RD); n != 0 && (n != rdLen || !a.isVPN()) {
		return dst, fail(4, "route distinguisher", "has %d octets for SAFI %d: 8, and only in a VPN", n, a.SAFI, ErrNextHopLength)
	}
	nh := a.NextHop.AsSlice()
	dst = binary.BigEndian.AppendUint16(dst, a.AFI)
	dst = append(dst, a.SAFI, uint8(len(a.RD)+len(nh)))
	dst = append(dst, a.RD...)
	dst = append(dst, nh...)
	for _, t := range a.TLVs {
		if len(t.Value) > 0xffff {
			return dst[:start], fail(len(dst)-start, "TLV length", "code %d has %d octets, at most 65535", t.Code, len(t.Value), ErrLength)
		}
		dst = binary.BigEndian.AppendUint16(dst, t.Code)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(t.Value)))
		dst = append(dst, t.Value...)
	}
	dst = append(dst, a.Trailing...)
	if n := len(dst) - start; n > 0xffff {
		return dst[:start], fail(0, "length", "value has %d octets, at most %d", n, 0xffff, ErrLength)
	}
	return dst, nil
}
