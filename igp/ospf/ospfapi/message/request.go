package message

import (
	"encoding/binary"
	"net/netip"

	"pncd/igp/ospf/packet"
)

// Origin says which LSAs a filter takes.
type Origin uint8

// The origins.
const (
	OriginOthers Origin = 0
	OriginSelf   Origin = 1
	OriginAny    Origin = 2
)

// Filter says which LSAs of the daemon are of interest, of all areas.
type Filter struct {
	Types  uint16 // a bit for each type: TypeMask
	Origin Origin
}

// TypeMask makes the bits of LSA types: type 1 is bit 0 (FRR, ospfd/ospf_api.h, Power2; measured with FRR 8.4.4).
func TypeMask(types ...packet.LSType) (mask uint16) {
	for _, t := range types {
		mask |= 1 << (t - 1)
	}
	return mask
}

const filterLen = 4

// append writes the filter with a list of no areas, which stands for all.
func (f Filter) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, f.Types)
	return append(dst, uint8(f.Origin), 0)
}

func parseFilter(b []byte) (f Filter, err error) {
	if len(b) < filterLen {
		return f, fault(0, "filter", "%d octets, must be at least 4", len(b))
	}
	if b[3] != 0 || len(b) > filterLen {
		return f, fault(3, "areas", "%d and %d octets, must be none", b[3], len(b)-filterLen)
	}
	return Filter{Types: binary.BigEndian.Uint16(b), Origin: Origin(b[2])}, nil
}

// RegisterEvent asks to be told when LSAs change. It is safe without an instance, too.
type RegisterEvent struct{ Filter Filter }

// Type gives the message's type.
func (RegisterEvent) Type() Type                 { return TypeRegisterEvent }
func (r RegisterEvent) append(dst []byte) []byte { return r.Filter.append(dst) }
func (RegisterEvent) request()                   {}

// SyncLSDB asks to be told all LSAs that are there, with the sequence number of the request. The daemon of FRR 8.4.4
// crashes when it has no OSPF instance in the default VRF: ask with InstanceProbe before.
type SyncLSDB struct{ Filter Filter }

// Type gives the message's type.
func (SyncLSDB) Type() Type                 { return TypeSyncLSDB }
func (s SyncLSDB) append(dst []byte) []byte { return s.Filter.append(dst) }
func (SyncLSDB) request()                   {}

// SyncRouterID asks for the router ID, which the daemon tells behind all that it told before. It crashes without an
// instance as SyncLSDB does.
type SyncRouterID struct{ filler [4]byte }

// Type gives the message's type.
func (SyncRouterID) Type() Type { return TypeSyncRouterID }

// append writes four octets, as FRR's own client does: the daemon needs none, but aborts when there are none.
func (s SyncRouterID) append(dst []byte) []byte { return append(dst, s.filler[:]...) }
func (SyncRouterID) request()                   {}

// InstanceProbe asks whether the daemon has an OSPF instance in the default VRF with an interface of this address. It
// is the one question of that kind that doesn't crash a daemon without an instance. The answer is
// OpaqueNotRegistered when there is one, NoSuchInterface when there is none.
//
// On the wire it is an originate request for an opaque LSA of link scope, type 255 (RFC 5250 section 9: private
// use), without a body. The daemon looks for the interface first, and then refuses what the client has not
// registered. A client of this package can't register anything, so nothing is ever originated.
type InstanceProbe struct{ Interface netip.Addr }

// Type gives the message's type.
func (InstanceProbe) Type() Type { return TypeOriginate }

func (p InstanceProbe) append(dst []byte) []byte {
	dst = appendAddr(dst, p.Interface)
	dst = append(dst, 0, 0, 0, 0) // area: not looked at
	h := packet.Header{Key: packet.Key{Type: packet.V2OpaqueLink, ID: packet.OpaqueID(probeOpaque, 0)}, Length: packet.HeaderLen}
	return h.Append(packet.V2, dst)
}
func (InstanceProbe) request() {}

const probeOpaque = 255
