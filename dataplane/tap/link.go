package tap

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// downInterval is how often a reader looks whether an interface that went down is gone or up again. The
// kernel reports an error only for the first of down and unregistered.
const downInterval = 100 * time.Millisecond

// pollTimeout is the timeout of poll(2) in milliseconds, cut when the link must be looked at.
func (r *Ring) pollTimeout(ms int) int {
	const look = int(downInterval / time.Millisecond)
	if r.down && (ms < 0 || ms > look) {
		return look
	}
	return ms
}

// checkLink reads what poll(2) said about the socket. It returns ErrInterfaceGone, or another reason not to
// go on; an interface that is only down is waited for.
func (r *Ring) checkLink(revents int16) error {
	if revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
		code, err := unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil {
			return fmt.Errorf("socket error: %w", err)
		}
		switch errno := unix.Errno(code); errno {
		case 0:
		case unix.ENETDOWN:
			r.down = true
			r.mu.Lock()
			r.stats.Downs++
			r.mu.Unlock()
		default:
			return fmt.Errorf("socket error: %w", errno)
		}
	}
	if !r.down {
		return nil
	}
	up, err := r.linkUp()
	r.down = !up
	return err
}

// linkUp reports whether the interface is up, and ErrInterfaceGone when the socket has lost it.
func (r *Ring) linkUp() (bool, error) {
	sa, err := unix.Getsockname(r.fd)
	if err != nil {
		return false, fmt.Errorf("socket name: %w", err)
	}
	if ll, ok := sa.(*unix.SockaddrLinklayer); !ok || ll.Ifindex != r.ifIndex {
		return false, fmt.Errorf("%w: it was deleted or moved to another namespace", ErrInterfaceGone)
	}
	req, err := unix.NewIfreq("lo") // the name is overwritten: it may have changed
	if err != nil {
		return false, err
	}
	req.SetUint32(uint32(r.ifIndex))
	if err := unix.IoctlIfreq(r.fd, unix.SIOCGIFNAME, req); err != nil {
		return false, nil // about to be unregistered: the next look says so
	}
	if err := unix.IoctlIfreq(r.fd, unix.SIOCGIFFLAGS, req); err != nil {
		return false, nil
	}
	return req.Uint16()&unix.IFF_UP != 0, nil
}

// ifIndex looks an interface up in the socket's own namespace.
func ifIndex(fd int, name string) (int, error) {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return 0, fmt.Errorf("interface name: %w", err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req); err != nil {
		if errors.Is(err, unix.ENODEV) {
			return 0, fmt.Errorf("%w: create it, or correct its name in the configuration", ErrNoInterface)
		}
		return 0, fmt.Errorf("look up the interface: %w", err)
	}
	return int(req.Uint32()), nil
}
