package roce

import (
	"encoding/binary"
	"errors"
	"strings"
)

// Tunnels says behind which outer headers ParseThrough looks for a packet: one of them, not one in another.
type Tunnels uint8

// Outer headers. What they carry is IPv4 or IPv6, with those of Ethernet also an Ethernet frame without tags.
const (
	TunnelIP    Tunnels = 1 << iota // IP in IP: RFC 2003, RFC 2473, RFC 4213; SRv6 without a routing header too
	TunnelGRE                       // GRE of version 0: RFC 2784, RFC 2890; also Ethernet
	TunnelVXLAN                     // RFC 7348, UDP port 4789: Ethernet, whatever the VNI
	TunnelSRv6                      // IPv6 with one segment routing header: RFC 8754, RFC 8986; also Ethernet

	tunnelsEnd
	// AllTunnels are all of them.
	AllTunnels = tunnelsEnd - 1
)

var tunnelNames = [...]string{"ip", "gre", "vxlan", "srv6"}

// TunnelNames are the names that ParseTunnel takes.
func TunnelNames() []string { return tunnelNames[:] }

// ParseTunnel gives the tunnel of a name; ok says whether there is one.
func ParseTunnel(name string) (t Tunnels, ok bool) {
	for i, n := range tunnelNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// String lists the names, with commas; "none" without any.
func (t Tunnels) String() string {
	var names []string
	for i, n := range tunnelNames {
		if t&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

const (
	protoIPv4     = 4
	protoIPv6     = 41
	protoGRE      = 47
	protoEthernet = 143

	etherBridged = 0x6558 // transparent Ethernet bridging
	vxlanPort    = 4789
	vxlanLen     = 8
	vxlanVNI     = 0x08 // the I flag: there is a VNI
	greLen       = 4
	greChecksum  = 0x8000
	greKey       = 0x2000
	greSequence  = 0x1000
	greUnknown   = 0x4FFF // routing, what RFC 2784 reserves, and the version
	routingSR    = 4
)

var (
	errTunnelShort = &FieldError{"tunnel", 0, "header", "capture ends inside it", ErrTruncated}
	errTunnelNone  = &FieldError{"tunnel", 0, "protocol", "none that is looked behind", ErrNotRoCEv2}
	errTunnelInner = &FieldError{"tunnel", 0, "payload", "neither IPv4 nor IPv6", ErrNotRoCEv2}
	errTunnelLen   = &FieldError{"tunnel", 0, "length", "differs from that of what is around it, or in it", ErrMalformed}
	errGREFlags    = &FieldError{"GRE", 0, "flags", "routing, reserved or another version", ErrNotRoCEv2}
	errVXLANFlags  = &FieldError{"VXLAN", 0, "flags", "no VNI", ErrNotRoCEv2}
	errRouting     = &FieldError{"IPv6 routing header", 2, "type", "not segment routing", ErrExtensionHeader}
)

// ParseThrough decodes as ParseEthernet does, and when the frame itself is not RoCEv2, looks behind one outer header of t. Then SrcMAC and
// VLAN are those of the outer frame, and all else is of the packet inside: addresses, TTL and ECN too. The packet inside ends within the
// outer one.
func (t Tunnels) ParseThrough(frame []byte, p *Packet) error {
	err := ParseEthernet(frame, p)
	if err == nil || t == 0 || !errors.Is(err, ErrNotRoCEv2) && !errors.Is(err, ErrExtensionHeader) {
		return err
	}
	ip, vlan, outer := layoutEthernet(frame)
	if outer != nil {
		return err
	}
	inner, err := t.open(ip)
	if err != nil {
		return err
	}
	l, err := layoutIP(inner.octets)
	switch {
	case err != nil:
		return err
	case l.end > inner.room:
		return errTunnelLen
	}
	if err := decodeIP(inner.octets, l, p); err != nil {
		return err
	}
	p.SrcMAC, p.VLAN = [6]byte(frame[6:12]), vlan
	return nil
}

// payload is what an outer header carries.
type payload struct {
	octets []byte // as far as they are captured
	room   int    // octets that the outer packet has for it
}

// skip takes a header off.
func (p payload) skip(n int) (payload, error) {
	if len(p.octets) < n {
		return p, errTunnelShort
	}
	if p.room < n {
		return p, errTunnelLen
	}
	return payload{p.octets[n:], p.room - n}, nil
}

// open gives the IP packet behind the outer headers of an IP packet.
func (t Tunnels) open(ip []byte) (payload, error) {
	in, proto, err := outer(ip)
	if err != nil {
		return in, err
	}
	routed := proto == protoRouting && t&TunnelSRv6 != 0
	if routed {
		if in, proto, err = in.segmentRouting(); err != nil {
			return in, err
		}
	}
	switch {
	case (proto == protoIPv4 || proto == protoIPv6) && (routed || t&TunnelIP != 0):
		return in.version(proto == protoIPv4)
	case proto == protoEthernet && routed:
		return in.ethernet()
	case proto == protoGRE && !routed && t&TunnelGRE != 0:
		return in.gre()
	case proto == protoUDP && !routed && t&TunnelVXLAN != 0:
		return in.vxlan()
	}
	return in, errTunnelNone
}

// outer gives what is behind an IP header and its options headers, and which protocol that is.
func outer(ip []byte) (payload, byte, error) {
	var l ipLayout
	var proto byte
	err := error(errIPVersion)
	switch ip[0] >> 4 {
	case 4:
		if l, err = ipv4Header(ip); err == nil {
			proto = ip[9]
		}
	case 6:
		l, proto, err = ipv6Header(ip)
	}
	if err != nil {
		return payload{}, 0, err
	}
	return payload{ip[l.udp:], l.end - l.udp}, proto, nil
}

// segmentRouting takes one such header off (RFC 8754 section 2).
func (p payload) segmentRouting() (payload, byte, error) {
	if len(p.octets) < 8 {
		return p, 0, errTunnelShort
	}
	if p.octets[2] != routingSR {
		return p, 0, errRouting
	}
	in, err := p.skip(8 + int(p.octets[1])*8)
	return in, p.octets[0], err
}

func (p payload) gre() (payload, error) {
	if len(p.octets) < greLen {
		return p, errTunnelShort
	}
	flags, typ := binary.BigEndian.Uint16(p.octets), binary.BigEndian.Uint16(p.octets[2:])
	if flags&greUnknown != 0 {
		return p, errGREFlags
	}
	n := greLen
	for _, f := range [...]uint16{greChecksum, greKey, greSequence} {
		if flags&f != 0 {
			n += 4
		}
	}
	in, err := p.skip(n)
	if err != nil {
		return in, err
	}
	if typ == etherBridged {
		return in.ethernet()
	}
	return in.ofType(typ)
}

func (p payload) vxlan() (payload, error) {
	if len(p.octets) < udpLen {
		return p, errUDPShort
	}
	if binary.BigEndian.Uint16(p.octets[2:]) != vxlanPort {
		return p, errTunnelNone
	}
	if int(binary.BigEndian.Uint16(p.octets[4:])) != p.room {
		return p, errTunnelLen
	}
	in, err := p.skip(udpLen + vxlanLen)
	if err != nil {
		return in, err
	}
	if p.octets[udpLen]&vxlanVNI == 0 {
		return p, errVXLANFlags
	}
	return in.ethernet()
}

func (p payload) ethernet() (payload, error) {
	in, err := p.skip(etherLen)
	if err != nil {
		return in, err
	}
	return in.ofType(binary.BigEndian.Uint16(p.octets[12:]))
}

// ofType holds the payload to an EtherType.
func (p payload) ofType(typ uint16) (payload, error) {
	if typ != etherIPv4 && typ != etherIPv6 {
		return p, errTunnelInner
	}
	return p.version(typ == etherIPv4)
}

// version holds the payload to an IP version.
func (p payload) version(v4 bool) (payload, error) {
	if len(p.octets) == 0 {
		return p, errTunnelShort
	}
	if (p.octets[0]>>4 == 4) != v4 {
		return p, errIPMismatch
	}
	return p, nil
}
