package packet

import (
	"encoding/binary"
	"net/netip"
)

// Route types of an Extended Prefix TLV (RFC 7684 section 2.1).
const (
	RouteUnspecified uint8 = 0
	RouteIntraArea   uint8 = 1
	RouteInterArea   uint8 = 3
	RouteExternal    uint8 = 5
	RouteNSSA        uint8 = 7
)

// Flags of an Extended Prefix TLV (RFC 7684 section 2.1, RFC 9792, IANA: OSPFv2 Extended Prefix TLV Flags).
const (
	ExtPrefixA = 0x80 // attached: an ABR originated it for a prefix of another area
	ExtPrefixN = 0x40 // node
)

// extendedPrefixTLV is the TLV type of an Extended Prefix (RFC 7684 section 2.1).
const extendedPrefixTLV uint16 = 1

// V2ExtendedPrefix is an Extended Prefix TLV of OSPFv2 (RFC 7684 section 2.1).
type V2ExtendedPrefix struct {
	RouteType uint8
	Family    uint8 // 0: IPv4 unicast
	Flags     uint8
	Prefix    netip.Prefix
	Subs      []TLV
}

// ParseV2ExtendedPrefixes reads the Extended Prefix TLVs of an Extended Prefix Opaque LSA's body. TLVs of
// other types, and other address families, are left out.
func ParseV2ExtendedPrefixes(b []byte) ([]V2ExtendedPrefix, error) {
	tlvs, err := ParseTLVs(b)
	if err != nil {
		return nil, err
	}
	var list []V2ExtendedPrefix
	for _, t := range tlvs {
		if t.Type != extendedPrefixTLV {
			continue
		}
		p, err := parseV2ExtendedPrefix(t.Value)
		if err != nil {
			return nil, err
		}
		if p.Family == 0 {
			list = append(list, p)
		}
	}
	return list, nil
}

func parseV2ExtendedPrefix(b []byte) (p V2ExtendedPrefix, err error) {
	// The prefix is of whole words; the default route has one all the same.
	const fixed, address = 4, 4
	if len(b) < fixed {
		return p, fault(0, "Extended Prefix TLV", "%d octets, must be at least 4 (RFC 7684 section 2.1)", len(b))
	}
	p.RouteType, p.Family, p.Flags = b[0], b[2], b[3]
	if p.Family != 0 {
		return p, nil
	}
	bits := int(b[1])
	if bits > 32 {
		return p, fault(1, "prefix length", "%d, at most 32 (RFC 7684 section 2.1)", bits)
	}
	if len(b) < fixed+address {
		return p, fault(fixed, "address prefix", "%d octets, must be 4 (RFC 7684 section 2.1)", len(b)-fixed)
	}
	p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte(b[fixed:fixed+address])), bits).Masked()
	if p.Subs, err = ParseTLVs(b[fixed+address:]); err != nil {
		return p, shifted(err, fixed+address)
	}
	return p, checkPrefixFlags(p.Subs, V2SubPrefixFlags)
}

// Append writes the TLV.
func (p V2ExtendedPrefix) Append(dst []byte) []byte {
	a := p.Prefix.Addr().As4()
	v := append([]byte{p.RouteType, uint8(p.Prefix.Bits()), p.Family, p.Flags}, a[:]...)
	for _, s := range p.Subs {
		v = AppendTLV(v, s)
	}
	return AppendTLV(dst, TLV{extendedPrefixTLV, v})
}

// TLV types of OSPFv3 Extended LSAs that carry a prefix (RFC 8362 section 3).
const (
	V3TLVInterAreaPrefix uint16 = 3
	V3TLVExternalPrefix  uint16 = 5
	V3TLVIntraAreaPrefix uint16 = 6
)

