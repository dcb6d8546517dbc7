package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// hold is the right to something of a network namespace that two pncds would take from each other: the name of an abstract
// socket, which the kernel keeps for each network namespace and frees when the process ends, however it does.
type hold struct {
	net.Listener
	done chan struct{}
}

var errHeld = errors.New("another pncd of this network namespace has it")

// takeHold takes the right in the network namespace of the calling thread. The error wraps errHeld where another pncd has it.
// Nil without an error: the name is taken, by a user who is no pncd's.
func takeHold(what string) (*hold, error) {
	l, err := net.Listen("unix", "@pncd/"+what)
	if errors.Is(err, unix.EADDRINUSE) {
		if held(what) {
			err = fmt.Errorf("%s: %w", what, errHeld)
		} else {
			err = nil
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	h := &hold{l, make(chan struct{})}
	go func() { // who asks is not left waiting
		defer close(h.done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return h, nil
}

// held says whether a pncd has the right: anybody may take a name, and must not keep pncd from what it does.
func held(what string) bool {
	c, err := net.Dial("unix", "@pncd/"+what)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	trusted := false
	if err := raw.Control(func(fd uintptr) {
		who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		trusted = err == nil && (who.Uid == 0 || int(who.Uid) == os.Geteuid())
	}); err != nil {
		return false
	}
	return trusted
}

// release gives the right back.
func (h *hold) release() {
	if h != nil {
		_ = h.Close() // nothing was written
		<-h.done
	}
}
