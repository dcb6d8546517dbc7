package labtraffic

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
)

// Host is one end of the traffic: an address in a network namespace.
type Host struct {
	Netns string     // as `ip netns` shows it; empty for the process's own
	Addr  netip.Addr // configured in that namespace
}

// Endpoint sends packets from a host. Its methods may be called from several goroutines.
type Endpoint struct {
	host Host
	raw  int
	sink int
	sent atomic.Uint64
	once sync.Once
}

// Open opens a host's sockets: a raw one to send, and a UDP one on port 4791 that takes what arrives,
// else the kernel would answer data with ICMP port unreachable.
func (h Host) Open() (*Endpoint, error) {
	if !h.Addr.IsValid() || h.Addr.Is4In6() {
		return nil, fmt.Errorf("host address %v: not a plain IPv4 or IPv6 address", h.Addr)
	}
	e := &Endpoint{host: h, raw: -1, sink: -1}
	err := inNetns(h.Netns, func() error {
		domain := unix.AF_INET
		if h.Addr.Is6() {
			domain = unix.AF_INET6
		}
		var err error
		if e.raw, err = unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err != nil {
			return fmt.Errorf("open raw socket (needs CAP_NET_RAW): %w", err)
		}
		if e.sink, err = unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return fmt.Errorf("open UDP socket: %w", err)
		}
		if err := unix.Bind(e.sink, sockaddr(h.Addr, roce.UDPPort)); err != nil && !errors.Is(err, unix.EADDRINUSE) {
			return fmt.Errorf("bind %v port %d: %w", h.Addr, roce.UDPPort, err)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("host %v: %w", h.Addr, err), e.Close())
	}
	return e, nil
}

func sockaddr(a netip.Addr, port int) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Port: port, Addr: a.As16()}
}

// Addr is the host's address.
func (e *Endpoint) Addr() netip.Addr { return e.host.Addr }

// Sent counts the packets sent.
func (e *Endpoint) Sent() uint64 { return e.sent.Load() }

// Send sends a whole IP packet to dst. An IPv4 id of zero is refused: the kernel would choose one, which
// the ICRC covers.
func (e *Endpoint) Send(dst netip.Addr, ip []byte) error {
	if len(ip) > 20 && ip[0]>>4 == 4 && ip[4] == 0 && ip[5] == 0 {
		return fmt.Errorf("send to %v: IPv4 id is zero", dst)
	}
	// A raw socket takes no port over IPv6: the kernel refuses any but zero.
	for {
		err := unix.Sendto(e.raw, ip, 0, sockaddr(dst, 0))
		switch {
		case err == nil:
			e.sent.Add(1)
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS):
			return nil // a full queue loses packets, as on any wire
		default:
			return fmt.Errorf("send from %v to %v, %d octets: %w", e.host.Addr, dst, len(ip), err)
		}
	}
}

// Close closes the sockets; again is no error.
func (e *Endpoint) Close() error {
	var err error
	e.once.Do(func() {
		for _, fd := range []int{e.raw, e.sink} {
			if fd >= 0 {
				err = errors.Join(err, unix.Close(fd))
			}
		}
	})
	return err
}
