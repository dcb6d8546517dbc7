package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ipv6MinHopCount is IPV6_MINHOPCOUNT (RFC 5082 on IPv6), which x/sys doesn't name.
const ipv6MinHopCount = 73

// listeners are GoBGP's listening sockets. GoBGP only logs when a TCP MD5 key can't be set on them
// and then lets a peer without the key in, so keys and the filter for TTL security are set from here,
// where an error is an error.
type listeners struct {
	socks []listener
}

type listener struct {
	fd   int // a duplicate of our own
	ipv6 bool
}

// findListeners looks for this process's listening TCP sockets on the port. It refuses MPTCP ones: on
// those a key can't be set (Go listens with MPTCP unless the program carries `godebug multipathtcp=0`).
func findListeners(port int, addrs []netip.Addr) (*listeners, error) {
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	var found []int // all of them before the first is duplicated: a duplicate listens too
	for _, d := range dir {
		if fd, err := strconv.Atoi(d.Name()); err == nil && listensOn(fd, port, addrs) {
			found = append(found, fd)
		}
	}
	ls := &listeners{}
	for _, fd := range found {
		if p, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || p != unix.IPPROTO_TCP {
			ls.close()
			return nil, fmt.Errorf("%w (protocol %d, %v): build with `godebug multipathtcp=0`", ErrMultipath, p, err)
		}
		family, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			ls.close()
			return nil, fmt.Errorf("%w: duplicate the listening socket: %w", ErrListen, err)
		}
		ls.socks = append(ls.socks, listener{fd: own, ipv6: family == unix.AF_INET6})
	}
	if len(ls.socks) < len(addrs) {
		ls.close()
		return nil, fmt.Errorf("%w: found %d of %d sockets on port %d", ErrListen, len(ls.socks), len(addrs), port)
	}
	return ls, nil
}

func listensOn(fd, port int, addrs []netip.Addr) bool {
	if v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || v != 1 {
		return false
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	var at netip.AddrPort
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		at = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		at = netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	default:
		return false
	}
	for _, a := range addrs {
		if int(at.Port()) == port && at.Addr() == a.WithZone("") {
			return true
		}
	}
	return false
}

func (l *listeners) close() {
	if l == nil {
		return
	}
	for _, s := range l.socks {
		unix.Close(s.fd)
	}
	l.socks = nil
}

// hasFamily reports whether there is a listener for peers of the address's family.
func (l *listeners) hasFamily(a netip.Addr) bool {
	if l != nil {
		for _, s := range l.socks {
			if s.ipv6 == a.Is6() {
				return true
			}
		}
	}
	return false
}

// setKey puts the peer's key on the listeners of its family; an empty one takes it off.
func (l *listeners) setKey(peer netip.Addr, key string) error {
	if l == nil {
		return nil
	}
	for _, s := range l.socks {
		if s.ipv6 != peer.Is6() {
			continue
		}
		err := unix.SetsockoptTCPMD5Sig(s.fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, md5Sig(peer, key))
		if key == "" && errors.Is(err, unix.ENOENT) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("%w on the listener for %s: %w", ErrMD5, peer, err)
		}
	}
	return nil
}

func md5Sig(peer netip.Addr, key string) *unix.TCPMD5Sig {
	sig := &unix.TCPMD5Sig{Keylen: uint16(len(key))}
	// Data is a sockaddr without its family: port, then for IPv6 the flow label, then the address.
	if peer.Is4() {
		sig.Addr.Family = unix.AF_INET
		copy(sig.Addr.Data[2:], peer.AsSlice())
	} else {
		sig.Addr.Family = unix.AF_INET6
		copy(sig.Addr.Data[6:], peer.AsSlice())
	}
	copy(sig.Key[:], key)
	return sig
}

// setMinTTL makes the listeners drop packets of the given peers that arrive with less than their
// minimum TTL (RFC 5082 section 3). GoBGP sets the minimum on an accepted connection only, so without
// this a peer far away could complete the handshake and have what it sends at once be read.
// Accepted connections inherit the filter.
func (l *listeners) setMinTTL(min map[netip.Addr]uint8) error {
	if l == nil {
		return nil
	}
	for _, s := range l.socks {
		prog := ttlFilter(s.ipv6, min)
		if prog == nil {
			if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("%w: detach the filter: %w", ErrTTLMin, err)
			}
			continue
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
		if err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog); err != nil {
			hint := ""
			if errors.Is(err, unix.EPERM) {
				hint = " (some kernels want CAP_NET_ADMIN for a filter on a TCP socket)"
			}
			return fmt.Errorf("%w: filter on the listener: %w%s", ErrTTLMin, err, hint)
		}
	}
	return nil
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

// probe says whether this kernel lets a socket have the peer's key and minimum TTL, as an outgoing
// session will need them.
func probe(p Peer) error {
	domain, level, opt := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MINTTL
	if p.Address.Is6() {
		domain, level, opt = unix.AF_INET6, unix.IPPROTO_IPV6, ipv6MinHopCount
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("socket for %s: %w", p.Address, err)
	}
	defer unix.Close(fd)
	if p.Password != "" {
		if err := unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, md5Sig(p.Address, p.Password)); err != nil {
			return fmt.Errorf("%w for %s: %w", ErrMD5, p.Address, err)
		}
	}
	if p.TTLMin != 0 {
		if err := unix.SetsockoptInt(fd, level, opt, int(p.TTLMin)); err != nil {
			return fmt.Errorf("%w for %s: %w", ErrTTLMin, p.Address, err)
		}
	}
	return nil
}
