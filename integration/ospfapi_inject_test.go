package integration

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/packet"
)

// marked is an Extended Prefix LSA of r2 of area scope: a prefix with the P flag, and the proxy's address. r2 does not
// know it, and ospfd lets nobody originate one over its API, since it has registered the opaque type itself.
func (l *ospfAPILab) marked(prefix, proxy string) packet.LSA {
	l.t.Helper()
	p := packet.V2ExtendedPrefix{
		RouteType: packet.RouteIntraArea, Prefix: netip.MustParsePrefix(prefix),
		Subs: []packet.TLV{
			{Type: packet.V2SubSourceRouterAddr, Value: netip.MustParseAddr(proxy).AsSlice()},
			{Type: packet.V2SubPrefixFlags, Value: packet.WithFlagBit(2)},
		},
	}
	h := packet.Header{
		Options:  0x42, // O and E
		Key:      packet.Key{Type: packet.V2OpaqueArea, ID: packet.OpaqueID(packet.OpaqueExtendedPrefix, 99), Adv: packet.IDOf(netip.MustParseAddr("10.255.0.2"))},
		Sequence: packet.InitialSequence,
	}
	lsa, err := packet.NewLSA(packet.V2, h, p.Append(nil))
	if err != nil {
		l.t.Fatal(err)
	}
	return lsa
}

// send floods an LSA to r1 in the name of r2.
func (l *ospfAPILab) send(lsa packet.LSA) {
	l.t.Helper()
	p := &packet.Packet{Version: packet.V2, Router: packet.IDOf(netip.MustParseAddr("10.255.0.2")), Body: &packet.Update{LSAs: []packet.LSA{lsa}}}
	b, err := auth.Chain{}.Seal(p, auth.Addresses{}, &auth.Sequence{}, time.Now())
	if err != nil {
		l.t.Fatal(err)
	}
	err = inNode(l.Lab, "r2", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 89)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, b, 0, &unix.SockaddrInet4{Addr: [4]byte{10, 9, 0, 1}})
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// flush floods an LSA with the age at which it ends.
func (l *ospfAPILab) flush(lsa packet.LSA) {
	l.t.Helper()
	lsa.Age = packet.MaxAge
	lsa.Raw = lsa.Append(nil, packet.MaxAge)
	l.send(lsa)
}
