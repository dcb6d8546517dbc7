package emit

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DefaultBatchSize is how many packets go to the kernel in one call.
const DefaultBatchSize = 64

// maxBatchSize is UIO_MAXIOV, above which sendmmsg(2) cuts a batch anyway.
const maxBatchSize = 1024

// sendTimeout bounds how long a packet may wait for room in the socket's buffer.
const sendTimeout = 100 * time.Millisecond

// Config describes a Sender. The zero value is usable.
type Config struct {
	Interface string // send by this interface only (SO_BINDTODEVICE); empty: by the routing table
	BatchSize int    // packets a system call, 1 to 1024; 0 means DefaultBatchSize
	Mark      uint32 // firewall mark of the packets (SO_MARK); 0 sets none
}

// Errors of Open and Send, matched with errors.Is.
var (
	ErrPermission = errors.New("needs CAP_NET_RAW (a mark: CAP_NET_ADMIN too)")
	ErrClosed     = errors.New("sender is closed")
)

// Sender sends IP packets. Its sockets belong to the network namespace of the thread that called Open. Its
// methods may be called from several goroutines.
type Sender struct {
	mu     sync.Mutex
	closed bool
	fd4    int
	fd6    int
	msgs   []unix.Mmsghdr
	iovs   []unix.Iovec
	to4    []unix.RawSockaddrInet4
	to6    []unix.RawSockaddrInet6
}

// Open opens a raw socket for each family. On a host without IPv6 packets of that family fail with
// EAFNOSUPPORT. Errors wrap ErrPermission, or name the field of c.
func Open(c Config) (*Sender, error) {
	if c.BatchSize == 0 {
		c.BatchSize = DefaultBatchSize
	}
	if c.BatchSize < 1 || c.BatchSize > maxBatchSize {
		return nil, fmt.Errorf("emit: batch size %d: not within 1 to %d", c.BatchSize, maxBatchSize)
	}
	s := &Sender{fd4: -1, fd6: -1}
	var err error
	if s.fd4, err = openRaw(unix.AF_INET, c); err != nil {
		return nil, err
	}
	if s.fd6, err = openRaw(unix.AF_INET6, c); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		_ = unix.Close(s.fd4)
		return nil, err
	}
	s.msgs = make([]unix.Mmsghdr, c.BatchSize)
	s.iovs = make([]unix.Iovec, c.BatchSize)
	s.to4 = make([]unix.RawSockaddrInet4, c.BatchSize)
	s.to6 = make([]unix.RawSockaddrInet6, c.BatchSize)
	for i := range s.msgs {
		s.msgs[i].Hdr.Iov = &s.iovs[i]
		s.msgs[i].Hdr.SetIovlen(1)
		s.to4[i].Family = unix.AF_INET
		s.to6[i].Family = unix.AF_INET6
	}
	return s, nil
}

// openRaw opens the raw socket of one family. On error no socket is left and the number is -1.
func openRaw(family int, c Config) (int, error) {
	name := map[int]string{unix.AF_INET: "IPv4", unix.AF_INET6: "IPv6"}[family]
	fail := func(step string, err error) (int, error) {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			return -1, fmt.Errorf("emit: %s raw socket: %s: %w: run as root or grant the capability (%w)", name, step, ErrPermission, err)
		}
		return -1, fmt.Errorf("emit: %s raw socket: %s: %w", name, step, err)
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fail("open", err)
	}
	level, headerIncluded, reportErrors := unix.IPPROTO_IP, unix.IP_HDRINCL, unix.IP_RECVERR
	if family == unix.AF_INET6 {
		level, headerIncluded, reportErrors = unix.IPPROTO_IPV6, unix.IPV6_HDRINCL, unix.IPV6_RECVERR
	}
	timeout := unix.NsecToTimeval(int64(sendTimeout))
	steps := []struct {
		name string
		set  func() error
	}{
		{"include headers", func() error { return unix.SetsockoptInt(fd, level, headerIncluded, 1) }},
		// Without this the kernel hides that a queueing discipline dropped the packet (ENOBUFS).
		{"report drops", func() error { return unix.SetsockoptInt(fd, level, reportErrors, 1) }},
		{"send timeout", func() error { return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout) }},
		{"mark", func() error {
			if c.Mark == 0 {
				return nil
			}
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(c.Mark))
		}},
		{"bind to " + c.Interface, func() error {
			if c.Interface == "" {
				return nil
			}
			return unix.BindToDevice(fd, c.Interface)
		}},
	}
	for _, s := range steps {
		if err := s.set(); err != nil {
			_ = unix.Close(fd)
			return fail(s.name, err)
		}
	}
	return fd, nil
}

