package packet

import (
	"encoding/binary"
	"net/netip"
)

// V3RouterLink is a link of a router LSA of OSPFv3 (RFC 5340 section A.4.3).
type V3RouterLink struct {
	Kind              uint8
	reserved          uint8
	Metric            uint16
	Interface         uint32 // the own interface ID
	NeighborInterface uint32 // the neighbour's, or the DR's
	Neighbor          ID     // its router ID, or the DR's
}

// V3RouterLSA is the body of a router LSA of OSPFv3. A router may have several.
type V3RouterLSA struct {
	Flags   uint8
	Options uint32 // 24 bits
	Links   []V3RouterLink
}

const v3LinkLen = 16

// ParseV3Router reads the body of a router LSA.
func ParseV3Router(b []byte) (V3RouterLSA, error) {
	if len(b) < 4 || (len(b)-4)%v3LinkLen != 0 {
		return V3RouterLSA{}, fault(0, "router LSA", "%d octets, must be 4 and 16 for each link (RFC 5340 section A.4.3)", len(b))
	}
	r := V3RouterLSA{Flags: b[0], Options: binary.BigEndian.Uint32(b) & 0xFFFFFF}
	for at := 4; at < len(b); at += v3LinkLen {
		r.Links = append(r.Links, V3RouterLink{
			Kind: b[at], reserved: b[at+1],
			Metric:            binary.BigEndian.Uint16(b[at+2:]),
			Interface:         binary.BigEndian.Uint32(b[at+4:]),
			NeighborInterface: binary.BigEndian.Uint32(b[at+8:]),
			Neighbor:          ID(binary.BigEndian.Uint32(b[at+12:])),
		})
	}
	return r, nil
}

// Append writes the body.
func (r V3RouterLSA) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.Flags)<<24|r.Options&0xFFFFFF)
	for _, l := range r.Links {
		dst = append(dst, l.Kind, l.reserved)
		dst = binary.BigEndian.AppendUint16(dst, l.Metric)
		dst = binary.BigEndian.AppendUint32(dst, l.Interface)
		dst = binary.BigEndian.AppendUint32(dst, l.NeighborInterface)
		dst = binary.BigEndian.AppendUint32(dst, uint32(l.Neighbor))
	}
	return dst
}

// V3NetworkLSA is the body of a network LSA of OSPFv3 (RFC 5340 section A.4.4). Its link state ID is the DR's
// interface ID.
type V3NetworkLSA struct {
	Options uint32
	Routers []ID
}

// ParseV3Network reads the body of a network LSA.
func ParseV3Network(b []byte) (V3NetworkLSA, error) {
	if len(b) < 8 || len(b)%4 != 0 {
		return V3NetworkLSA{}, fault(0, "network LSA", "%d octets, must be 4 and 4 for each of at least one router (RFC 5340 section A.4.4)", len(b))
	}
	return V3NetworkLSA{Options: binary.BigEndian.Uint32(b) & 0xFFFFFF, Routers: parseIDs(b[4:])}, nil
}

// ParseV3InterAreaRouter reads metric and destination of an inter-area-router LSA (RFC 5340 section A.4.6).
func ParseV3InterAreaRouter(b []byte) (metric uint32, router ID, err error) {
	if len(b) != 12 {
		return 0, 0, fault(0, "inter-area-router LSA", "%d octets, must be 12 (RFC 5340 section A.4.6)", len(b))
	}
	return binary.BigEndian.Uint32(b[4:]) & MaxMetric, ID(binary.BigEndian.Uint32(b[8:])), nil
}

// Prefix options of OSPFv3 (RFC 5340 section A.4.1.1; RFC 8362 section 3.1).
const (
	PrefixNU = 0x01 // not for unicast
	PrefixLA = 0x02 // an address of the advertising router
	PrefixP  = 0x08 // propagate: NSSA, not the P flag
	PrefixDN = 0x10
	PrefixN  = 0x20 // node
)

// prefixOctets is how many octets hold a prefix of OSPFv3: whole words.
func prefixOctets(bits int) int { return (bits + 31) / 32 * 4 }

// parsePrefix reads a prefix of so many bits from the begin of b. Bits behind the length are ignored.
func parsePrefix(b []byte, bits int) (netip.Prefix, int, error) {
	if bits > 128 {
		return netip.Prefix{}, 0, fault(0, "prefix length", "%d, at most 128 (RFC 5340 section A.4.1)", bits)
	}
	n := prefixOctets(bits)
	if n > len(b) {
		return netip.Prefix{}, 0, fault(0, "prefix", "%d octets, but %d are left", n, len(b))
	}
	var a [16]byte
	copy(a[:], b[:n])
	return netip.PrefixFrom(netip.AddrFrom16(a), bits).Masked(), n, nil
}

