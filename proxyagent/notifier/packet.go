package notifier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"pncd/proxyagent/message"
)

const (
	ipv4Len  = 20
	ipv6Len  = 40
	udpLen   = 8
	protoUDP = 17

	ipv4DontFragment = 0x4000
	// maxPacket is the longest packet built here.
	maxPacket = ipv6Len + udpLen + message.MaxLen
)

// errNoSource: no source address of the proxy's family is configured.
var errNoSource = errors.New("no source address of the proxy's family is configured")

// outer is what the outer headers are built from.
type outer struct {
	src, dst         netip.Addr
	tos, ttl         uint8
	srcPort, dstPort uint16
	id               uint16 // IPv4 identification, not zero: the kernel would choose its own
}

// payload is a notification of either format.
type payload interface {
	Append(dst []byte) ([]byte, error)
}

// appendPacket appends a whole IP packet that carries n.
func appendPacket(dst []byte, o *outer, n payload) ([]byte, error) {
	if !o.src.IsValid() {
		family := "IPv6"
		if o.dst.Is4() {
			family = "IPv4"
		}
		return dst, fmt.Errorf("%w: the proxy %s needs an %s source address", errNoSource, o.dst, family)
	}
	start := len(dst)
	var blank [ipv6Len + udpLen]byte
	ipLen := ipv6Len
	if o.dst.Is4() {
		ipLen = ipv4Len
	}
	packet, err := n.Append(append(dst, blank[:ipLen+udpLen]...))
	if err != nil {
		return dst, err
	}
	b := packet[start:]
	u := b[ipLen:]
	binary.BigEndian.PutUint16(u[0:], o.srcPort)
	binary.BigEndian.PutUint16(u[2:], o.dstPort)
	binary.BigEndian.PutUint16(u[4:], uint16(len(u)))
	var addresses uint32
	if o.dst.Is4() {
		addresses = o.putIPv4(b)
	} else {
		addresses = o.putIPv6(b)
	}
	// RFC 768: the pseudo header, then the datagram; a sum of zero is sent as all ones.
	sum := ^fold(addresses + protoUDP + uint32(len(u)) + sum16(u))
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(u[6:], sum)
	return packet, nil
}

// putIPv4 writes the IPv4 header (RFC 791) and returns the unfolded sum of the addresses.
func (o *outer) putIPv4(b []byte) uint32 {
	src, dst := o.src.As4(), o.dst.As4()
	b[0], b[1] = 4<<4|ipv4Len/4, o.tos
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], o.id)
	binary.BigEndian.PutUint16(b[6:], ipv4DontFragment)
	b[8], b[9] = o.ttl, protoUDP
	copy(b[12:16], src[:])
	copy(b[16:20], dst[:])
	binary.BigEndian.PutUint16(b[10:], ^fold(sum16(b[:ipv4Len])))
	return sum16(b[12:20])
}

// putIPv6 writes the IPv6 header (RFC 8200 section 3) and returns the unfolded sum of the addresses.
func (o *outer) putIPv6(b []byte) uint32 {
	src, dst := o.src.As16(), o.dst.As16()
	binary.BigEndian.PutUint32(b[0:], 6<<28|uint32(o.tos)<<20)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-ipv6Len))
	b[6], b[7] = protoUDP, o.ttl
	copy(b[8:24], src[:])
	copy(b[24:40], dst[:])
	return sum16(b[8:40])
}

// sum16 adds up 16-bit words (RFC 1071); len(b) is even here: headers and both formats are.
func sum16(b []byte) uint32 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	return sum
}

func fold(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
