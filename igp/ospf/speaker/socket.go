package speaker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/packet"
	"pncd/igp/shell"
)

// socket sends and receives the packets of one version on one link, over raw IP with protocol number 89 (RFC 2328
// appendix A.1, RFC 5340 appendix A.1). It needs CAP_NET_RAW.
//
// What came in by another interface does not get here, nor what was sent to groups that were not joined: only
// AllSPFRouters is, for a router of priority 0 is never the Designated Router. There is no further filter: what
// remains is counted by the machine.
type socket struct {
	file    *shell.File
	version packet.Version
	link    string
	index   int

	dropped atomic.Uint32 // by the kernel since the socket was opened, as it told last
	told    uint32        // of those, by Lost
}

const (
	protocol = 89
	// precedence is internetwork control (RFC 2328 appendix A.1).
	precedence = 0xC0
	// priority of the local queues: that of control traffic, as far as it goes without CAP_NET_ADMIN.
	priority = 6
	// receiveBuffer is what FRR asks for, octets: a database that comes at once. Without CAP_NET_ADMIN
	// net.core.rmem_max bounds it.
	receiveBuffer = 8 << 20
)

// openSocket joins AllSPFRouters on an interface.
func openSocket(v packet.Version, index int, link string) (*socket, error) {
	domain, setUp := unix.AF_INET, setUpV2
	if v == packet.V3 {
		domain, setUp = unix.AF_INET6, setUpV3
	}
	file, err := shell.NewRawSocket(v.String()+":"+link, domain, unix.SOCK_RAW, protocol)
	if err != nil {
		return nil, fmt.Errorf("%s: raw socket for %s: %w", v, link, err)
	}
	if err := file.Control(func(fd int) error { return errors.Join(setUpAny(fd, index), setUp(fd, index)) }); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %s: %w", v, link, err)
	}
	return &socket{file: file, version: v, link: link, index: index}, nil
}

// option is a socket option.
type option struct {
	what        string
	level, name int
	value       int
}

func set(fd int, options ...option) error {
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("%s: %w", o.what, err)
		}
	}
	return nil
}

// setUpAny sets what both versions need.
func setUpAny(fd, index int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil { // no CAP_NET_ADMIN
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return fmt.Errorf("receive buffer: %w", err)
		}
	}
	return set(fd,
		option{"bind to the interface", unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, index},
		option{"count what is dropped", unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1},
	)
}

// Receive waits for a packet. It is a shell.Socket.
func (s *socket) Receive(buf []byte) (Datagram, error) {
	oob := make([]byte, 128)
	for {
		var n, oobn, flags int
		var from unix.Sockaddr
		err := s.file.Read(func(fd int) (err error) {
			n, oobn, flags, from, err = unix.Recvmsg(fd, buf, oob, 0)
			return err
		})
		switch {
		case errors.Is(err, unix.ENETDOWN), errors.Is(err, unix.ENODEV):
			continue // the interface went down; it may come up again
		case err != nil:
			return Datagram{}, fmt.Errorf("%s: receive: %w", s.version, err)
		case flags&unix.MSG_TRUNC != 0: // longer than any IP packet
			continue
		}
		about := s.control(oob[:oobn])
		if about.index != s.index {
			continue // came before the socket was bound
		}
		d, ok := s.datagram(buf[:n], from, about)
		if !ok || d.Destination.IsMulticast() && d.Destination != iface.AllSPFRouters(s.version) {
			continue // a raw socket of IPv6 takes the groups of others, too, whatever IPV6_MULTICAST_ALL says
		}
		return d, nil
	}
}

// datagram reads what was received; the kernel has looked at the IP header before.
func (s *socket) datagram(b []byte, from unix.Sockaddr, about arrival) (Datagram, bool) {
	d := Datagram{Link: s.link}
	if s.version == packet.V2 {
		var ok bool
		if d.Source, d.Destination, b, ok = parseIPv4(b); !ok {
			return d, false
		}
	} else {
		sa, ok := from.(*unix.SockaddrInet6)
		if !ok {
			return d, false
		}
		d.Source, d.Destination = netip.AddrFrom16(sa.Addr), about.to
	}
	d.Payload = append([]byte(nil), b...)
	return d, true
}

// Send sends a packet from the source address that it names; the kernel fragments one that is longer than the MTU.
func (s *socket) Send(d Datagram) error {
	to, oob, err := s.towards(d)
	if err != nil {
		return err
	}
	err = s.file.Write(func(fd int) error {
		_, err := unix.SendmsgN(fd, d.Payload, oob, to, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: send %d octets from %s to %s: %w", s.version, len(d.Payload), d.Source, d.Destination, err)
	}
	return nil
}

// towards is where a packet goes to, and the control message that says where from.
func (s *socket) towards(d Datagram) (unix.Sockaddr, []byte, error) {
	v4 := s.version == packet.V2
	if d.Source.Is4() != v4 || d.Destination.Is4() != v4 || !d.Source.IsValid() || !d.Destination.IsValid() {
		return nil, nil, fmt.Errorf("%s: send from %s to %s: not the version's addresses", s.version, d.Source, d.Destination)
	}
	if v4 {
		return &unix.SockaddrInet4{Addr: d.Destination.As4()}, unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(s.index), Spec_dst: d.Source.As4()}), nil
	}
	return &unix.SockaddrInet6{Addr: d.Destination.As16(), ZoneId: uint32(s.index)},
		unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: uint32(s.index), Addr: d.Source.As16()}), nil
}

// Lost is how many packets the kernel has dropped since the last call because the socket's queue was full, as far
// as the packets that were queued behind them tell.
func (s *socket) Lost() uint64 {
	n := s.dropped.Load()
	lost := n - s.told // the kernel's count goes round, too
	s.told = n
	return uint64(lost)
}

// Close makes a waiting Receive return shell.ErrClosed.
func (s *socket) Close() { s.file.Close() }

// control reads what the kernel says beside a packet, and keeps its count of drops.
func (s *socket) control(oob []byte) (a arrival) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return a
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4:
			s.dropped.Store(binary.NativeEndian.Uint32(m.Data))
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO:
			a.v2(m.Data)
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO:
			a.v3(m.Data)
		}
	}
	return a
}
