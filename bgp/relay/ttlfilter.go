package relay

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// setMinTTL makes the listeners drop packets of the given neighbours and ranges that arrive with less than their
// minimum TTL (RFC 5082 section 3). The minimum can be set on an accepted connection only, so without
// this a neighbour far away could complete the handshake and have what it sends at once be read.
// Accepted connections inherit the filter.
func (l *listeners) setMinTTL(min map[netip.Prefix]uint8) error {
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

// hostPrefix is the prefix that holds an address only. Zones have no place in it.
func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a.WithZone(""), a.BitLen()) }

// ttlFilter is the socket filter for one family; nil when none is needed. Of several prefixes that hold a source
// the longest decides. The filter of a TCP socket sees the segment from the TCP header on; the IP header is at
// SKF_NET_OFF.
func ttlFilter(ipv6 bool, min map[netip.Prefix]uint8) []bpf.Instruction {
	const net = 0xfff00000 // SKF_NET_OFF of linux/filter.h, -0x100000
	ttlOff, srcOff := uint32(net+8), uint32(net+12)
	if ipv6 {
		ttlOff, srcOff = net+7, net+8
	}
	var list []netip.Prefix
	for p := range min {
		if p.Addr().Is6() == ipv6 {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(b.Bits(), a.Bits()), a.Addr().Compare(b.Addr()))
	})
	pass := bpf.RetConstant{Val: 0xffffffff}
	var prog []bpf.Instruction
	for _, p := range list {
		rule := matchPrefix(p, srcOff)
		rule = append(rule, bpf.LoadAbsolute{Off: ttlOff, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(min[p]), SkipTrue: 1},
			bpf.RetConstant{Val: 0}, pass)
		for i, in := range rule {
			if j, ok := in.(bpf.JumpIf); ok && j.Cond == bpf.JumpNotEqual {
				j.SkipTrue = uint8(len(rule) - 1 - i) // to the next prefix
				rule[i] = j
			}
		}
		prog = append(prog, rule...)
	}
	return append(prog, pass)
}

// matchPrefix compares the source with a prefix, word by word. Where its JumpNotEqual go is to be filled in.
func matchPrefix(p netip.Prefix, srcOff uint32) (rule []bpf.Instruction) {
	b := p.Masked().Addr().AsSlice()
	for at := 0; at < p.Bits(); at += 32 {
		rule = append(rule, bpf.LoadAbsolute{Off: srcOff + uint32(at/8), Size: 4})
		if rest := p.Bits() - at; rest < 32 {
			rule = append(rule, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(0) << (32 - rest)})
		}
		rule = append(rule, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(b[at/8:])})
	}
	return rule
}
