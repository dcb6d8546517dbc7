package message

// This file is the only one that knows the order of the fields on the wire.
//
// Format 1, big-endian, without gaps; a is 4 for IPv4 and 16 for IPv6:
//
//	0        source address       a octets
//	a        destination address  a octets
//	2a       source port          2
//	2a+2     destination port     2
//	2a+4     protocol             1
//	2a+5     Destination QP       3
//
// Format 2 has the same octets, with those of the Destination QP reserved, and then:
//
//	2a+8     NRP Selector ID      4

// UDP destination ports (RFC 4727, section 6: ports for experiments; configurable).
const (
	PortFormat1 = 1021 // draft TBD1: unassigned, our default
	PortFormat2 = 1022 // draft TBD2: unassigned, our default
)

// The outer UDP source port carries the event number: EventPortBase + (n mod EventPortCount), the
// dynamic port range of RFC 6335, section 6.
const (
	EventPortBase  = 49152
	EventPortCount = 16384
)

// Lengths of the UDP payload in octets. The length alone tells format and family apart.
const (
	Format1LenIPv4 = 16
	Format1LenIPv6 = 40
	Format2LenIPv4 = 20
	Format2LenIPv6 = 44
	// MaxLen is the longest payload that any format has.
	MaxLen = Format2LenIPv6
)

// MaxQP is the largest queue pair number: 24 bits (IBTA volume 1, section 9.2.6).
const MaxQP = 1<<24 - 1

const (
	addrLenIPv4 = 4
	addrLenIPv6 = 16
)

// layout holds the offset of each field for one address length. Format 1 ends at end, format 2 at end2.
type layout struct {
	addrLen, src, dst, srcPort, dstPort, proto, destQP, end, nrp, end2 int
}

func layoutOf(addrLen int) layout {
	return layout{
		addrLen: addrLen,
		src:     0,
		dst:     addrLen,
		srcPort: 2 * addrLen,
		dstPort: 2*addrLen + 2,
		proto:   2*addrLen + 4,
		destQP:  2*addrLen + 5,
		end:     2*addrLen + 8,
		nrp:     2*addrLen + 8,
		end2:    2*addrLen + 12,
	}
}

var (
	layoutIPv4 = layoutOf(addrLenIPv4)
	layoutIPv6 = layoutOf(addrLenIPv6)
)
