package roce

import (
	"encoding/binary"
	"net/netip"
)

// The RoCEv2 Congestion Notification Packet (IBTA annex A17.9.3): a BTH with opcode 0x81, sixteen reserved
// octets of zero, and the ICRC.
const (
	cnpReserved = 16
	cnpUDPLen   = udpLen + BTHLen + cnpReserved + ICRCLen

	// CNPLenIPv4 and CNPLenIPv6 are the octets of a CNP from the IP header on.
	CNPLenIPv4 = ipv4MinLen + cnpUDPLen
	CNPLenIPv6 = ipv6Len + cnpUDPLen

	// DefaultCNPTOS is DSCP 48 (CS6) with ECT(0), as adapters send CNPs.
	DefaultCNPTOS = 0xC2
	// DefaultCNPTTL is the TTL or hop limit that adapters send.
	DefaultCNPTTL = 64
	// DefaultPKey is the default partition, full membership (IBTA volume 1, section 10.9.1).
	DefaultPKey = 0xFFFF

	ipv4DontFragment = 0x4000
)

// CNP is what varies in a CNP. The addresses are those on the CNP itself: Src the data packet's
// destination, Dst the data packet's source.
type CNP struct {
	Src, Dst  netip.Addr // of one family
	SrcPort   uint16     // UDP
	TOS       uint8      // IPv4 TOS or IPv6 traffic class, written as it is: see DefaultCNPTOS
	TTL       uint8      // 0 means DefaultCNPTTL
	IPID      uint16     // IPv4 identification: covered by the ICRC, so nobody may choose it later
	FlowLabel uint32     // IPv6, 20 bits; not covered by the ICRC
	PKey      uint16     // 0 (not valid on a wire) means DefaultPKey
	DestQP    uint32     // 24 bits: the Source QP of the data
}

var (
	errCNPFamily = &FieldError{"CNP", 0, "addresses", "not two valid addresses of one family", ErrValue}
	errCNPQP     = &FieldError{"CNP", 0, "Destination QP", "more than 24 bits", ErrValue}
	errCNPLabel  = &FieldError{"CNP", 0, "flow label", "more than 20 bits", ErrValue}
	errCNPOpcode = &FieldError{"BTH", 0, "opcode", "not 0x81", ErrNotRoCEv2}
	errCNPBody   = &FieldError{"CNP", BTHLen, "reserved", "not 16 octets", ErrMalformed}
	errCNPCut    = &FieldError{"CNP", BTHLen, "reserved", "capture ends inside it", ErrTruncated}
)

// AppendCNP appends a whole IP packet: 60 octets over IPv4 (Don't Fragment, UDP checksum 0), 80 over IPv6
// (UDP checksum computed), with its ICRC. Nothing is allocated when dst has the room. Errors wrap ErrValue
// and leave dst as it was.
func AppendCNP(dst []byte, c *CNP) ([]byte, error) {
	v4 := c.Src.Is4()
	switch {
	case v4 != c.Dst.Is4() || !v4 && (!c.Src.Is6() || !c.Dst.Is6() || c.Src.Is4In6() || c.Dst.Is4In6()):
		return dst, errCNPFamily
	case c.DestQP > max24:
		return dst, errCNPQP
	case c.FlowLabel > maxFlowLabel:
		return dst, errCNPLabel
	}
	if v4 {
		return appendCNPv4(dst, c), nil
	}
	return appendCNPv6(dst, c), nil
}

// blankIPv4 and blankIPv6 are CNPs in which all that varies is zero, with the ICRC of that.
var (
	blankIPv4 = [CNPLenIPv4]byte(blankCNP(netip.IPv4Unspecified()))
	blankIPv6 = [CNPLenIPv6]byte(blankCNP(netip.IPv6Unspecified()))
)

func blankCNP(zero netip.Addr) []byte {
	b, err := AppendPacket(nil, &PacketSpec{Src: zero, Dst: zero, BTH: BTH{Opcode: OpcodeCNP, BECN: true}, Body: make([]byte, cnpReserved)})
	if err != nil {
		panic(err) // its values are valid ones
	}
	return b
}

