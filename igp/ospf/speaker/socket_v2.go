package speaker

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/packet"
)

// arrival is where a packet came in.
type arrival struct {
	index int        // of the interface; 0: not known
	to    netip.Addr // OSPFv3; that of OSPFv2 is in the IP header
}

// v2 reads a struct in_pktinfo (ip(7)).
func (a *arrival) v2(b []byte) {
	if len(b) >= unix.SizeofInet4Pktinfo {
		a.index = int(binary.NativeEndian.Uint32(b))
	}
}

// setUpV2 sets what OSPFv2 needs.
func setUpV2(fd, index int) error {
	err := set(fd,
		option{"ask for the interface", unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
		option{"only groups that are joined", unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0},
		option{"TTL", unix.IPPROTO_IP, unix.IP_TTL, 1},
		option{"TTL of multicast", unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 1},
		option{"don't hear ourselves", unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0},
		option{"precedence", unix.IPPROTO_IP, unix.IP_TOS, precedence},
		option{"priority", unix.SOL_SOCKET, unix.SO_PRIORITY, priority}, // after the precedence, which sets another
		option{"let packets be fragmented", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT},
	)
	if err != nil {
		return err
	}
	group := &unix.IPMreqn{Multiaddr: iface.AllSPFRouters(packet.V2).As4(), Ifindex: int32(index)}
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(index)}); err != nil {
		return fmt.Errorf("interface of multicast: %w", err)
	}
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, group); err != nil {
		return fmt.Errorf("join AllSPFRouters: %w", err)
	}
	return nil
}

// Of the IPv4 header (RFC 791 section 3.1).
const (
	ipv4MinLen        = 20
	ipv4LengthAt      = 2
	ipv4ProtocolAt    = 9
	ipv4SourceAt      = 12
	ipv4DestinationAt = 16
)

// parseIPv4 reads the header that stands before a packet on a raw socket, and gives what is behind it.
func parseIPv4(b []byte) (from, to netip.Addr, payload []byte, ok bool) {
	if len(b) < ipv4MinLen || b[0]>>4 != 4 || b[ipv4ProtocolAt] != protocol {
		return from, to, nil, false
	}
	header, length := 4*int(b[0]&0x0F), int(binary.BigEndian.Uint16(b[ipv4LengthAt:]))
	if header < ipv4MinLen || length < header || length > len(b) {
		return from, to, nil, false
	}
	from, to = netip.AddrFrom4([4]byte(b[ipv4SourceAt:])), netip.AddrFrom4([4]byte(b[ipv4DestinationAt:]))
	return from, to, b[header:length], true
}
