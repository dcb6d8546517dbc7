package roce

import (
	"encoding/binary"
	"net/netip"
)

// EtherTypes and protocol numbers that the parser knows (IEEE 802, IANA).
const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86DD
	etherVLAN = 0x8100 // 802.1Q
	etherQinQ = 0x88A8 // 802.1ad
	etherRoCE = 0x8915 // RoCE without IP (IBTA annex A16)

	protoUDP      = 17
	protoHopByHop = 0
	protoRouting  = 43
	protoFragment = 44
	protoAH       = 51
	protoDestOpts = 60
	protoMobility = 135

	etherLen   = 14
	ipv4MinLen = 20
	ipv6Len    = 40
	udpLen     = 8

	// maxExtHeaders bounds the IPv6 options headers walked: RFC 8200 section 4.1 names at most one
	// hop-by-hop and two destination options headers.
	maxExtHeaders = 3
	maxVLANTags   = 2
)

var (
	errEtherShort  = &FieldError{"Ethernet", 0, "header", "shorter than 14 octets", ErrTruncated}
	errVLANShort   = &FieldError{"VLAN tag", 0, "tag", "frame ends inside the tag", ErrTruncated}
	errVLANDepth   = &FieldError{"VLAN tag", 0, "tag", "more than two tags", ErrNotRoCEv2}
	errEtherType   = &FieldError{"Ethernet", 12, "EtherType", "neither IPv4 nor IPv6", ErrNotRoCEv2}
	errRoCEv1      = &FieldError{"Ethernet", 12, "EtherType", "RoCE without IP", ErrRoCEv1}
	errIPEmpty     = &FieldError{"IP", 0, "version", "no octet to read", ErrTruncated}
	errIPVersion   = &FieldError{"IP", 0, "version", "neither 4 nor 6", ErrNotRoCEv2}
	errIPMismatch  = &FieldError{"IP", 0, "version", "differs from the EtherType", ErrMalformed}
	errIPv4Short   = &FieldError{"IPv4", 0, "header", "shorter than 20 octets", ErrTruncated}
	errIPv4IHL     = &FieldError{"IPv4", 0, "header length", "less than 20 octets", ErrMalformed}
	errIPv4Total   = &FieldError{"IPv4", 2, "total length", "less than the header length", ErrMalformed}
	errIPv4Options = &FieldError{"IPv4", 20, "options", "capture ends inside them", ErrTruncated}
	errIPv4Frag    = &FieldError{"IPv4", 6, "fragment", "more-fragments flag or offset set", ErrFragment}
	errIPv4Proto   = &FieldError{"IPv4", 9, "protocol", "not UDP", ErrNotRoCEv2}
	errIPv6Short   = &FieldError{"IPv6", 0, "header", "shorter than 40 octets", ErrTruncated}
	errIPv6Proto   = &FieldError{"IPv6", 6, "next header", "not UDP", ErrNotRoCEv2}
	errIPv6Frag    = &FieldError{"IPv6", 6, "next header", "fragment header", ErrFragment}
	errIPv6Ext     = &FieldError{"IPv6", 6, "next header", "routing, AH or mobility header", ErrExtensionHeader}
	errIPv6Many    = &FieldError{"IPv6", 6, "next header", "more than three options headers", ErrExtensionHeader}
	errIPv6Mapped  = &FieldError{"IPv6", 8, "address", "IPv4-mapped, which must not be on a wire", ErrMalformed}
	errExtShort    = &FieldError{"IPv6 options header", 0, "header", "capture ends inside it", ErrTruncated}
	errExtLen      = &FieldError{"IPv6 options header", 1, "length", "runs past the payload length", ErrMalformed}
	errUDPShort    = &FieldError{"UDP", 0, "header", "shorter than 8 octets", ErrTruncated}
	errUDPNoRoom   = &FieldError{"UDP", 0, "header", "IP length leaves no room for it", ErrMalformed}
	errUDPPort     = &FieldError{"UDP", 2, "destination port", "not 4791", ErrNotRoCEv2}
	errUDPLen      = &FieldError{"UDP", 4, "length", "differs from the IP payload's length", ErrMalformed}
	errNoICRC      = &FieldError{"UDP", 4, "length", "no room for BTH and ICRC", ErrMalformed}
)

