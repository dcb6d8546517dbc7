package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What the kernel may refuse.
var (
	ErrMD5    = errors.New("TCP MD5 can't be set")
	ErrTTLMin = errors.New("minimum TTL can't be enforced")
	ErrListen = errors.New("can't listen")
)

const (
	// ipv6MinHopCount is IPV6_MINHOPCOUNT (RFC 5082 on IPv6), which x/sys doesn't name.
	ipv6MinHopCount = 73
	// networkControl is DSCP CS6 (RFC 2474 section 4.2.2.2), which BGP is to have (RFC 4594 section 3.2).
	networkControl = 48 << 2
	// ttlMost is what everything is sent with until the neighbour is known: it may ask for TTL security.
	ttlMost = 255
	// insideBuffer bounds in octets what TCP keeps of a leg's stream, so that a neighbour that doesn't
	// read is noticed.
	insideBuffer = 256 << 10
)

// option is a socket option that is a number.
type option struct{ level, name, value int }

func ttl(ipv6 bool, n int) option {
	if ipv6 {
		return option{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, n}
	}
	return option{unix.IPPROTO_IP, unix.IP_TTL, n}
}

func ttlMin(ipv6 bool, n int) option {
	if ipv6 {
		return option{unix.IPPROTO_IPV6, ipv6MinHopCount, n}
	}
	return option{unix.IPPROTO_IP, unix.IP_MINTTL, n}
}

func trafficClass(ipv6 bool) option {
	if ipv6 {
		return option{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, networkControl}
	}
	return option{unix.IPPROTO_IP, unix.IP_TOS, networkControl}
}

func (o option) set(fd int) error { return unix.SetsockoptInt(fd, o.level, o.name, o.value) }

// secure puts the neighbour's TTLs into force on a connection with it.
func (p *Peer) secure(fd int) error {
	v6 := p.Address.Is6()
	out := -1 // the system's
	if p.TTL != 0 {
		out = int(p.TTL)
	}
	if err := ttl(v6, out).set(fd); err != nil {
		return fmt.Errorf("TTL %d: %w", out, err)
	}
	if p.TTLMin != 0 {
		if err := ttlMin(v6, int(p.TTLMin)).set(fd); err != nil {
			return fmt.Errorf("%w for %s: %w", ErrTTLMin, p.Address, err)
		}
	}
	return nil
}

// prepare does so before a connection is made, and sets the key.
func (p *Peer) prepare(fd int) error {
	if err := p.secure(fd); err != nil {
		return err
	}
	if err := trafficClass(p.Address.Is6()).set(fd); err != nil {
		return fmt.Errorf("DSCP: %w", err)
	}
	if p.Password == "" {
		return nil
	}
	return setKey(fd, p.Address, p.Password)
}

// probe says whether this kernel lets a socket have the neighbour's key and minimum TTL, as an outgoing
// connection will need them.
func (p *Peer) probe() error {
	domain := unix.AF_INET
	if p.Address.Is6() {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("socket for %s: %w", p.Address, err)
	}
	defer unix.Close(fd)
	return p.prepare(fd)
}

// setKey puts a TCP MD5 key on a socket; an empty one takes it off.
func setKey(fd int, peer netip.Addr, key string) error { return setKeyOf(fd, hostPrefix(peer), key) }

// setKeyOf does so for all addresses of a prefix. Of several keys that of the longest prefix counts.
func setKeyOf(fd int, of netip.Prefix, key string) error {
	sig, name, peer := &unix.TCPMD5Sig{Keylen: uint16(len(key))}, unix.TCP_MD5SIG, of.Addr()
	if !of.IsSingleIP() {
		name, sig.Flags, sig.Prefixlen = unix.TCP_MD5SIG_EXT, unix.TCP_MD5SIG_FLAG_PREFIX, uint8(of.Bits())
	}
	// Data is a sockaddr without its family: port, then for IPv6 the flow label, then the address.
	if peer.Is4() {
		sig.Addr.Family = unix.AF_INET
		copy(sig.Addr.Data[2:], peer.AsSlice())
	} else {
		sig.Addr.Family = unix.AF_INET6
		copy(sig.Addr.Data[6:], peer.AsSlice())
	}
	copy(sig.Key[:], key)
	err := unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, name, sig)
	if err == nil || key == "" && errors.Is(err, unix.ENOENT) {
		return nil
	}
	hint := ""
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		hint = " (the kernel needs CONFIG_TCP_MD5SIG)"
	case errors.Is(err, unix.ENOMEM):
		hint = " (too many neighbours with a password: raise net.core.optmem_max)"
	}
	if of.IsSingleIP() {
		return fmt.Errorf("%w for %s: %w%s", ErrMD5, peer, err, hint)
	}
	return fmt.Errorf("%w for %s: %w%s", ErrMD5, of, err, hint)
}

// control makes what net wants of a function on a socket that isn't connected yet.
func control(f func(fd int) error) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error { return onSocket(c, f) }
}

func onSocket(c syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := c.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// dialPeer connects to a neighbour.
func dialPeer(ctx context.Context, p *Peer) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: p.ConnectRetry, KeepAlive: -1, Control: control(p.prepare)}
	d.SetMultipathTCP(false)
	to, from := p.Address, p.LocalAddress
	if zone := to.Zone(); zone != "" {
		index, err := zoneIndex(zone)
		if err != nil {
			return nil, err
		}
		to = to.WithZone(index)
		if from.Zone() != "" {
			from = from.WithZone(index)
		}
	}
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	return dialTCP(ctx, &d, netip.AddrPortFrom(to, p.Port))
}

// dialTimeout is how long a connection over loopback may take.
const dialTimeout = 5 * time.Second

// dialInside connects to the speaker as the neighbour that it knows by an address of 127/8.
func dialInside(ctx context.Context, from netip.Addr, to netip.AddrPort, key string) (*net.TCPConn, error) {
	d := net.Dialer{
		Timeout: dialTimeout, KeepAlive: -1, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)),
		Control: control(func(fd int) error {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, insideBuffer); err != nil {
				return err
			}
			return setKey(fd, to.Addr(), key)
		}),
	}
	d.SetMultipathTCP(false)
	return dialTCP(ctx, &d, to)
}

func dialTCP(ctx context.Context, d *net.Dialer, to netip.AddrPort) (*net.TCPConn, error) {
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// listeners are the sockets on which neighbours connect.
type listeners struct {
	socks []*listener
}

type listener struct {
	*net.TCPListener
	ipv6 bool
}

// listen opens a socket for each address. It takes no MPTCP: on such sockets a key can't be set.
func listen(ctx context.Context, at []netip.AddrPort) (*listeners, error) {
	ls := &listeners{}
	for _, a := range at {
		v6, network := a.Addr().Is6(), "tcp4"
		if v6 {
			network = "tcp6" // IPv6 only
		}
		lc := net.ListenConfig{KeepAlive: -1, Control: control(func(fd int) error {
			return errors.Join(ttl(v6, ttlMost).set(fd), trafficClass(v6).set(fd))
		})}
		lc.SetMultipathTCP(false)
		l, err := lc.Listen(ctx, network, a.String())
		if err != nil {
			ls.close()
			return nil, fmt.Errorf("%w on %s: %w", ErrListen, a, err)
		}
		ls.socks = append(ls.socks, &listener{l.(*net.TCPListener), v6})
	}
	return ls, nil
}

func (l *listeners) close() {
	for _, s := range l.socks {
		s.Close()
	}
}

// hasFamily reports whether there is a listener for neighbours of the address's family.
func (l *listeners) hasFamily(a netip.Addr) bool {
	for _, s := range l.socks {
		if s.ipv6 == a.Is6() {
			return true
		}
	}
	return false
}

// setKey puts the neighbour's key on the listeners of its family; an empty one takes it off.
func (l *listeners) setKey(peer netip.Addr, key string) error {
	return l.setKeyOf(hostPrefix(peer), key)
}

func (l *listeners) setKeyOf(of netip.Prefix, key string) error {
	return l.each(func(fd int, ipv6 bool) error {
		if ipv6 != of.Addr().Is6() {
			return nil
		}
		return setKeyOf(fd, of, key)
	})
}

func (l *listeners) each(f func(fd int, ipv6 bool) error) error {
	for _, s := range l.socks {
		c, err := s.SyscallConn()
		if err == nil {
			err = onSocket(c, func(fd int) error { return f(fd, s.ipv6) })
		}
		if err != nil {
			return fmt.Errorf("listener on %s: %w", s.Addr(), err)
		}
	}
	return nil
}
