package packet

import (
	"encoding/binary"
	"net/netip"
)

// Source is which router originated a prefix in the domain (RFC 9084), as the sub-TLVs of the prefix say.
type Source struct {
	Router  ID         // 0: not said
	Address netip.Addr // of that router; invalid: not said
}

// ParseSource reads the source of a prefix from its sub-TLVs. Of several, as for a prefix with several originators,
// the first counts. A router ID of zero is not said (RFC 9084 section 2.1).
func ParseSource(v Version, subs []TLV) (s Source, err error) {
	router, address := V2SubSourceRouterID, V2SubSourceRouterAddr
	if v == V3 {
		router, address = V3SubSourceRouterID, V3SubSourceRouterAddr
	}
	if value, ok := Find(subs, router); ok {
		if len(value) != 4 {
			return Source{}, fault(0, "Prefix Source OSPF Router-ID", "%d octets, must be 4 (RFC 9084 section 2.1)", len(value))
		}
		s.Router = ID(binary.BigEndian.Uint32(value))
	}
	if value, ok := Find(subs, address); ok {
		if s.Address, ok = netip.AddrFromSlice(value); !ok {
			return Source{}, fault(0, "Prefix Source Router Address", "%d octets, must be 4 or 16 (RFC 9084 section 2.2)", len(value))
		}
	}
	return s, nil
}
