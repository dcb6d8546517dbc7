package translator

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A UDP socket of Linux never hands over a datagram whose checksum is wrong. It drops it, and counts
// it in the same counter of the socket as one for which the receive queue was full (sk_drops, which
// SO_RXQ_OVFL reports with the next datagram, and SO_MEMINFO at any time: the latter is used here, so
// that drops show without a next datagram). The namespace's counter InCsumErrors counts wrong
// checksums alone, but those of all of its UDP sockets.
//
// So the sum of both losses is exact. Of the socket's drops between two looks, as many as InCsumErrors
// grew by count as bad-checksum, the rest as receive-overflow: exact too, unless the queue was full
// and another UDP socket of the namespace got a wrong checksum between the same two looks.
//
// Over IPv6 the kernel refuses a datagram without a checksum (RFC 8200 section 8.1) before it looks
// for a socket; such datagrams reach no socket and are not counted here.

// Loss is what the kernel dropped of the datagrams for one socket.
type Loss struct {
	Overflow    uint64 // the receive queue was full
	BadChecksum uint64 // the UDP checksum was wrong
}

// lossCounter tells the losses between two looks.
type lossCounter struct {
	raw      syscall.RawConn
	snmp     *os.File // of the namespace that the socket is in
	prefix   string   // of the line with InCsumErrors
	column   string
	drops    uint32
	checksum uint64
	// spare holds wrong checksums of the last interval that no drop was seen for yet: the kernel
	// counts the checksum first.
	spare uint64
	buf   []byte
}

func newLossCounter(raw syscall.RawConn, v4 bool) (*lossCounter, error) {
	c := &lossCounter{raw: raw, prefix: "Udp6InCsumErrors", buf: make([]byte, 32<<10)}
	path := "/proc/thread-self/net/snmp6"
	if v4 {
		path, c.prefix, c.column = "/proc/thread-self/net/snmp", "Udp:", "InCsumErrors"
	}
	var err error
	if c.snmp, err = os.Open(path); err != nil {
		return nil, fmt.Errorf("counter of wrong checksums: %w", err)
	}
	if c.drops, err = c.socketDrops(); err == nil {
		c.checksum, err = c.wrongChecksums()
	}
	if err != nil {
		c.snmp.Close()
		return nil, err
	}
	return c, nil
}

// take gives the losses since the last call.
func (c *lossCounter) take() (Loss, error) {
	drops, err := c.socketDrops()
	if err != nil {
		return Loss{}, err
	}
	checksum, err := c.wrongChecksums() // after the drops: see spare
	if err != nil {
		return Loss{}, err
	}
	newDrops := uint64(drops - c.drops) // 32 bits in the kernel: wraps
	c.drops = drops
	return c.split(newDrops, checksum), nil
}

func (c *lossCounter) split(drops, checksum uint64) Loss {
	wrong := checksum - c.checksum
	c.checksum = checksum
	bad := min(drops, wrong+c.spare)
	c.spare = min(wrong, wrong+c.spare-bad)
	return Loss{Overflow: drops - bad, BadChecksum: bad}
}

// socketDrops reads the socket's own counter (SO_MEMINFO, socket(7)).
func (c *lossCounter) socketDrops() (uint32, error) {
	var info [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(info))
	var errno syscall.Errno
	err := c.raw.Control(func(fd uintptr) {
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

func (c *lossCounter) wrongChecksums() (uint64, error) {
	n, err := c.snmp.ReadAt(c.buf, 0)
	if err != nil && err != io.EOF {
		return 0, fmt.Errorf("counter of wrong checksums: %w", err)
	}
	v, err := parseCounter(c.buf[:n], c.prefix, c.column)
	if err != nil {
		return 0, fmt.Errorf("counter of wrong checksums: %s: %w", c.snmp.Name(), err)
	}
	return v, nil
}

// parseCounter reads one counter from /proc/net/snmp, where a line of names is followed by one of
// values, or, with an empty column, from /proc/net/snmp6, where each line has one name and value.
func parseCounter(b []byte, prefix, column string) (uint64, error) {
	var names []string
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		switch {
		case len(f) < 2 || f[0] != prefix:
		case column == "":
			return strconv.ParseUint(f[1], 10, 64)
		case names == nil:
			names = f
		default:
			for i := range min(len(names), len(f)) {
				if names[i] == column {
					return strconv.ParseUint(f[i], 10, 64)
				}
			}
		}
	}
	return 0, fmt.Errorf("no %s %s", prefix, column)
}

func (c *lossCounter) close() { c.snmp.Close() }