// V3ExtendedPrefix is a prefix TLV of an OSPFv3 Extended LSA (RFC 8362 sections 3.4, 3.6 and 3.7).
type V3ExtendedPrefix struct {
	Type    uint16 // of the TLV
	Metric  uint32 // 24 bits
	Prefix  netip.Prefix
	Options uint8
	Subs    []TLV

	high     uint8  // octet before the metric: the E bit of an external prefix
	reserved uint16 // behind the options
}

// V3EIntraArea is the body of an E-Intra-Area-Prefix LSA (RFC 8362 section 4.8).
type V3EIntraArea struct {
	Referenced Key
	Prefixes   []V3ExtendedPrefix
}

// ParseV3EIntraArea reads the body of an E-Intra-Area-Prefix LSA. TLVs of other types are left out.
func ParseV3EIntraArea(b []byte) (V3EIntraArea, error) {
	if len(b) < intraAreaHeaderLen {
		return V3EIntraArea{}, fault(0, "E-Intra-Area-Prefix LSA", "%d octets, must be at least 12 (RFC 8362 section 4.8)", len(b))
	}
	prefixes, err := ParseV3ExtendedPrefixes(b[intraAreaHeaderLen:])
	if err != nil {
		return V3EIntraArea{}, shifted(err, intraAreaHeaderLen)
	}
	return V3EIntraArea{Referenced: parseReferenced(b), Prefixes: prefixes}, nil
}

// Append writes the body.
func (l V3EIntraArea) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(l.Referenced.Type))
	dst = binary.BigEndian.AppendUint32(dst, uint32(l.Referenced.ID))
	dst = binary.BigEndian.AppendUint32(dst, uint32(l.Referenced.Adv))
	for _, p := range l.Prefixes {
		dst = p.Append(dst)
	}
	return dst
}

// ParseV3ExtendedPrefixes reads the prefix TLVs of an Extended LSA, as they are the whole body of an
// E-Inter-Area-Prefix or E-AS-External LSA. TLVs of other types are left out.
func ParseV3ExtendedPrefixes(b []byte) ([]V3ExtendedPrefix, error) {
	tlvs, err := ParseTLVs(b)
	if err != nil {
		return nil, err
	}
	var list []V3ExtendedPrefix
	for _, t := range tlvs {
		switch t.Type {
		case V3TLVInterAreaPrefix, V3TLVExternalPrefix, V3TLVIntraAreaPrefix:
			p, err := parseV3ExtendedPrefix(t)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	return list, nil
}

func parseV3ExtendedPrefix(t TLV) (V3ExtendedPrefix, error) {
	const fixed = 8
	b := t.Value
	if len(b) < fixed {
		return V3ExtendedPrefix{}, fault(0, "prefix TLV", "%d octets, must be at least 8 (RFC 8362 section 3.7)", len(b))
	}
	p := V3ExtendedPrefix{
		Type: t.Type, high: b[0], Metric: binary.BigEndian.Uint32(b) & MaxMetric,
		Options: b[5], reserved: binary.BigEndian.Uint16(b[6:]),
	}
	prefix, n, err := parsePrefix(b[fixed:], int(b[4]))
	if err != nil {
		return V3ExtendedPrefix{}, shifted(err, fixed)
	}
	p.Prefix = prefix
	if p.Subs, err = ParseTLVs(b[fixed+n:]); err != nil {
		return V3ExtendedPrefix{}, shifted(err, fixed+n)
	}
	return p, checkPrefixFlags(p.Subs, V3SubPrefixFlags)
}

// Append writes the TLV.
func (p V3ExtendedPrefix) Append(dst []byte) []byte {
	a := p.Prefix.Addr().As16()
	v := binary.BigEndian.AppendUint32(nil, uint32(p.high)<<24|p.Metric&MaxMetric)
	v = append(v, uint8(p.Prefix.Bits()), p.Options)
	v = binary.BigEndian.AppendUint16(v, p.reserved)
	v = append(v, a[:prefixOctets(p.Prefix.Bits())]...)
	for _, s := range p.Subs {
		v = AppendTLV(v, s)
	}
	return AppendTLV(dst, TLV{p.Type, v})
}
