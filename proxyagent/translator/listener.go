package translator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultReceiveBuffer is the socket's receive buffer in octets: some 5,000 notifications, which is
// 50 ms at 100,000 a second.
const DefaultReceiveBuffer = 4 << 20

// ListenConfig configures a Listener.
type ListenConfig struct {
	// Address is the local address and port: 0.0.0.0 or an IPv4 address for notifications over IPv4,
	// :: or an IPv6 address for those over IPv6.
	Address netip.AddrPort
	// ReceiveBuffer is in octets; zero means DefaultReceiveBuffer. More than net.core.rmem_max needs CAP_NET_ADMIN
	// and is cut to that without it.
	ReceiveBuffer int
}

// Listener reads datagrams from one UDP socket, in batches. Only one goroutine may read.
type Listener struct {
	addr    netip.AddrPort
	conn    *net.UDPConn
	raw     syscall.RawConn
	batch   *batch
	names   ifNames
	drops   dropCounter
	bad     *badSums
	closed  atomic.Bool
	readErr error
	readN   int
	tryRead func(fd uintptr) bool // allocated once
}

// Listen opens a socket in the network namespace of the calling thread. The error says what to do
// when the port needs a capability or the address is taken or not there.
func Listen(cfg ListenConfig) (*Listener, error) {
	if !cfg.Address.IsValid() || cfg.Address.Addr().Is4In6() {
		return nil, fmt.Errorf("translator: listen address %s: must be an IPv4 or IPv6 address with a port", cfg.Address)
	}
	if cfg.ReceiveBuffer < 0 {
		return nil, fmt.Errorf("translator: receive buffer %d: must not be negative", cfg.ReceiveBuffer)
	}
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = DefaultReceiveBuffer
	}
	network := "udp6"
	if cfg.Address.Addr().Is4() {
		network = "udp4"
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = setOptions(int(fd), network == "udp4", cfg.ReceiveBuffer) }); cerr != nil {
			return cerr
		}
		return err
	}}
	pc, err := lc.ListenPacket(context.Background(), network, cfg.Address.String())
	if err != nil {
		return nil, explain(cfg.Address, err)
	}
	conn := pc.(*net.UDPConn) // what ListenPacket gives for udp4 and udp6
	l := &Listener{addr: cfg.Address, conn: conn, batch: newBatch(keep)}
	if cfg.Address.Port() == 0 {
		l.addr = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	}
	if l.raw, err = conn.SyscallConn(); err == nil {
		l.bad, err = openBadSums(l.addr)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: %w", cfg.Address, err)
	}
	l.drops.raw, l.names.raw = l.raw, l.raw
	l.tryRead = func(fd uintptr) bool {
		l.readN, l.readErr = l.batch.receive(int(fd))
		return !errors.Is(l.readErr, unix.EAGAIN)
	}
	return l, nil
}

// explain says what to do about an error of ListenPacket.
func explain(addr netip.AddrPort, err error) error {
	var hint string
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		hint = "; a port under 1024 needs CAP_NET_BIND_SERVICE: grant it (AmbientCapabilities= in the unit), or configure a higher port at both ends"
	case errors.Is(err, unix.EADDRINUSE):
		hint = "; the address is taken: stop the other program (see 'ss -ulpn'), or configure another port at both ends"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		hint = "; this node has no such address: add it to an interface, or configure one that it has"
	case errors.Is(err, unix.EAFNOSUPPORT):
		hint = "; the kernel does not have this address family: configure the other one only"
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // which repeats the address
	}
	return fmt.Errorf("listen on %s: %w%s", addr, err, hint)
}

// setOptions asks for what a Datagram tells beside the payload, and for a receive buffer unless that
// is zero.
func setOptions(fd int, v4 bool, buffer int) error {
	if buffer != 0 && unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
			return os.NewSyscallError("setsockopt SO_RCVBUF", err)
		}
	}
	options := []struct {
		name       string
		level, opt int
	}{
		{"SO_TIMESTAMPNS", unix.SOL_SOCKET, unix.SO_TIMESTAMPNS},
		{"IPV6_RECVHOPLIMIT", unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT},
		{"IPV6_RECVPKTINFO", unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO},
	}
	if v4 {
		options = append(options[:1], []struct {
			name       string
			level, opt int
		}{
			{"IP_RECVTTL", unix.IPPROTO_IP, unix.IP_RECVTTL},
			{"IP_PKTINFO", unix.IPPROTO_IP, unix.IP_PKTINFO},
		}...)
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.opt, 1); err != nil {
			return os.NewSyscallError("setsockopt "+o.name, err)
		}
	}
	return nil
}

// Addr is the local address and port.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// Read waits for datagrams until the deadline and gives up to MaxBatch of them, valid until the next
// call. The error is os.ErrDeadlineExceeded, net.ErrClosed, or the system's.
func (l *Listener) Read(deadline time.Time) ([]Datagram, error) {
	if err := l.conn.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	return l.read()
}

// read waits until the deadline that was set before.
func (l *Listener) read() ([]Datagram, error) {
	if err := l.raw.Read(l.tryRead); err != nil {
		return nil, err
	}
	if l.readErr != nil {
		return nil, fmt.Errorf("translator: read on %s: %w", l.addr, os.NewSyscallError("recvmmsg", l.readErr))
	}
	return l.batch.decode(l.readN, time.Now(), &l.names), nil
}

// poll gives what is there without waiting; nothing when there is nothing.
func (l *Listener) poll() ([]Datagram, error) {
	if err := l.raw.Control(func(fd uintptr) { l.tryRead(fd) }); err != nil {
		return nil, err
	}
	if l.readErr != nil {
		return nil, l.readErr
	}
	return l.batch.decode(l.readN, time.Now(), &l.names), nil
}

// Refused hands over the datagrams with wrong checksums that came since the last call, valid during
// the call of fn, and gives what else the kernel dropped. The error is net.ErrClosed, or the system's.
func (l *Listener) Refused(fn func([]Datagram)) (Loss, error) {
	bad, err := l.bad.take(&l.names, fn)
	var overflow uint64
	if err == nil {
		overflow, err = l.drops.take()
	}
	switch {
	case err == nil:
		return Loss{Overflow: overflow, BadChecksum: bad}, nil
	case l.closed.Load(): // each kind of descriptor says it in its own words
		return Loss{}, net.ErrClosed
	}
	return Loss{}, err
}

// Close closes the sockets. It may be called more than once.
func (l *Listener) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return errors.Join(l.conn.Close(), l.bad.close())
}
