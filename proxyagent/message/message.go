package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Errors of parsing, which wrap one of them; those of Append say which field breaks which rule.
var (
	// ErrLength: the payload's length belongs to no format.
	ErrLength = errors.New("message: length fits no format")
	// ErrFormat1: the payload's length is that of format 1, which ParseFormat2 does not read.
	ErrFormat1 = errors.New("message: format 1 has a port of its own")
	// ErrFormat2: the payload's length is that of format 2, which Parse does not read.
	ErrFormat2 = errors.New("message: format 2 has a port of its own")
)

// Format is the format of a notification.
type Format uint8

// The formats.
const (
	FormatUnknown Format = iota
	Format1              // five-tuple and Destination QP
	Format2              // five-tuple and NRP Selector ID
)

// FormatOf tells the format of a UDP payload of n octets; FormatUnknown when no format has that
// length.
func FormatOf(n int) Format {
	switch n {
	case Format1LenIPv4, Format1LenIPv6:
		return Format1
	case Format2LenIPv4, Format2LenIPv6:
		return Format2
	default:
		return FormatUnknown
	}
}

// Notification is a notification of format 1: the congested flow, as its data packets name it.
type Notification struct {
	Src, Dst netip.Addr // the data packet's addresses, both IPv4 or both IPv6
	SrcPort  uint16     // the data packet's UDP source port
	DstPort  uint16     // the data packet's UDP destination port, 4791 for RoCEv2
	Proto    uint8      // the data packet's IP protocol, 17
	DestQP   uint32     // the data packet's Destination QP, 24 bits
}

// Append appends n in format 1 to dst: 16 octets for IPv4, 40 for IPv6. It fails, and
// leaves dst as it was, when an address is invalid or has a zone, the families differ, or the
// Destination QP exceeds 24 bits. It does not allocate when dst has room.
func (n *Notification) Append(dst []byte) ([]byte, error) {
	l, err := n.layout()
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = slices.Grow(dst, l.end)[:start+l.end]
	b := dst[start:]
	putAddr(b[l.src:l.src+l.addrLen], n.Src)
	putAddr(b[l.dst:l.dst+l.addrLen], n.Dst)
	binary.BigEndian.PutUint16(b[l.srcPort:], n.SrcPort)
	binary.BigEndian.PutUint16(b[l.dstPort:], n.DstPort)
	b[l.proto] = n.Proto
	putUint24(b[l.destQP:], n.DestQP)
	return dst, nil
}

func (n *Notification) layout() (*layout, error) {
	switch {
	case !n.Src.IsValid():
		return nil, fmt.Errorf("message: source address: not given")
	case !n.Dst.IsValid():
		return nil, fmt.Errorf("message: destination address: not given")
	case n.Src.Is4() != n.Dst.Is4():
		return nil, fmt.Errorf("message: source address %s and destination address %s: the families differ", n.Src, n.Dst)
	case n.Src.Zone() != "":
		return nil, fmt.Errorf("message: source address %s: a zone has no place on the wire", n.Src)
	case n.Dst.Zone() != "":
		return nil, fmt.Errorf("message: destination address %s: a zone has no place on the wire", n.Dst)
	case n.DestQP > MaxQP:
		return nil, fmt.Errorf("message: Destination QP %#x: more than 24 bits", n.DestQP)
	default:
		return layoutFor(n.Src), nil
	}
}

func layoutFor(a netip.Addr) *layout {
	if a.Is4() {
		return &layoutIPv4
	}
	return &layoutIPv6
}

// Parse reads a notification of format 1 from a whole UDP payload. It fails with ErrFormat2 for the
// two lengths of format 2, and with ErrLength for any other. Every payload of a format 1 length
// parses: format 1 has no reserved bits, and whether the flow can be RoCEv2 is not the codec's to say.
func Parse(b []byte) (Notification, error) {
	var n Notification
	var l *layout
	switch len(b) {
	case Format1LenIPv4:
		l = &layoutIPv4
		n.Src = netip.AddrFrom4([4]byte(b[l.src:]))
		n.Dst = netip.AddrFrom4([4]byte(b[l.dst:]))
	case Format1LenIPv6:
		l = &layoutIPv6
		n.Src = netip.AddrFrom16([16]byte(b[l.src:]))
		n.Dst = netip.AddrFrom16([16]byte(b[l.dst:]))
	default:
		return Notification{}, CheckLength(Format1, len(b))
	}
	n.SrcPort = binary.BigEndian.Uint16(b[l.srcPort:])
	n.DstPort = binary.BigEndian.Uint16(b[l.dstPort:])
	n.Proto = b[l.proto]
	n.DestQP = uint24(b[l.destQP:])
	return n, nil
}

// CheckLength gives the error that the parser of a format gives for a payload of n octets; nil for a length of
// that format. It serves whoever does not hold the whole payload.
func CheckLength(want Format, n int) error {
	switch got := FormatOf(n); {
	case got == FormatUnknown:
		return fmt.Errorf("%w: %d octets; format 1 has %d (IPv4) or %d (IPv6), format 2 has %d or %d",
			ErrLength, n, Format1LenIPv4, Format1LenIPv6, Format2LenIPv4, Format2LenIPv6)
	case got == want:
		return nil
	case got == Format1:
		return fmt.Errorf("%w: %d octets", ErrFormat1, n)
	}
	return fmt.Errorf("%w: %d octets", ErrFormat2, n)
}

func putAddr(b []byte, a netip.Addr) {
	if len(b) == addrLenIPv4 {
		v := a.As4()
		copy(b, v[:])
		return
	}
	v := a.As16()
	copy(b, v[:])
}

func putUint24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }

func uint24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }
