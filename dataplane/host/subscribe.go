package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The groups of what can change the route to an address.
var groups = []uint{
	unix.RTNLGRP_LINK,
	unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
	unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
	unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
	unix.RTNLGRP_NEXTHOP,
}

// subscription is one socket for all groups, so that no order between them is lost.
type subscription struct {
	socket *nl.NetlinkSocket
	closed atomic.Bool
}

func subscribe(namespace string, buffer int, groups []uint) (*subscription, error) {
	var s *nl.NetlinkSocket
	err := Inside(namespace, func() (err error) {
		s, err = nl.Subscribe(unix.NETLINK_ROUTE, groups...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	// Past net.core.rmem_max with CAP_NET_ADMIN, else up to it.
	if s.SetReceiveBufferSize(buffer, true) != nil {
		if err := s.SetReceiveBufferSize(buffer, false); err != nil {
			s.Close()
			return nil, fmt.Errorf("set the receive buffer of the rtnetlink subscription: %w", err)
		}
	}
	return &subscription{socket: s}, nil
}

// close makes a waiting run return.
func (s *subscription) close() {
	s.closed.Store(true)
	s.socket.Close()
}

// heard is what a subscription calls, from the goroutine of run.
type heard struct {
	relevant func(*syscall.NetlinkMessage) bool // whether a message matters
	changed  func()                             // something that may matter
	ignored  func()                             // a message that doesn't
	overrun  func()                             // the kernel dropped messages (ENOBUFS)
}

// run reads until close.
func (s *subscription) run(h heard) error {
	for {
		msgs, from, err := s.socket.Receive()
		switch {
		case err != nil && s.closed.Load():
			return nil // the error of a raw read on a closed file has no name to match
		case errors.Is(err, unix.ENOBUFS):
			h.overrun()
			continue
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return fmt.Errorf("read the rtnetlink subscription: %w", err)
		case from.Pid != nl.PidKernel:
			continue // netlink(7): anyone with the right may send to a group
		}
		for i := range msgs {
			if h.relevant(&msgs[i]) {
				h.changed()
			} else {
				h.ignored()
			}
		}
	}
}

// relevant leaves out route changes for prefixes that concern nobody: a router with a full table
// has many of them. Anything else may matter, also what can't be read.
func relevant(m *syscall.NetlinkMessage, concerns func(netip.Prefix) bool) bool {
	if m.Header.Type != unix.RTM_NEWROUTE && m.Header.Type != unix.RTM_DELROUTE {
		return true
	}
	p, ok := routePrefix(m.Data)
	return !ok || concerns(p)
}

// routePrefix reads the destination of a route message: rtmsg, then attributes (rtnetlink(7)). It
// walks the attributes itself, because nl.ParseRouteAttr panics on a last one without padding.
func routePrefix(b []byte) (netip.Prefix, bool) {
	if len(b) < unix.SizeofRtMsg {
		return netip.Prefix{}, false
	}
	family, bits := b[0], int(b[1])
	addr := netip.IPv4Unspecified() // a default route has no RTA_DST
	switch family {
	case unix.AF_INET:
	case unix.AF_INET6:
		addr = netip.IPv6Unspecified()
	default:
		return netip.Prefix{}, false
	}
	for b = b[unix.SizeofRtMsg:]; len(b) >= unix.SizeofRtAttr; {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			return netip.Prefix{}, false
		}
		if binary.NativeEndian.Uint16(b[2:]) == unix.RTA_DST {
			dst, ok := netip.AddrFromSlice(b[unix.SizeofRtAttr:length])
			if !ok || dst.Is4() != addr.Is4() {
				return netip.Prefix{}, false
			}
			addr = dst
		}
		padded := (length + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1)
		b = b[min(padded, len(b)):]
	}
	p, err := addr.Prefix(bits)
	return p, err == nil
}