// ParseEthernet decodes an Ethernet II frame that carries RoCEv2 into p. Up to two tags (802.1Q,
// 802.1ad) in the bytes are skipped; p.VLAN is the outer one's identifier. A capture may be shorter than
// the packet, as long as it reaches the end of the BTH. Octets past the IP length (Ethernet padding) are
// left out. On error p is undefined.
//
// Errors wrap ErrNotRoCEv2, ErrTruncated, ErrMalformed, ErrFragment or ErrExtensionHeader.
func ParseEthernet(frame []byte, p *Packet) error {
	ip, vlan, err := layoutEthernet(frame)
	if err != nil {
		return err
	}
	if err := ParseIP(ip, p); err != nil {
		return err
	}
	p.SrcMAC = [6]byte(frame[6:12])
	p.VLAN = vlan
	return nil
}

// layoutEthernet gives the IP packet of a frame, and the identifier of its outer tag.
func layoutEthernet(frame []byte) (ip []byte, vlan uint16, err error) {
	if len(frame) < etherLen {
		return nil, 0, errEtherShort
	}
	off := 12
	typ := binary.BigEndian.Uint16(frame[off:])
	off += 2
	for tags := 0; typ == etherVLAN || typ == etherQinQ; tags++ {
		if tags == maxVLANTags {
			return nil, 0, errVLANDepth
		}
		if len(frame) < off+4 {
			return nil, 0, errVLANShort
		}
		if tags == 0 {
			vlan = binary.BigEndian.Uint16(frame[off:]) & 0x0FFF
		}
		typ = binary.BigEndian.Uint16(frame[off+2:])
		off += 4
	}
	ip = frame[off:]
	switch typ {
	case etherIPv4, etherIPv6:
		if len(ip) > 0 && (ip[0]>>4 == 4) != (typ == etherIPv4) {
			return nil, 0, errIPMismatch
		}
		return ip, vlan, nil
	case etherRoCE:
		return nil, 0, errRoCEv1
	}
	return nil, 0, errEtherType
}

// ParseIP decodes an IPv4 or IPv6 packet that carries RoCEv2 into p, with the rules and errors of
// ParseEthernet; SrcMAC and VLAN are zeroed.
func ParseIP(b []byte, p *Packet) error {
	l, err := layoutIP(b)
	if err != nil {
		return err
	}
	return decodeIP(b, l, p)
}

// decodeIP decodes a packet whose parts are found.
func decodeIP(b []byte, l ipLayout, p *Packet) error {
	if err := checkUDP(b, l); err != nil {
		return err
	}
	bth := l.udp + udpLen
	if len(b) < bth+BTHLen {
		return errBTHShort
	}
	p.SrcMAC = [6]byte{}
	p.VLAN = 0
	if l.v6 {
		p.Src = netip.AddrFrom16([16]byte(b[8:24]))
		p.Dst = netip.AddrFrom16([16]byte(b[24:40]))
		if p.Src.Is4In6() || p.Dst.Is4In6() {
			return errIPv6Mapped
		}
		word := binary.BigEndian.Uint32(b)
		p.TOS, p.TTL, p.FlowLabel = uint8(word>>20), b[7], word&0xFFFFF
	} else {
		p.Src = netip.AddrFrom4([4]byte(b[12:16]))
		p.Dst = netip.AddrFrom4([4]byte(b[16:20]))
		p.TOS, p.TTL, p.FlowLabel = b[1], b[8], 0
	}
	p.SrcPort = binary.BigEndian.Uint16(b[l.udp:])
	p.BTH.decode(b[bth:])
	p.Truncated = len(b) < l.end
	p.IP = b[:min(l.end, len(b))]
	p.Body = b[bth+BTHLen : max(bth+BTHLen, min(l.end-ICRCLen, len(b)))]
	return nil
}

