package roce

import (
	"encoding/binary"
	"hash/crc32"
)

// The invariant CRC (IBTA annex A17.3.3): CRC-32 (IEEE 802.3) over eight octets of ones (which stand for
// the InfiniBand LRH that RoCEv2 has not), then the packet from the IP header to the end of the pad, with
// every field that a router may change set to ones: TOS or traffic class, flow label, TTL or hop limit,
// IPv4 header checksum, UDP checksum, and octet 4 of the BTH (FECN, BECN). It is written little-endian.
// IPv4 options and IPv6 extension headers are covered as they stand.

// icrcPrefix is the CRC after the eight octets of ones.
var icrcPrefix = crc32.ChecksumIEEE([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})

// maskedMax is the longest run of headers with masked fields: IPv4 with options, UDP, five octets of BTH.
const maskedMax = 60 + udpLen + 5

// octetCRC[n][v] are the bits by which an octet v, against zero, changes a CRC-32 that ends n octets after it: a CRC is linear over
// GF(2). There are as many rows as a CNP has octets that vary and what follows them; the first eight serve updateCRC.
var octetCRC = func() (t [CNPLenIPv6 - ICRCLen - 8][256]uint32) {
	t[0] = *crc32.IEEETable
	for i := range 256 {
		c := t[0][i]
		for j := 1; j < len(t); j++ {
			c = t[0][c&0xFF] ^ c>>8
			t[j][i] = c
		}
	}
	return t
}()

// updateCRC takes eight octets at a time. The headers are masked in a copy on the stack, and crc32.Update would move that copy
// to the heap (it calls through a function variable).
func updateCRC(crc uint32, p []byte) uint32 {
	crc = ^crc
	for len(p) >= 8 {
		lo := binary.LittleEndian.Uint32(p) ^ crc
		hi := binary.LittleEndian.Uint32(p[4:])
		crc = octetCRC[7][lo&0xFF] ^ octetCRC[6][lo>>8&0xFF] ^ octetCRC[5][lo>>16&0xFF] ^ octetCRC[4][lo>>24] ^
			octetCRC[3][hi&0xFF] ^ octetCRC[2][hi>>8&0xFF] ^ octetCRC[1][hi>>16&0xFF] ^ octetCRC[0][hi>>24]
		p = p[8:]
	}
	for _, v := range p {
		crc = octetCRC[0][byte(crc)^v] ^ crc>>8
	}
	return ^crc
}

// ICRC computes the invariant CRC of a whole RoCEv2 packet that starts at its IP header and is as long as
// the IP length says (more octets are ignored, the ICRC's own place too). The value written little-endian
// is what is on the wire. ip is not changed. Errors as of ParseIP; ErrTruncated when ip is shorter than
// its IP length.
func ICRC(ip []byte) (uint32, error) {
	l, err := icrcLayout(ip)
	if err != nil {
		return 0, err
	}
	return icrc(ip, l), nil
}

func icrc(ip []byte, l ipLayout) uint32 {
	var head [maskedMax]byte
	if !l.v6 {
		n := copy(head[:], ip[:l.udp+udpLen+5])
		head[1], head[8], head[10], head[11] = 0xFF, 0xFF, 0xFF, 0xFF
		head[l.udp+6], head[l.udp+7], head[l.udp+udpLen+4] = 0xFF, 0xFF, 0xFF
		crc := updateCRC(icrcPrefix, head[:n])
		return crc32.Update(crc, crc32.IEEETable, ip[n:l.end-ICRCLen])
	}
	copy(head[:], ip[:ipv6Len])
	head[0] |= 0x0F
	head[1], head[2], head[3], head[7] = 0xFF, 0xFF, 0xFF, 0xFF
	crc := updateCRC(icrcPrefix, head[:ipv6Len])
	if l.udp > ipv6Len {
		crc = crc32.Update(crc, crc32.IEEETable, ip[ipv6Len:l.udp])
	}
	n := copy(head[:], ip[l.udp:l.udp+udpLen+5])
	head[6], head[7], head[udpLen+4] = 0xFF, 0xFF, 0xFF
	crc = updateCRC(crc, head[:n])
	return crc32.Update(crc, crc32.IEEETable, ip[l.udp+n:l.end-ICRCLen])
}

// VerifyICRC reports whether the last four octets of a packet (as of ICRC) are its invariant CRC.
func VerifyICRC(ip []byte) (bool, error) {
	l, err := icrcLayout(ip)
	if err != nil {
		return false, err
	}
	return binary.LittleEndian.Uint32(ip[l.end-ICRCLen:]) == icrc(ip, l), nil
}

// FixICRC writes the invariant CRC of a packet (as of ICRC), then its IPv4 header checksum, then its UDP
// checksum: over IPv4 only when it was not zero, over IPv6 always. The UDP checksum covers the ICRC, so it
// comes last.
func FixICRC(ip []byte) error {
	l, err := icrcLayout(ip)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(ip[l.end-ICRCLen:], icrc(ip, l))
	if !l.v6 {
		putIPv4Checksum(ip[:l.udp])
	}
	if l.v6 || binary.BigEndian.Uint16(ip[l.udp+6:]) != 0 {
		putUDPChecksum(ip, l)
	}
	return nil
}

var errICRCShort = &FieldError{"IP", 0, "length", "packet ends before its ICRC", ErrTruncated}

// icrcLayout is the layout of a whole RoCEv2 packet: its end lies within ip.
func icrcLayout(ip []byte) (ipLayout, error) {
	l, err := layoutIP(ip)
	if err != nil {
		return l, err
	}
	if len(ip) < l.end {
		return l, errICRCShort
	}
	return l, checkUDP(ip, l)
}

// sum16 adds b to a one's complement sum (RFC 1071), as 32-bit words: their sum folds to that of the
// 16-bit words. b starts at an even octet of what is summed.
func sum16(sum uint64, b []byte) uint64 {
	for len(b) >= 8 {
		v := binary.BigEndian.Uint64(b)
		sum += v>>32 + v&0xFFFFFFFF
		b = b[8:]
	}
	for len(b) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

func fold16(sum uint64) uint16 {
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return uint16(sum)
}

// putIPv4Checksum writes the header checksum of h, a whole IPv4 header (RFC 791 section 3.1).
func putIPv4Checksum(h []byte) {
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ^fold16(sum16(0, h)))
}

// putUDPChecksum writes the UDP checksum (RFC 768; RFC 8200 section 8.1). A sum of zero is sent as ones.
func putUDPChecksum(ip []byte, l ipLayout) {
	udp := ip[l.udp:l.end]
	udp[6], udp[7] = 0, 0
	sum := uint64(protoUDP) + uint64(len(udp))
	if l.v6 {
		sum = sum16(sum, ip[8:ipv6Len])
	} else {
		sum = sum16(sum, ip[12:20])
	}
	c := ^fold16(sum16(sum, udp))
	if c == 0 {
		c = 0xFFFF
	}
	binary.BigEndian.PutUint16(udp[6:], c)
}
