package integration

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"pncd/igp/ospf/packet"
)

// ospfWire is an interface of the attacker's: it sends IP packets with any source address, and hears all that passes.
type ospfWire struct {
	v             packet.Version
	fd, index     int
	mac           [6]byte // its own
	leaf, router  [6]byte // pncd's address, and FRR's where it is
	leafAt        netip.Addr
	id            uint32 // of the next packet that is fragmented
	buf           [1 << 16]byte
	shots, silent uint64 // that pncd is to hear, and that it isn't
	heard         uint64 // packets of the router that pncd hears, too
}

func etherType(v packet.Version) uint16 {
	if v == packet.V2 {
		return unix.ETH_P_IP
	}
	return unix.ETH_P_IPV6
}

// openOSPFWire opens an interface in a node's namespace.
func openOSPFWire(t *testing.T, namespace, name string, v packet.Version) *ospfWire {
	t.Helper()
	w := &ospfWire{v: v}
	opened := make(chan error)
	go func() { // its thread stays in the namespace, and ends with it
		runtime.LockOSThread()
		opened <- w.open(namespace, name)
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.fd) })
	return w
}

func (w *ospfWire) open(namespace, name string) error {
	ns, err := netns.GetFromName(namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := netns.Set(ns); err != nil {
		return err
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	w.index, w.mac = i.Index, [6]byte(i.HardwareAddr)
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType(w.v)))
	if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol)); err != nil {
		return err
	}
	return errors.Join(
		unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: i.Index}),
		unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20), // every frame is to be heard
		unix.SetsockoptPacketMreq(w.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(i.Index), Type: unix.PACKET_MR_PROMISC}),
	)
}

// send sends a packet, in fragments if it is longer than the MTU: to pncd alone, or to the group that it is for.
func (w *ospfWire) send(s ospfShot) error {
	to := w.leaf
	if s.both && s.to.IsMulticast() {
		b := s.to.AsSlice()
		if w.v == packet.V2 {
			to = [6]byte{0x01, 0x00, 0x5E, b[1] & 0x7F, b[2], b[3]}
		} else {
			to = [6]byte{0x33, 0x33, b[12], b[13], b[14], b[15]}
		}
	}
	head := slices.Concat(to[:], w.mac[:], binary.BigEndian.AppendUint16(nil, etherType(w.v)))
	for _, p := range w.packets(s) {
		if err := unix.Sendto(w.fd, append(slices.Clone(head), p...), 0, &unix.SockaddrLinklayer{Ifindex: w.index}); err != nil {
			return err
		}
	}
	if s.deaf || w.v == packet.V2 && s.from == w.leafAt { // the kernel takes nothing from itself
		w.silent++
	} else {
		w.shots++
	}
	return nil
}

// packets are the IP packets of a shot.
func (w *ospfWire) packets(s ospfShot) (out [][]byte) {
	const v6Header, v6Fragment = 40, 8
	room := ospfHostileMTU - ipv4Header
	if w.v == packet.V3 {
		room = ospfHostileMTU - v6Header - v6Fragment
	}
	room &^= 7
	if len(s.payload) > room { // as seldom as possible: 16 bits are few
		w.id++
	}
	for at := 0; at == 0 || at < len(s.payload); at += room {
		part := s.payload[at:min(at+room, len(s.payload))]
		more := at+room < len(s.payload)
		if w.v == packet.V2 {
			out = append(out, w.ipv4(s, part, at, more))
		} else {
			out = append(out, w.ipv6(s, part, at, more))
		}
	}
	return out
}

const (
	ipv4Header     = 20
	fragmentHeader = 44 // of IPv6: the number as a next header
)

func hopsOf(s ospfShot) byte { return max(s.hops, 1) }

func (w *ospfWire) ipv4(s ospfShot, part []byte, at int, more bool) []byte {
	b := []byte{0x45, 0xC0, 0, 0, 0, 0, 0, 0, hopsOf(s), ospfProtocol, 0, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(ipv4Header+len(part)))
	binary.BigEndian.PutUint16(b[4:], uint16(w.id))
	flags := uint16(at / 8)
	if more {
		flags |= 0x2000
	}
	binary.BigEndian.PutUint16(b[6:], flags)
	b = append(append(b, s.from.AsSlice()...), s.to.AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], onesSum(b))
	return append(b, part...)
}

func (w *ospfWire) ipv6(s ospfShot, part []byte, at int, more bool) []byte {
	b := []byte{0x6C, 0, 0, 0, 0, 0, ospfProtocol, hopsOf(s)}
	b = append(append(b, s.from.WithZone("").AsSlice()...), s.to.WithZone("").AsSlice()...)
	if at > 0 || more {
		b[6] = fragmentHeader
		f := uint16(at)
		if more {
			f |= 1
		}
		b = append(b, ospfProtocol, 0)
		b = binary.BigEndian.AppendUint16(b, f)
		b = binary.BigEndian.AppendUint32(b, w.id)
	}
	b = append(b, part...)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	return b
}

// hear gives the OSPF packets that are there, without waiting. Of what is in fragments the first one is given.
func (w *ospfWire) hear(f func(from [6]byte, s ospfShot)) error {
	for {
		n, err := unix.Read(w.fd, w.buf[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return err
		}
		if s, ok := readOSPFFrame(w.v, w.buf[:n]); ok {
			f([6]byte(w.buf[6:12]), s)
		}
	}
}

// readOSPFFrame reads an Ethernet frame.
func readOSPFFrame(v packet.Version, b []byte) (s ospfShot, ok bool) {
	const ethernet = 14
	if len(b) < ethernet {
		return s, false
	}
	b = b[ethernet:]
	switch {
	case v == packet.V2 && len(b) >= ipv4Header && b[9] == ospfProtocol:
		head, length := 4*int(b[0]&15), int(binary.BigEndian.Uint16(b[2:]))
		if length > len(b) || head > length || binary.BigEndian.Uint16(b[6:])&0x1FFF != 0 {
			return s, false
		}
		return ospfShot{from: addressOf(b[12:16]), to: addressOf(b[16:20]), payload: slices.Clone(b[head:length])}, true
	case v == packet.V3 && len(b) >= 48 && b[6] == fragmentHeader && b[40] == ospfProtocol && binary.BigEndian.Uint16(b[42:])>>3 == 0:
		return ospfShot{from: netip.AddrFrom16([16]byte(b[8:])), to: netip.AddrFrom16([16]byte(b[24:])), payload: slices.Clone(b[48:])}, true
	case v == packet.V3 && len(b) >= 40 && b[6] == ospfProtocol:
		length := 40 + int(binary.BigEndian.Uint16(b[4:]))
		if length > len(b) {
			return s, false
		}
		return ospfShot{from: netip.AddrFrom16([16]byte(b[8:])), to: netip.AddrFrom16([16]byte(b[24:])), payload: slices.Clone(b[40:length])}, true
	}
	return s, false
}
