package translator

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Loss is what the kernel dropped of the datagrams for one socket, without a trace but the count.
type Loss struct {
	Overflow    uint64 // the receive queue was full
	BadChecksum uint64 // the UDP checksum was wrong, and the queue of those was full
}

// dropCounter tells how many packets a socket dropped between two looks: the kernel's sk_drops. That
// is what SO_RXQ_OVFL reports with the next datagram; SO_MEMINFO reads it at any time, so that drops
// show without a next datagram.
type dropCounter struct {
	raw  syscall.RawConn
	last uint32
}

// take gives the drops since the last call.
func (c *dropCounter) take() (uint64, error) {
	drops, err := socketDrops(c.raw)
	if err != nil {
		return 0, err
	}
	n := drops - c.last // 32 bits in the kernel: wraps
	c.last = drops
	return uint64(n), nil
}

// socketDrops reads the socket's own counter (SO_MEMINFO, Linux 4.12).
func socketDrops(raw syscall.RawConn) (uint32, error) {
	var info [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(info))
	var errno syscall.Errno
	err := raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	if err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, os.NewSyscallError("getsockopt SO_MEMINFO", errno)
	}
	if size < (unix.SK_MEMINFO_DROPS+1)*4 {
		return 0, fmt.Errorf("getsockopt SO_MEMINFO: %d octets, without the drops (needs Linux 4.12)", size)
	}
	return info[unix.SK_MEMINFO_DROPS], nil
}
