package translator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A UDP socket of Linux never hands over a datagram whose checksum is wrong. The kernel verifies one of
// at most 76 octets before it looks for a socket, and counts it for the whole namespace only. So that
// such a notification has its outcome and its record, a raw socket beside the UDP socket takes those
// with a wrong checksum: its filter (badsum_filter.go) adds up the checksum and lets nothing else by.
//
// When the raw socket's queue is full the kernel counts as its drops whatever UDP datagrams come, right
// ones and those to other ports too. As many of them count as bad-checksum as the namespace's counter
// grew by beyond what was read: exact unless other ports got wrong checksums in that moment.
//
// A longer datagram, which no format has, is verified when it is read: it shows in the UDP socket's
// drop counter, as receive-overflow.

// badSums reads the datagrams with wrong checksums for one UDP socket.
type badSums struct {
	file  *os.File
	raw   syscall.RawConn
	v4    bool
	batch *batch
	drops dropCounter
	total *sumErrors
	// unread is negative while more was read than total counted: what came in during the last look.
	unread int64
}

const (
	maxIPv4Header = 60
	udpHeaderLen  = 8
	// badKeep holds the longest datagram that the filter lets by, from the IPv4 header on.
	badKeep = maxIPv4Header + maxEarlySum
	// badBuffer is the raw socket's receive buffer in octets: some 5,000 datagrams.
	badBuffer = 4 << 20
	// badRounds bounds the batches read at a time, to more than the buffer holds.
	badRounds = 256
)

// openBadSums opens the raw socket for local, in the namespace of the calling thread.
func openBadSums(local netip.AddrPort) (*badSums, error) {
	v4 := local.Addr().Is4()
	family := unix.AF_INET6
	if v4 {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		hint := ""
		if errors.Is(err, unix.EPERM) {
			hint = "; counting wrong checksums needs CAP_NET_RAW: grant it (AmbientCapabilities= in the unit)"
		}
		return nil, fmt.Errorf("raw socket: %w%s", err, hint)
	}
	b := &badSums{file: os.NewFile(uintptr(fd), "raw"), v4: v4, batch: newBatch(badKeep)}
	if err := b.setUp(fd, local); err != nil {
		b.file.Close()
		return nil, fmt.Errorf("raw socket: %w", err)
	}
	return b, nil
}

func (b *badSums) setUp(fd int, local netip.AddrPort) error {
	if err := attachFilter(fd, badSumFilter(b.v4, local.Port())); err != nil {
		return err
	}
	var sa unix.Sockaddr = &unix.SockaddrInet6{Addr: local.Addr().As16()}
	if b.v4 {
		sa = &unix.SockaddrInet4{Addr: local.Addr().As4()}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if err := setOptions(fd, b.v4, badBuffer); err != nil {
		return err
	}
	var err error
	if b.raw, err = b.file.SyscallConn(); err != nil {
		return err
	}
	// What came in before the filter was there is not ours.
	for {
		if _, err := b.batch.receive(fd); err != nil {
			break
		}
	}
	b.drops.raw = b.raw
	if _, err = b.drops.take(); err != nil {
		return err
	}
	b.total, err = openSumErrors(b.v4)
	return err
}

func attachFilter(fd int, program []bpf.Instruction) error {
	code, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(code))
	for i, c := range code {
		filter[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	return os.NewSyscallError("setsockopt SO_ATTACH_FILTER", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog))
}

// take hands over what is there, without waiting, as Datagrams with BadSum set. It gives how many
// more there were that the kernel dropped.
func (b *badSums) take(names *ifNames, fn func([]Datagram)) (lost uint64, err error) {
	total, err := b.total.take() // before the socket is read, or what comes in between would be lost ones
	if err != nil {
		return 0, err
	}
	drops, err := b.drops.take()
	if err != nil {
		return 0, err
	}
	read := uint64(0)
	for range badRounds {
		n, now := 0, time.Time{}
		err := b.raw.Control(func(fd uintptr) {
			n, _ = b.batch.receive(int(fd)) // an error is EAGAIN: there is nothing
			now = time.Now()
		})
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		read += uint64(n)
		batch := b.batch.decode(n, now, names)
		for i := range batch {
			b.strip(&batch[i])
		}
		fn(batch)
	}
	b.unread += int64(total) - int64(read)
	if b.unread > 0 {
		lost = min(drops, uint64(b.unread))
		b.unread = 0 // the rest came to other ports
	}
	return lost, nil
}

// strip takes the headers off: over IPv4 a raw socket gives the IP header too (raw(7)).
func (b *badSums) strip(d *Datagram) {
	d.BadSum = true
	p, length := d.Payload, d.Length
	if b.v4 && len(p) > 0 {
		header := min(int(p[0]&0xf)*4, len(p))
		p, length = p[header:], length-header
	}
	if len(p) < udpHeaderLen { // the filter lets none by
		d.Payload, d.Length = nil, 0
		return
	}
	d.From = netip.AddrPortFrom(d.From.Addr(), binary.BigEndian.Uint16(p))
	d.Payload, d.Length = p[udpHeaderLen:], length-udpHeaderLen
}

func (b *badSums) close() error { return errors.Join(b.file.Close(), b.total.close()) }
