package speaker

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/packet"
)

// setUpV3 sets what OSPFv3 needs.
func setUpV3(fd, index int) error {
	err := set(fd,
		option{"ask for destination and interface", unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
		option{"hop limit", unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, 1},
		option{"hop limit of multicast", unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 1},
		option{"don't hear ourselves", unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 0},
		option{"interface of multicast", unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index},
		option{"traffic class", unix.IPPROTO_IPV6, unix.IPV6_TCLASS, precedence},
		option{"priority", unix.SOL_SOCKET, unix.SO_PRIORITY, priority},
		option{"let packets be fragmented", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DONT},
		// The machine makes and checks it, and counts what is wrong; with an authentication trailer there is none.
		option{"leave the checksum alone", unix.IPPROTO_IPV6, unix.IPV6_CHECKSUM, -1},
	)
	if err != nil {
		return err
	}
	group := &unix.IPv6Mreq{Multiaddr: iface.AllSPFRouters(packet.V3).As16(), Interface: uint32(index)}
	if err := unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, group); err != nil {
		return fmt.Errorf("join AllSPFRouters: %w", err)
	}
	return nil
}

// v3 reads a struct in6_pktinfo (RFC 3542 section 6.2).
func (a *arrival) v3(b []byte) {
	if len(b) >= unix.SizeofInet6Pktinfo {
		a.to, a.index = netip.AddrFrom16([16]byte(b)), int(binary.NativeEndian.Uint32(b[16:]))
	}
}
