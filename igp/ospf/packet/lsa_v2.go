package packet

import (
	"encoding/binary"
	"net/netip"
)

// Flags of a router LSA (RFC 2328 section A.4.2, RFC 5340 section A.4.3).
const (
	RouterB  = 0x01 // area border router
	RouterE  = 0x02 // AS boundary router
	RouterV  = 0x04 // end of a virtual link
	RouterNt = 0x10 // NSSA translator (RFC 3101)
)

// Kinds of links of a router LSA (RFC 2328 section A.4.2).
const (
	LinkPointToPoint uint8 = 1
	LinkTransit      uint8 = 2
	LinkStub         uint8 = 3 // OSPFv2
	LinkVirtual      uint8 = 4
)

// MaxLinkMetric keeps transit traffic away from a router (RFC 6987 section 2).
const MaxLinkMetric uint16 = 0xFFFF

// V2Link is a link of a router LSA of OSPFv2.
type V2Link struct {
	ID     ID // the neighbour, the DR's address, or the network, by kind
	Data   ID // the own address, or the mask of a stub network
	Kind   uint8
	Metric uint16
	TOS    []byte // metrics by type of service, 4 octets each, kept
}

// V2RouterLSA is the body of a router LSA of OSPFv2 (RFC 2328 section A.4.2).
type V2RouterLSA struct {
	Flags    uint8
	reserved uint8
	Links    []V2Link
}

const v2LinkLen = 12

// ParseV2Router reads the body of a router LSA.
func ParseV2Router(b []byte) (V2RouterLSA, error) {
	if len(b) < 4 {
		return V2RouterLSA{}, fault(0, "router LSA", "%d octets, must be at least 4 (RFC 2328 section A.4.2)", len(b))
	}
	r := V2RouterLSA{Flags: b[0], reserved: b[1]}
	count, at := int(binary.BigEndian.Uint16(b[2:])), 4
	for range count {
		if len(b)-at < v2LinkLen {
			return V2RouterLSA{}, fault(at, "link", "%d octets are left, must be 12 (RFC 2328 section A.4.2)", len(b)-at)
		}
		l := V2Link{
			ID:     ID(binary.BigEndian.Uint32(b[at:])),
			Data:   ID(binary.BigEndian.Uint32(b[at+4:])),
			Kind:   b[at+8],
			Metric: binary.BigEndian.Uint16(b[at+10:]),
		}
		tos := 4 * int(b[at+9])
		at += v2LinkLen
		if tos > len(b)-at {
			return V2RouterLSA{}, fault(at, "TOS metrics", "%d octets, but %d are left", tos, len(b)-at)
		}
		l.TOS = b[at : at+tos]
		at += tos
		r.Links = append(r.Links, l)
	}
	if at != len(b) {
		return V2RouterLSA{}, fault(at, "router LSA", "%d octets behind the last link", len(b)-at)
	}
	return r, nil
}

// Append writes the body.
func (r V2RouterLSA) Append(dst []byte) []byte {
	dst = append(dst, r.Flags, r.reserved)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.Links)))
	for _, l := range r.Links {
		dst = binary.BigEndian.AppendUint32(dst, uint32(l.ID))
		dst = binary.BigEndian.AppendUint32(dst, uint32(l.Data))
		dst = append(dst, l.Kind, uint8(len(l.TOS)/4))
		dst = binary.BigEndian.AppendUint16(dst, l.Metric)
		dst = append(dst, l.TOS...)
	}
	return dst
}

// V2NetworkLSA is the body of a network LSA of OSPFv2 (RFC 2328 section A.4.3): the routers of a network
// that the advertising router is the DR of.
type V2NetworkLSA struct {
	Mask    uint32
	Routers []ID
}

// ParseV2Network reads the body of a network LSA.
func ParseV2Network(b []byte) (V2NetworkLSA, error) {
	if len(b) < 8 || len(b)%4 != 0 {
		return V2NetworkLSA{}, fault(0, "network LSA", "%d octets, must be 4 and 4 for each of at least one router (RFC 2328 section A.4.3)", len(b))
	}
	n := V2NetworkLSA{Mask: binary.BigEndian.Uint32(b)}
	n.Routers = parseIDs(b[4:])
	return n, nil
}

func parseIDs(b []byte) []ID {
	list := make([]ID, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		list = append(list, ID(binary.BigEndian.Uint32(b)))
	}
	return list
}

// MaxMetric is LSInfinity: what has it is not reachable (RFC 2328 appendix B).
const MaxMetric uint32 = 0xFFFFFF

// ParseV2Summary reads mask and metric of a summary LSA, type 3 or 4 (RFC 2328 section A.4.4).
func ParseV2Summary(b []byte) (mask, metric uint32, err error) {
	if len(b) < 8 || len(b)%4 != 0 {
		return 0, 0, fault(0, "summary LSA", "%d octets, must be 8 and 4 for each type of service (RFC 2328 section A.4.4)", len(b))
	}
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]) & MaxMetric, nil
}

// MaskBits gives the length of a mask, and false when its ones are not at the front.
func MaskBits(mask uint32) (bits int, ok bool) {
	for mask&(1<<31) != 0 {
		mask <<= 1
		bits++
	}
	return bits, mask == 0
}

// Address gives an ID as the IPv4 address that it is in some places of OSPFv2.
func (i ID) Address() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
}

// IDOf gives the ID that looks like an IPv4 address.
func IDOf(a netip.Addr) ID {
	b := a.As4()
	return ID(binary.BigEndian.Uint32(b[:]))
}
