package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ErrVPNNumber is wrapped by errors about the text of a route distinguisher or route target.
var ErrVPNNumber = errors.New("must be AS:number, IPv4:number, or 0:, 1: or 2: for the type in front of it")

// rdLen is the length of a route distinguisher and of an extended community in octets.
const rdLen = 8

// RD is a route distinguisher as it is on the wire (RFC 4364 section 4.2): a type of two octets, an
// administrator and a number.
type RD [rdLen]byte

// RouteTarget is a route target extended community as it is on the wire (RFC 4360 section 4, RFC 5668
// section 2): a type of two octets, an administrator and a number.
type RouteTarget [rdLen]byte

// Types of RDs, and high octets of the type of route targets.
const (
	vpnTwoOctetAS  = 0 // AS number of 2 octets, number of 4
	vpnIPv4        = 1 // address of 4 octets, number of 2
	vpnFourOctetAS = 2 // AS number of 4 octets, number of 2

	subtypeTarget = 2 // low octet of the type of route targets
)

// ParseRD reads a route distinguisher: 65000:100, 192.0.2.1:100 or 4200000000:100, also with the type
// in front as RFC 8294 writes it (2:65000:100 is an AS number of four octets). Errors wrap ErrVPNNumber.
func ParseRD(s string) (RD, error) {
	typ, rest, err := parseVPNNumber(s)
	if err != nil {
		return RD{}, fmt.Errorf("route distinguisher %q: %w", s, err)
	}
	return RD(append([]byte{0, typ}, rest[:]...)), nil
}

// ParseRouteTarget reads a route target, written as ParseRD says.
func ParseRouteTarget(s string) (RouteTarget, error) {
	typ, rest, err := parseVPNNumber(s)
	if err != nil {
		return RouteTarget{}, fmt.Errorf("route target %q: %w", s, err)
	}
	return RouteTarget(append([]byte{typ, subtypeTarget}, rest[:]...)), nil
}

// String writes what ParseRD reads; an RD of an unknown type as type and hexadecimal value.
func (r RD) String() string {
	if r[0] != 0 {
		return fmt.Sprintf("%d:0x%x", binary.BigEndian.Uint16(r[:]), r[2:])
	}
	return vpnNumberText(r[1], [6]byte(r[2:]))
}

// String writes what ParseRouteTarget reads.
func (r RouteTarget) String() string { return vpnNumberText(r[0], [6]byte(r[2:])) }

func parseVPNNumber(s string) (typ uint8, b [6]byte, err error) {
	admin, number, ok := cutLast(s)
	explicit := ""
	if i := strings.IndexByte(admin, ':'); i >= 0 {
		explicit, admin = admin[:i], admin[i+1:]
	}
	if !ok {
		return 0, b, ErrVPNNumber
	}
	if a, err := netip.ParseAddr(admin); err == nil && a.Is4() {
		if explicit != "" && explicit != "1" {
			return 0, b, ErrVPNNumber
		}
		n, err := decimal(number, 16)
		copy(b[:], a.AsSlice())
		binary.BigEndian.PutUint16(b[4:], uint16(n))
		return vpnIPv4, b, err
	}
	as, err := decimal(admin, 32)
	if err != nil {
		return 0, b, err
	}
	switch {
	case explicit == "2", explicit == "" && as > 0xffff:
		n, err := decimal(number, 16)
		binary.BigEndian.PutUint32(b[:], as)
		binary.BigEndian.PutUint16(b[4:], uint16(n))
		return vpnFourOctetAS, b, err
	case as <= 0xffff && (explicit == "" || explicit == "0"):
		n, err := decimal(number, 32)
		binary.BigEndian.PutUint16(b[:], uint16(as))
		binary.BigEndian.PutUint32(b[2:], n)
		return vpnTwoOctetAS, b, err
	}
	return 0, b, ErrVPNNumber
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// decimal reads digits alone: no sign, no underscore.
func decimal(s string, bits int) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is no number of %d bits", ErrVPNNumber, s, bits)
	}
	return uint32(n), nil
}

func vpnNumberText(typ uint8, b [6]byte) string {
	switch typ {
	case vpnTwoOctetAS:
		return fmt.Sprintf("%d:%d", binary.BigEndian.Uint16(b[:]), binary.BigEndian.Uint32(b[2:]))
	case vpnIPv4:
		return fmt.Sprintf("%s:%d", netip.AddrFrom4([4]byte(b[:4])), binary.BigEndian.Uint16(b[4:]))
	case vpnFourOctetAS:
		as := binary.BigEndian.Uint32(b[:])
		text := fmt.Sprintf("%d:%d", as, binary.BigEndian.Uint16(b[4:]))
		if as <= 0xffff {
			return "2:" + text // else it would be read as another type
		}
		return text
	}
	return fmt.Sprintf("%d:0x%x", typ, b[:])
}

// VPN reports whether routes of the family belong to VPNs.
func (f Family) VPN() bool { return f == IPv4VPN || f == IPv6VPN }

// VPNFamilyOf is the VPN family of an address.
func VPNFamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4VPN
	}
	return IPv6VPN
}

// VPNPrefix is a prefix in the space of a route distinguisher.
type VPNPrefix struct {
	RD     RD
	VPN    bool // false: a unicast prefix; then RD is zero
	Prefix netip.Prefix
}

// VPNInfo is what an announcement inside a VPN has besides. The route targets are among the
// announcement's attributes (TargetsAttribute).
type VPNInfo struct {
	RD    RD
	Label uint32 // MPLS label, 20 bits
}

// Family is the announcement's address family.
func (a *Announcement) Family() Family {
	if a.VPN != nil {
		return VPNFamilyOf(a.Prefix.Addr())
	}
	return FamilyOf(a.Prefix.Addr())
}

// key identifies the announcement.
func (a *Announcement) key() VPNPrefix {
	if a.VPN != nil {
		return VPNPrefix{RD: a.VPN.RD, VPN: true, Prefix: a.Prefix}
	}
	return VPNPrefix{Prefix: a.Prefix}
}

// TargetsAttribute writes an Extended Communities attribute (RFC 4360 section 2) of route targets.
func TargetsAttribute(targets []RouteTarget) RawAttribute {
	n := len(targets) * rdLen
	a := RawAttribute{0xd0, attrExtendedCommunities, uint8(n >> 8), uint8(n)}
	for _, t := range targets {
		a = append(a, t[:]...)
	}
	return a
}

// vpnNLRI writes a prefix as RFC 8277 section 2.2 and RFC 4364 section 4.3.4 have it: one label with
// the bottom of stack bit, the RD, the prefix.
func vpnNLRI(v *VPNInfo, p netip.Prefix) []byte {
	p = p.Masked()
	label := v.Label<<4 | 1
	b := []byte{uint8(24 + 8*rdLen + p.Bits()), uint8(label >> 16), uint8(label >> 8), uint8(label)}
	b = append(b, v.RD[:]...)
	return append(b, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
}

// String writes the prefix, with its RD in front inside a VPN.
func (p VPNPrefix) String() string {
	if p.VPN {
		return p.RD.String() + ":" + p.Prefix.String()
	}
	return p.Prefix.String()
}
