package relay

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// setMinTTL makes the listeners drop packets of the given neighbours that arrive with less than their
// minimum TTL (RFC 5082 section 3). The minimum can be set on an accepted connection only, so without
// this a neighbour far away could complete the handshake and have what it sends at once be read.
// Accepted connections inherit the filter.
func (l *listeners) setMinTTL(min map[netip.Addr]uint8) error {
	return l.each(func(fd int, ipv6 bool) error {
		prog := ttlFilter(ipv6, min)
		if prog == nil {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("%w: detach the filter: %w", ErrTTLMin, err)
			}
			return nil
		}
		raw, err := bpf.Assemble(prog)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTTLMin, err)
		}
		filter := make([]unix.SockFilter, len(raw))
		for i, r := range raw {
			filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
		}
		fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog); err != nil {
			hint := ""
			if errors.Is(err, unix.EPERM) {
				hint = " (some kernels want CAP_NET_ADMIN for a filter on a TCP socket)"
			}
			return fmt.Errorf("%w: filter: %w%s", ErrTTLMin, err, hint)
		}
		return nil
	})
}

// ttlFilter is the socket filter for one family; nil when no peer needs one. The filter of a TCP
// socket sees the segment from the TCP header on; the IP header is at SKF_NET_OFF.
func ttlFilter(ipv6 bool, min map[netip.Addr]uint8) []bpf.Instruction {
	const net = 0xfff00000 // SKF_NET_OFF of linux/filter.h, -0x100000
	ttlOff, srcOff := uint32(net+8), uint32(net+12)
	if ipv6 {
		ttlOff, srcOff = net+7, net+8
	}
	var prog []bpf.Instruction
	for a, ttl := range min {
		if a.Is6() != ipv6 {
			continue
		}
		b := a.AsSlice()
		words := len(b) / 4
		for w := range words {
			v := uint32(b[4*w])<<24 | uint32(b[4*w+1])<<16 | uint32(b[4*w+2])<<8 | uint32(b[4*w+3])
			// On a difference skip the rest of this peer's instructions: two for each word that
			// is left, and the three that look at the TTL.
			skip := uint8(2*(words-w-1) + 3)
			prog = append(prog, bpf.LoadAbsolute{Off: srcOff + uint32(4*w), Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: skip})
		}
		prog = append(prog, bpf.LoadAbsolute{Off: ttlOff, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(ttl), SkipTrue: 1},
			bpf.RetConstant{Val: 0})
	}
	if prog == nil {
		return nil
	}
	return append(prog, bpf.RetConstant{Val: 0xffffffff})
}
