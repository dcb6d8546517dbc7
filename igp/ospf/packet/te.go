package packet

import "net/netip"

// TLVs that name a router's address in traffic engineering LSAs: a stable address of the router, always reachable
// while it is (RFC 3630 section 2.4.1, RFC 5329 section 3).
const (
	v2TLVRouterAddress     uint16 = 1
	v3TLVRouterIPv6Address uint16 = 3
)

// ParseTERouterAddress reads the router address of a traffic engineering LSA's body: of OpaqueTE in OSPFv2, of
// V3IntraAreaTE in OSPFv3. It is invalid when the LSA is about something else, as that of a link.
func ParseTERouterAddress(v Version, b []byte) (netip.Addr, error) {
	tlvs, err := ParseTLVs(b)
	if err != nil {
		return netip.Addr{}, err
	}
	typ, octets, source := v2TLVRouterAddress, 4, "RFC 3630 section 2.4.1"
	if v == V3 {
		typ, octets, source = v3TLVRouterIPv6Address, 16, "RFC 5329 section 3"
	}
	value, ok := Find(tlvs, typ)
	if !ok {
		return netip.Addr{}, nil
	}
	if len(value) != octets {
		return netip.Addr{}, fault(0, "router address", "%d octets, must be %d (%s)", len(value), octets, source)
	}
	a, _ := netip.AddrFromSlice(value)
	return a, nil
}
