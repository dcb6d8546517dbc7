package message

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Notification2 is a notification of format 2: the congested flow's five-tuple, and the network resource
// partition that it is in. It names no queue pair.
type Notification2 struct {
	Src, Dst netip.Addr // the data packet's addresses, both IPv4 or both IPv6
	SrcPort  uint16     // the data packet's UDP source port
	DstPort  uint16     // the data packet's UDP destination port, 4791 for RoCEv2
	Proto    uint8      // the data packet's IP protocol, 17
	NRP      uint32     // NRP Selector ID
}

// Append appends n in format 2 to dst: 20 octets for IPv4, 44 for IPv6, reserved ones zero. Errors, and dst
// then, as of Notification's Append. It does not allocate when dst has room.
func (n *Notification2) Append(dst []byte) ([]byte, error) {
	first := Notification{Src: n.Src, Dst: n.Dst, SrcPort: n.SrcPort, DstPort: n.DstPort, Proto: n.Proto}
	start := len(dst)
	out, err := first.Append(dst)
	if err != nil {
		return dst, err
	}
	l := layoutFor(n.Src)
	out = slices.Grow(out, l.end2-l.nrp)[:start+l.end2]
	binary.BigEndian.PutUint32(out[start+l.nrp:], n.NRP)
	return out, nil
}

// ParseFormat2 reads a notification of format 2 from a whole UDP payload. It fails with ErrFormat1 for the two
// lengths of format 1, and with ErrLength for any other. Every payload of a format 2 length parses: what the
// reserved octets hold is ignored.
func ParseFormat2(b []byte) (Notification2, error) {
	if err := CheckLength(Format2, len(b)); err != nil {
		return Notification2{}, err
	}
	l := &layoutIPv4
	if len(b) == Format2LenIPv6 {
		l = &layoutIPv6
	}
	first, err := Parse(b[:l.end])
	if err != nil {
		return Notification2{}, err
	}
	return Notification2{
		Src: first.Src, Dst: first.Dst, SrcPort: first.SrcPort, DstPort: first.DstPort, Proto: first.Proto,
		NRP: binary.BigEndian.Uint32(b[l.nrp:]),
	}, nil
}
