package roce

import (
	"encoding/binary"
	"net/netip"
)

const maxFlowLabel = 1<<20 - 1

// PacketSpec describes any RoCEv2 packet, for generators and tests. The zero value of a field is written as
// it is, except TTL.
type PacketSpec struct {
	Src, Dst  netip.Addr // of one family
	TOS       uint8      // IPv4 TOS or IPv6 traffic class
	TTL       uint8      // 0 means 64
	IPID      uint16     // IPv4
	FlowLabel uint32     // IPv6, 20 bits
	Options   []byte     // IPv4 options, a multiple of 4 octets, at most 40
	SrcPort   uint16     // UDP
	// UDPChecksum computes the UDP checksum over IPv4 too, instead of writing 0.
	UDPChecksum bool

	// BTH is written as it is. With Pad 0, Body may be of any length: zeroes are added to a multiple of 4
	// octets and counted in the BTH. Otherwise Body holds the pad already.
	BTH  BTH
	Body []byte // what follows the BTH, without the ICRC
}

var (
	errSpecFamily  = &FieldError{"packet", 0, "addresses", "not two valid addresses of one family", ErrValue}
	errSpecOptions = &FieldError{"packet", 20, "IPv4 options", "not a multiple of 4 octets up to 40, or over IPv6", ErrValue}
	errSpecLabel   = &FieldError{"packet", 0, "flow label", "more than 20 bits", ErrValue}
	errSpecBTH     = &FieldError{"BTH", 0, "header", "a field does not fit its bits", ErrValue}
	errSpecPad     = &FieldError{"BTH", 1, "pad", "body is not a multiple of 4 octets, or shorter than the pad", ErrValue}
	errSpecLen     = &FieldError{"packet", 2, "length", "more than 65535 octets", ErrValue}
)

// AppendPacket appends a whole IP packet (IPv4 with Don't Fragment) with right lengths, checksums and ICRC.
// Errors wrap ErrValue and leave dst as it was.
func AppendPacket(dst []byte, s *PacketSpec) ([]byte, error) {
	pad, err := s.check()
	if err != nil {
		return dst, err
	}
	ttl := s.TTL
	if ttl == 0 {
		ttl = 64
	}
	l := ipLayout{v6: s.Src.Is6(), udp: ipv4MinLen + len(s.Options)}
	if l.v6 {
		l.udp = ipv6Len
	}
	l.end = l.udp + udpLen + BTHLen + len(s.Body) + pad + ICRCLen
	if l.end > 0xFFFF {
		return dst, errSpecLen
	}
	start := len(dst)
	be := binary.BigEndian
	if l.v6 {
		dst = be.AppendUint32(dst, 6<<28|uint32(s.TOS)<<20|s.FlowLabel)
		dst = be.AppendUint16(dst, uint16(l.end-ipv6Len))
		dst = append(dst, protoUDP, ttl)
		src, to := s.Src.As16(), s.Dst.As16()
		dst = append(append(dst, src[:]...), to[:]...)
	} else {
		dst = append(dst, 0x40|byte(l.udp/4), s.TOS)
		dst = be.AppendUint16(dst, uint16(l.end))
		dst = be.AppendUint16(dst, s.IPID)
		dst = be.AppendUint16(dst, ipv4DontFragment)
		dst = append(dst, ttl, protoUDP, 0, 0)
		src, to := s.Src.As4(), s.Dst.As4()
		dst = append(append(append(dst, src[:]...), to[:]...), s.Options...)
	}
	dst = be.AppendUint16(dst, s.SrcPort)
	dst = be.AppendUint16(dst, UDPPort)
	dst = be.AppendUint16(dst, uint16(l.end-l.udp))
	dst = append(dst, 0, 0)
	h := s.BTH
	if pad > 0 {
		h.Pad = uint8(pad)
	}
	dst = AppendBTH(dst, h)
	dst = append(dst, s.Body...)
	dst = append(dst, make([]byte, pad+ICRCLen)...)
	ip := dst[start:]
	if s.UDPChecksum {
		ip[l.udp+7] = 1 // any value but zero asks FixICRC for the checksum
	}
	if err := FixICRC(ip); err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// check returns how many octets of pad to add.
func (s *PacketSpec) check() (pad int, err error) {
	v4 := s.Src.Is4()
	h := &s.BTH
	switch {
	case v4 != s.Dst.Is4() || !v4 && (!s.Src.Is6() || !s.Dst.Is6() || s.Src.Is4In6() || s.Dst.Is4In6()):
		return 0, errSpecFamily
	case len(s.Options)%4 != 0 || len(s.Options) > 40 || !v4 && len(s.Options) > 0:
		return 0, errSpecOptions
	case s.FlowLabel > maxFlowLabel:
		return 0, errSpecLabel
	case h.Pad > 3 || h.Version > 15 || h.DestQP > max24 || h.PSN > max24 || h.Reserved6 > 0x3F || h.Reserved7 > 0x7F:
		return 0, errSpecBTH
	case h.Pad == 0:
		return -len(s.Body) & 3, nil
	case len(s.Body)%4 != 0 || len(s.Body) < int(h.Pad):
		return 0, errSpecPad
	}
	return 0, nil
}