// Send sends whole IP packets in their order, both families mixed as they come, and returns how many went.
// It stops at the first that can't be sent: err is then a *PacketError about pkts[sent], and the caller may
// go on with pkts[sent+1:]. Packets are not changed and not kept. Nothing is allocated while all goes well.
func (s *Sender) Send(pkts [][]byte) (sent int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, fmt.Errorf("emit: %w", ErrClosed)
	}
	for sent < len(pkts) {
		n, v6, bad := s.fill(pkts[sent:])
		if n == 0 {
			return sent, packetError(pkts, sent, fmt.Errorf("%w: %w", ErrPacket, bad))
		}
		fd := s.fd4
		if v6 {
			fd = s.fd6
		}
		done, errno := 0, unix.EAFNOSUPPORT
		if fd >= 0 {
			done, errno = sendAll(fd, s.msgs[:n])
		}
		clear(s.iovs[:n]) // keep no packet alive
		sent += done
		if errno != 0 {
			return sent, packetError(pkts, sent, errno)
		}
	}
	return sent, nil
}

func packetError(pkts [][]byte, i int, err error) error {
	return &PacketError{Index: i, Dst: destination(pkts[i]), Err: err}
}

// fill prepares the leading packets of one family, up to a batch. With n == 0, bad says why the first one
// can't be sent.
func (s *Sender) fill(pkts [][]byte) (n int, v6 bool, bad error) {
	for n < len(pkts) && n < len(s.msgs) {
		pkt := pkts[n]
		six, err := check(pkt)
		if err != nil {
			return n, v6, err
		}
		if n == 0 {
			v6 = six
		} else if six != v6 {
			return n, v6, nil
		}
		s.iovs[n].Base = &pkt[0]
		s.iovs[n].SetLen(len(pkt))
		h := &s.msgs[n].Hdr
		if six {
			s.to6[n].Addr = [16]byte(pkt[24:40])
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&s.to6[n])), unix.SizeofSockaddrInet6
		} else {
			s.to4[n].Addr = [4]byte(pkt[16:20])
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&s.to4[n])), unix.SizeofSockaddrInet4
		}
		n++
	}
	return n, v6, nil
}

// sendAll sends messages in their order; with fewer done, errno is about the one after them. sendmmsg hides the error
// of a message that is not its first, so a short count is followed by another call, which then reports it.
//
// Go's scheduler is told of a call only where the socket's buffer is full, and so one that may wait (sendTimeout): it
// gives the place of a thread that is 20 us in a call to another one, and a batch takes longer than that without waiting.
func sendAll(fd int, msgs []unix.Mmsghdr) (done int, errno unix.Errno) {
	for wait := false; done < len(msgs); {
		r, errno := sendSome(fd, msgs[done:], wait)
		switch {
		case errno == 0:
			done, wait = done+r, false
		case errno == unix.EAGAIN && !wait:
			wait = true
		case errno != unix.EINTR:
			return done, errno
		}
	}
	return done, 0
}

// sendSome is sendmmsg(2), with or without waiting for room in the socket's buffer.
func sendSome(fd int, msgs []unix.Mmsghdr, wait bool) (sent int, errno unix.Errno) {
	var r uintptr
	if wait {
		r, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), 0, 0, 0)
	} else {
		r, _, errno = unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), unix.MSG_DONTWAIT, 0, 0)
	}
	return int(r), errno
}

// Close closes the sockets. A second Close does nothing.
func (s *Sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := unix.Close(s.fd4)
	if s.fd6 >= 0 {
		err = errors.Join(err, unix.Close(s.fd6))
	}
	if err != nil {
		return fmt.Errorf("emit: close: %w", err)
	}
	return nil
}
