package relay

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// A link-local address means something on its interface only (RFC 4007). Package net keeps interfaces' names
// for up to a minute, so the kernel is asked here: an interface that was made anew has another index, and a
// connection must not be taken for one of the interface that had its index before.

// zoneIndex gives the index of a zone, as a zone.
func zoneIndex(zone string) (string, error) {
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return "", fmt.Errorf("interface %s: %w", zone, err)
	}
	return strconv.Itoa(i.Index), nil
}

// remoteOf is where a connection comes from; a link-local address has the interface's name as its zone.
func remoteOf(c *net.TCPConn) (netip.AddrPort, error) {
	from := addrPort(c.RemoteAddr())
	if from.Addr().Zone() == "" {
		return from, nil
	}
	index := 0
	raw, err := c.SyscallConn()
	if err == nil {
		err = onSocket(raw, func(fd int) error {
			sa, err := unix.Getpeername(fd)
			if six, ok := sa.(*unix.SockaddrInet6); ok {
				index = int(six.ZoneId)
			}
			return err
		})
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(from.Addr().WithZone(i.Name), from.Port()), nil
}