func appendCNPv4(dst []byte, c *CNP) []byte {
	start := len(dst)
	dst = append(dst, blankIPv4[:]...)
	b := (*[CNPLenIPv4]byte)(dst[start:])
	be, src, to := binary.BigEndian, c.Src.As4(), c.Dst.As4()
	b[1], b[8] = c.TOS, c.ttl()
	be.PutUint16(b[4:], c.IPID)
	copy(b[12:16], src[:])
	copy(b[16:20], to[:])
	sum := 0x4500 + 0x003C + 0x4000 + 0x0011 + uint64(c.TOS) + uint64(c.IPID) + uint64(b[8])<<8
	sum += uint64(be.Uint32(b[12:])) + uint64(be.Uint32(b[16:]))
	be.PutUint16(b[10:], ^fold16(sum))
	crc := octetsCRC(b[4:6], CNPLenIPv4-6) ^ octetsCRC(b[12:20], CNPLenIPv4-20) ^ cnpUDP(b[ipv4MinLen:], c)
	xorICRC(b[CNPLenIPv4-ICRCLen:], crc)
	return dst
}

func appendCNPv6(dst []byte, c *CNP) []byte {
	start := len(dst)
	dst = append(dst, blankIPv6[:]...)
	b := (*[CNPLenIPv6]byte)(dst[start:])
	src, to := c.Src.As16(), c.Dst.As16()
	binary.BigEndian.PutUint32(b[0:], 6<<28|uint32(c.TOS)<<20|c.FlowLabel)
	b[7] = c.ttl()
	copy(b[8:24], src[:])
	copy(b[24:40], to[:])
	xorICRC(b[CNPLenIPv6-ICRCLen:], octetsCRC(b[8:40], CNPLenIPv6-40)^cnpUDP(b[ipv6Len:], c))
	putUDPChecksum(b[:], ipLayout{v6: true, udp: ipv6Len, end: CNPLenIPv6})
	return dst
}

// cnpUDP fills in the UDP header and the BTH of a blank CNP, from b on to its end, and gives what that changes in the CRC.
func cnpUDP(b []byte, c *CNP) uint32 {
	be := binary.BigEndian
	be.PutUint64(b, uint64(c.SrcPort)<<48|UDPPort<<32|cnpUDPLen<<16)
	be.PutUint64(b[udpLen:], uint64(OpcodeCNP)<<56|uint64(c.pkey())<<32|becn<<24|uint64(c.DestQP))
	return octetsCRC(b[:2], cnpUDPLen-2) ^ octetsCRC(b[udpLen+2:udpLen+4], cnpUDPLen-udpLen-4) ^ octetsCRC(b[udpLen+5:udpLen+8], cnpUDPLen-udpLen-8)
}

// octetsCRC are the bits by which the ICRC changes with octets that were zero; left are those of the packet after them.
func octetsCRC(p []byte, left int) (crc uint32) {
	for i, v := range p {
		crc ^= octetCRC[left-ICRCLen+len(p)-1-i][v]
	}
	return crc
}

func xorICRC(b []byte, crc uint32) {
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)^crc)
}

// becn is octet 4 of the BTH of a CNP.
const becn = 0x40

func (c *CNP) ttl() uint8 {
	if c.TTL == 0 {
		return DefaultCNPTTL
	}
	return c.TTL
}

func (c *CNP) pkey() uint16 {
	if c.PKey == 0 {
		return DefaultPKey
	}
	return c.PKey
}

// IsCNP reports a Congestion Notification Packet.
func (p *Packet) IsCNP() bool { return p.BTH.Opcode.IsCNP() }

// ParseCNP decodes a CNP from its IP header on. It does not verify the ICRC: see VerifyICRC. Errors as of
// ParseIP, and ErrNotRoCEv2 for another opcode.
func ParseCNP(ip []byte) (CNP, error) {
	var p Packet
	if err := ParseIP(ip, &p); err != nil {
		return CNP{}, err
	}
	switch {
	case !p.IsCNP():
		return CNP{}, errCNPOpcode
	case p.Truncated && len(p.Body) < cnpReserved:
		return CNP{}, errCNPCut
	case len(p.Body) != cnpReserved:
		return CNP{}, errCNPBody
	}
	c := CNP{
		Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, TOS: p.TOS, TTL: p.TTL, FlowLabel: p.FlowLabel,
		PKey: p.BTH.PKey, DestQP: p.BTH.DestQP,
	}
	if p.Src.Is4() {
		c.IPID = binary.BigEndian.Uint16(ip[4:])
	}
	return c, nil
}
