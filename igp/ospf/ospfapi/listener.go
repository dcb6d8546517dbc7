package ospfapi

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// listeners gives the inodes of the sockets of this network namespace that listen for connections to an IPv4
// address and port: they tell one process's socket from another's.
func listeners(to netip.AddrPort) ([]uint64, error) {
	f, err := os.Open("/proc/thread-self/net/tcp")
	if err != nil {
		return nil, fmt.Errorf("ospf api: read who listens: %w", err)
	}
	defer func() { _ = f.Close() }()
	return parseListeners(f, to)
}

// Fields of a line of /proc/net/tcp (proc(5)).
const (
	tcpLocal = 1
	tcpState = 3
	tcpInode = 9
	tcpLast  = 10

	tcpListens = "0A"
)

func parseListeners(r io.Reader, to netip.AddrPort) (inodes []uint64, err error) {
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < tcpLast || f[tcpState] != tcpListens {
			continue
		}
		at, err := parseTCPAddress(f[tcpLocal])
		if err != nil {
			return nil, err
		}
		if at.Port() != to.Port() || at.Addr() != to.Addr() && !at.Addr().IsUnspecified() {
			continue
		}
		inode, err := strconv.ParseUint(f[tcpInode], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("ospf api: /proc/net/tcp: inode: %w", err)
		}
		inodes = append(inodes, inode)
	}
	return inodes, nil
}

// parseTCPAddress reads an address as in 0100007F:0A2F: the address is a number of this machine's byte order.
func parseTCPAddress(s string) (netip.AddrPort, error) {
	addr, port, _ := strings.Cut(s, ":")
	a, aerr := hex.DecodeString(addr)
	p, perr := strconv.ParseUint(port, 16, 16)
	if aerr != nil || perr != nil || len(a) != 4 {
		return netip.AddrPort{}, fmt.Errorf("ospf api: /proc/net/tcp: %q is no address", s)
	}
	var native [4]byte
	binary.NativeEndian.PutUint32(native[:], binary.BigEndian.Uint32(a))
	return netip.AddrPortFrom(netip.AddrFrom4(native), uint16(p)), nil
}