// ipLayout says where the parts of an IP packet are, in octets from the IP header.
type ipLayout struct {
	v6  bool
	udp int // start of the UDP header; within the captured bytes
	end int // end of the IP packet by its own length; may lie past the captured bytes
}

func layoutIP(b []byte) (ipLayout, error) {
	if len(b) == 0 {
		return ipLayout{}, errIPEmpty
	}
	switch b[0] >> 4 {
	case 4:
		return layoutIPv4(b)
	case 6:
		return layoutIPv6(b)
	}
	return ipLayout{}, errIPVersion
}

// checkUDP holds a packet to RoCEv2's UDP port and to lengths that agree.
func checkUDP(b []byte, l ipLayout) error {
	if len(b) < l.udp+udpLen {
		return errUDPShort
	}
	udp := b[l.udp:]
	if binary.BigEndian.Uint16(udp[2:]) != UDPPort {
		return errUDPPort
	}
	if int(binary.BigEndian.Uint16(udp[4:])) != l.end-l.udp {
		return errUDPLen
	}
	if l.end < l.udp+udpLen+BTHLen+ICRCLen {
		return errNoICRC
	}
	return nil
}

func layoutIPv4(b []byte) (ipLayout, error) {
	l, err := ipv4Header(b)
	switch {
	case err != nil:
		return l, err
	case b[9] != protoUDP:
		return l, errIPv4Proto
	case l.end < l.udp+udpLen:
		return l, errUDPNoRoom
	}
	return l, nil
}

// ipv4Header finds what is behind the header.
func ipv4Header(b []byte) (ipLayout, error) {
	var l ipLayout
	if len(b) < ipv4MinLen {
		return l, errIPv4Short
	}
	l.udp = int(b[0]&0x0F) * 4
	if l.udp < ipv4MinLen {
		return l, errIPv4IHL
	}
	l.end = int(binary.BigEndian.Uint16(b[2:]))
	if l.end < l.udp {
		return l, errIPv4Total
	}
	if binary.BigEndian.Uint16(b[6:])&0x3FFF != 0 {
		return l, errIPv4Frag
	}
	if len(b) < l.udp {
		return l, errIPv4Options
	}
	return l, nil
}

func layoutIPv6(b []byte) (ipLayout, error) {
	l, proto, err := ipv6Header(b)
	switch {
	case err != nil:
		return l, err
	case proto == protoRouting || proto == protoAH || proto == protoMobility:
		return l, errIPv6Ext
	case proto != protoUDP:
		return l, errIPv6Proto
	case l.end < l.udp+udpLen:
		return l, errUDPNoRoom
	}
	return l, nil
}

// ipv6Header finds what is behind the header and its options headers, and which protocol that is.
func ipv6Header(b []byte) (l ipLayout, proto byte, err error) {
	l = ipLayout{v6: true, udp: ipv6Len}
	if len(b) < ipv6Len {
		return l, 0, errIPv6Short
	}
	l.end = ipv6Len + int(binary.BigEndian.Uint16(b[4:]))
	proto = b[6]
	for n := 0; proto == protoHopByHop || proto == protoDestOpts; n++ {
		if n == maxExtHeaders {
			return l, 0, errIPv6Many
		}
		if len(b) < l.udp+8 {
			return l, 0, errExtShort
		}
		proto = b[l.udp]
		l.udp += 8 + int(b[l.udp+1])*8
		if l.udp > l.end {
			return l, 0, errExtLen
		}
		if l.udp > len(b) {
			return l, 0, errExtShort
		}
	}
	if proto == protoFragment {
		return l, 0, errIPv6Frag
	}
	return l, proto, nil
}
