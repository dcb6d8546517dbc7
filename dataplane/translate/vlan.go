package translate

import (
	"fmt"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// hiddenVLANs refuses an interface with VLAN interfaces on it whose tags the adapter takes off: the program would take a
// notification that belongs to one of them for the interface's own.
func hiddenVLANs(ifIndex int, name string) error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		if l.Type() == "vlan" && l.Attrs().ParentIndex == ifIndex {
			return keepsTags(name, l.Attrs().Name)
		}
	}
	return nil
}

// keepsTags is an error when the adapter of an interface takes the tags of a VLAN interface on it off, or may.
func keepsTags(name, vlan string) error {
	switch off, err := takesTagsOff(name); {
	case err != nil:
		return fmt.Errorf("%w: %s is on it, and whether rx-vlan-offload is on is not known: %w", ErrVLAN, vlan, err)
	case off:
		return fmt.Errorf("%w: %s is on it, and rx-vlan-offload is on: 'ethtool -K %s rxvlan off'", ErrVLAN, vlan, name)
	}
	return nil
}

// flagRxVLAN is ETH_FLAG_RXVLAN of linux/ethtool.h.
const flagRxVLAN = 1 << 8

// takesTagsOff asks whether rx-vlan-offload is on.
func takesTagsOff(name string) (bool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	value := struct{ cmd, data uint32 }{cmd: unix.ETHTOOL_GFLAGS}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // struct ifreq is a union
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&value)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return false, errno
	}
	return value.data&flagRxVLAN != 0, nil
}
