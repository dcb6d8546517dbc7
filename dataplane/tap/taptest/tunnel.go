package taptest

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"pncd/dataplane/roce"
)

// Wrap puts an IP packet into one outer header.
type Wrap struct {
	Name string
	Of   roce.Tunnels
	Wrap func(ip []byte) []byte // an IP packet again
}

// Wraps are the outer headers that are looked behind, in all their shapes.
func Wraps() []Wrap {
	gre := func(ip []byte) []byte { return append([]byte{0, 0, byte(etherOf(ip) >> 8), byte(etherOf(ip))}, ip...) }
	full := func(ip []byte) []byte { // checksum, key and sequence number
		return append([]byte{0xB0, 0, byte(etherOf(ip) >> 8), byte(etherOf(ip)), 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1}, ip...)
	}
	bridged := func(ip []byte) []byte { return append([]byte{0, 0, 0x65, 0x58}, Ethernet(ip)...) }
	srh := func(next byte, payload []byte) []byte { // one segment
		return slices.Concat([]byte{next, 2, 4, 0, 0, 0, 0, 0}, netip.MustParseAddr("2001:db8:5::1").AsSlice(), payload)
	}
	return []Wrap{
		{"IP in IPv4", roce.TunnelIP, func(ip []byte) []byte { return outer4(protoOf(ip), ip) }},
		{"IP in IPv6", roce.TunnelIP, func(ip []byte) []byte { return outer6(protoOf(ip), ip) }},
		{"IP in IPv6 behind options", roce.TunnelIP, func(ip []byte) []byte { return outer6(60, append([]byte{protoOf(ip), 0, 4, 1, 0, 1, 0, 0}, ip...)) }},
		{"GRE in IPv4", roce.TunnelGRE, func(ip []byte) []byte { return outer4(47, gre(ip)) }},
		{"GRE with all fields in IPv6", roce.TunnelGRE, func(ip []byte) []byte { return outer6(47, full(ip)) }},
		{"Ethernet in GRE", roce.TunnelGRE, func(ip []byte) []byte { return outer4(47, bridged(ip)) }},
		{"VXLAN in IPv4", roce.TunnelVXLAN, func(ip []byte) []byte { return outer4(17, vxlan(ip)) }},
		{"VXLAN in IPv6", roce.TunnelVXLAN, func(ip []byte) []byte { return outer6(17, vxlan(ip)) }},
		{"IP behind a segment routing header", roce.TunnelSRv6, func(ip []byte) []byte { return outer6(43, srh(protoOf(ip), ip)) }},
		{"Ethernet behind a segment routing header", roce.TunnelSRv6, func(ip []byte) []byte { return outer6(43, srh(143, Ethernet(ip))) }},
	}
}

func protoOf(ip []byte) byte {
	if ip[0]>>4 == 6 {
		return 41
	}
	return 4
}

func etherOf(ip []byte) uint16 {
	if ip[0]>>4 == 6 {
		return 0x86DD
	}
	return 0x0800
}

// outer4 is an IPv4 packet with four octets of options. No one here reads its checksum.
func outer4(proto byte, payload []byte) []byte {
	b := []byte{0x46, 0, 0, 0, 0, 1, 0x40, 0, 64, proto, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2, 1, 1, 1, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(payload)))
	return append(b, payload...)
}

func outer6(next byte, payload []byte) []byte {
	b := []byte{0x60, 0, 0, 0, 0, 0, next, 64}
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	return slices.Concat(b, netip.MustParseAddr("2001:db8:4::1").AsSlice(), netip.MustParseAddr("2001:db8:4::2").AsSlice(), payload)
}

func vxlan(ip []byte) []byte {
	b := []byte{0xC0, 0, 0x12, 0xB5, 0, 0, 0, 0, 0x08, 0, 0, 0, 0, 0, 42, 0}
	b = append(b, Ethernet(ip)...)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	return b
}