// V3Prefix is a prefix of a legacy LSA of OSPFv3.
type V3Prefix struct {
	Prefix  netip.Prefix
	Options uint8
	Metric  uint16 // intra-area-prefix LSA
}

// V3LinkLSA is the body of a link LSA (RFC 5340 section A.4.9).
type V3LinkLSA struct {
	Priority uint8
	Options  uint32     // 24 bits
	Address  netip.Addr // link-local
	Prefixes []V3Prefix // without metrics
}

const linkHeaderLen = 24 // octets before the prefixes

// ParseV3Link reads the body of a link LSA.
func ParseV3Link(b []byte) (V3LinkLSA, error) {
	if len(b) < linkHeaderLen {
		return V3LinkLSA{}, fault(0, "link LSA", "%d octets, must be at least 24 (RFC 5340 section A.4.9)", len(b))
	}
	prefixes, err := parseV3Prefixes("link LSA", binary.BigEndian.Uint32(b[20:]), b, linkHeaderLen)
	if err != nil {
		return V3LinkLSA{}, err
	}
	return V3LinkLSA{
		Priority: b[0], Options: binary.BigEndian.Uint32(b) & 0xFFFFFF, Address: netip.AddrFrom16([16]byte(b[4:20])), Prefixes: prefixes,
	}, nil
}

// Append writes the body.
func (l V3LinkLSA) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(l.Priority)<<24|l.Options&0xFFFFFF)
	a := l.Address.As16()
	dst = append(dst, a[:]...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(l.Prefixes)))
	for _, p := range l.Prefixes {
		a, n := p.Prefix.Addr().As16(), prefixOctets(p.Prefix.Bits())
		dst = append(append(dst, uint8(p.Prefix.Bits()), p.Options, 0, 0), a[:n]...)
	}
	return dst
}

// parseV3Prefixes reads so many prefixes that are all of b from an offset on.
func parseV3Prefixes(what string, count uint32, b []byte, at int) (list []V3Prefix, err error) {
	for range count {
		if len(b)-at < 4 {
			return nil, fault(at, "prefix", "%d octets are left, must be at least 4 (RFC 5340 section A.4.1)", len(b)-at)
		}
		p, n, err := parsePrefix(b[at+4:], int(b[at]))
		if err != nil {
			return nil, shifted(err, at+4)
		}
		list = append(list, V3Prefix{p, b[at+1], binary.BigEndian.Uint16(b[at+2:])})
		at += 4 + n
	}
	if at != len(b) {
		return nil, fault(at, what, "%d octets behind the last prefix", len(b)-at)
	}
	return list, nil
}

// V3IntraAreaLSA is the body of an intra-area-prefix LSA (RFC 5340 section A.4.10).
type V3IntraAreaLSA struct {
	Referenced Key // router or network LSA that the prefixes belong to
	Prefixes   []V3Prefix
}

// intraAreaHeaderLen is the length of what is before the prefixes, octets: their number, which the extended form
// leaves zero, and the LSA that they belong to.
const intraAreaHeaderLen = 12

func parseReferenced(b []byte) Key {
	return Key{
		Type: LSType(binary.BigEndian.Uint16(b[2:])),
		ID:   ID(binary.BigEndian.Uint32(b[4:])),
		Adv:  ID(binary.BigEndian.Uint32(b[8:])),
	}
}

// ParseV3IntraArea reads the body of an intra-area-prefix LSA.
func ParseV3IntraArea(b []byte) (V3IntraAreaLSA, error) {
	if len(b) < intraAreaHeaderLen {
		return V3IntraAreaLSA{}, fault(0, "intra-area-prefix LSA", "%d octets, must be at least 12 (RFC 5340 section A.4.10)", len(b))
	}
	prefixes, err := parseV3Prefixes("intra-area-prefix LSA", uint32(binary.BigEndian.Uint16(b)), b, intraAreaHeaderLen)
	if err != nil {
		return V3IntraAreaLSA{}, err
	}
	return V3IntraAreaLSA{Referenced: parseReferenced(b), Prefixes: prefixes}, nil
}

// ParseV3InterAreaPrefix reads metric and prefix of an inter-area-prefix LSA (RFC 5340 section A.4.5).
func ParseV3InterAreaPrefix(b []byte) (metric uint32, p V3Prefix, err error) {
	if len(b) < 8 {
		return 0, V3Prefix{}, fault(0, "inter-area-prefix LSA", "%d octets, must be at least 8 (RFC 5340 section A.4.5)", len(b))
	}
	prefix, _, err := parsePrefix(b[8:], int(b[4]))
	if err != nil {
		return 0, V3Prefix{}, shifted(err, 8)
	}
	return binary.BigEndian.Uint32(b) & MaxMetric, V3Prefix{Prefix: prefix, Options: b[5]}, nil
}
