package translator

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pncd/proxyagent/message"
)

const (
	// keep is how much of a payload is kept: enough to hold any format, and to be aligned.
	keep = (message.MaxLen + 7) &^ 7
	// controlLen holds the control messages that setOptions asks for, with room to spare.
	controlLen = 128
)

// batch holds the buffers of one recvmmsg(2). All of them are allocated once.
type batch struct {
	headers   [MaxBatch]unix.Mmsghdr
	iovecs    [MaxBatch]unix.Iovec
	names     [MaxBatch]unix.RawSockaddrInet6 // holds a RawSockaddrInet4 as well
	controls  [MaxBatch][controlLen]byte
	payloads  [MaxBatch][]byte
	datagrams [MaxBatch]Datagram
}

// newBatch keeps at most size octets of each datagram.
func newBatch(size int) *batch {
	b := new(batch)
	for i := range b.headers {
		b.payloads[i] = make([]byte, size)
		b.iovecs[i].Base = &b.payloads[i][0]
		b.iovecs[i].SetLen(size)
		h := &b.headers[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Iov = &b.iovecs[i]
		h.SetIovlen(1)
		h.Control = &b.controls[i][0]
	}
	return b
}

// receive reads what is there, at most MaxBatch datagrams, without waiting. The error is EAGAIN when
// there is nothing. Because it does not wait, Go's scheduler is not told: it would give this thread's place to
// another one after 20 us, which a full batch takes, and both then cost more than the call.
func (b *batch) receive(fd int) (int, error) {
	for i := range b.headers {
		h := &b.headers[i].Hdr
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(controlLen)
	}
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd),
			uintptr(unsafe.Pointer(&b.headers[0])), MaxBatch, unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// decode makes Datagrams of the first n messages.
func (b *batch) decode(n int, now time.Time, names *ifNames) []Datagram {
	for i := range n {
		h, d := &b.headers[i], &b.datagrams[i]
		length := int(h.Len) // the real one, because of MSG_TRUNC
		*d = Datagram{
			Payload: b.payloads[i][:min(length, len(b.payloads[i]))],
			Length:  length,
			From:    source(&b.names[i]),
			TTL:     UnknownTTL,
			At:      now,
			ReadAt:  now,
		}
		d.control(b.controls[i][:min(int(h.Hdr.Controllen), controlLen)])
		d.IfName = names.name(d.IfIndex, now)
	}
	return b.datagrams[:n]
}

func source(sa *unix.RawSockaddrInet6) netip.AddrPort {
	if sa.Family == unix.AF_INET {
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(sa4.Addr), ntohs(sa4.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), ntohs(sa.Port))
}

// ntohs reads a port that the kernel left in network order.
func ntohs(v uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], v)
	return binary.BigEndian.Uint16(b[:])
}

// control reads the control messages (cmsg(3)). What is cut or unknown is left out.
func (d *Datagram) control(b []byte) {
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		length := int(h.Len)
		if length < unix.SizeofCmsghdr || length > len(b) {
			return
		}
		d.message(h.Level, h.Type, b[unix.CmsgLen(0):length])
		next := unix.CmsgSpace(length - unix.CmsgLen(0))
		if next > len(b) {
			return
		}
		b = b[next:]
	}
}

func (d *Datagram) message(level, kind int32, data []byte) {
	word := func(offset int) int32 { return int32(binary.NativeEndian.Uint32(data[offset:])) }
	switch {
	case level == unix.IPPROTO_IP && kind == unix.IP_TTL && len(data) >= 4,
		level == unix.IPPROTO_IPV6 && kind == unix.IPV6_HOPLIMIT && len(data) >= 4:
		d.TTL = int(word(0))
	case level == unix.IPPROTO_IP && kind == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		// struct in_pktinfo: the interface, our address for a reply, the destination.
		d.IfIndex = int(word(0))
		d.To = netip.AddrFrom4([4]byte(data[8:]))
	case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		// struct in6_pktinfo: the destination, the interface.
		d.To = netip.AddrFrom16([16]byte(data))
		d.IfIndex = int(word(16))
	case level == unix.SOL_SOCKET && kind == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
		ts := (*unix.Timespec)(unsafe.Pointer(&data[0]))
		d.At = time.Unix(ts.Unix())
	}
}
