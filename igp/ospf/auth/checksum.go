package auth

import (
	"encoding/binary"
	"fmt"
)

// sum adds 16 bit words in one's complement (RFC 1071); an odd octet at the end has a zero behind it.
func sum(acc uint32, b []byte) uint32 {
	for ; len(b) > 1; b = b[2:] {
		acc += uint32(binary.BigEndian.Uint16(b))
		acc = acc&0xFFFF + acc>>16
	}
	if len(b) == 1 {
		acc += uint32(b[0]) << 8
	}
	return acc&0xFFFF + acc>>16
}

// sumV2 leaves the 64 bit authentication field out (RFC 2328 section D.4).
func sumV2(pkt []byte) uint32 { return sum(sum(0, pkt[:authAt]), pkt[v2HeaderLen:]) }

// checksumV2 gives the checksum of a packet whose checksum field is 0.
func checksumV2(pkt []byte) uint16 { return ^uint16(sumV2(pkt)) }

func checksumV2OK(pkt []byte) bool { return sumV2(pkt) == 0xFFFF }

// protocolOSPF is the next header (RFC 5340 section A.3.1).
const protocolOSPF = 89

// sumV3 has the IPv6 pseudo header before the packet. Its length is the packet's, not that of the payload.
func sumV3(pkt []byte, a Addresses) (uint32, error) {
	if !a.Source.Is6() || !a.Destination.Is6() {
		return 0, fmt.Errorf("%w: %s to %s, must be IPv6 (RFC 5340 section A.3.1)", ErrAddress, a.Source, a.Destination)
	}
	from, to := a.Source.As16(), a.Destination.As16()
	acc := sum(sum(0, from[:]), to[:])
	acc = sum(acc, binary.BigEndian.AppendUint32(nil, uint32(len(pkt))))
	return sum(sum(acc, []byte{0, protocolOSPF}), pkt), nil
}

// checksumV3 gives the checksum of a packet whose checksum field is 0.
func checksumV3(pkt []byte, a Addresses) (uint16, error) {
	s, err := sumV3(pkt, a)
	return ^uint16(s), err
}

func checksumV3OK(pkt []byte, a Addresses) (bool, error) {
	s, err := sumV3(pkt, a)
	return s == 0xFFFF, err
}
