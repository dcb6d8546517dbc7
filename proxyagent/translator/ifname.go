package translator

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nameLife is how long an interface's name is believed: renaming is rare, and an index is not given
// to another interface soon.
const nameLife = time.Second

// maxNames bounds the names remembered; interfaces come and go, indices only rise.
const maxNames = 4096

// ifNames gives the names of interfaces in the namespace of a socket, whichever thread asks.
type ifNames struct {
	raw   syscall.RawConn
	known map[int]ifName
}

type ifName struct {
	name  string
	until time.Time
}

// name gives the interface's name; empty when there is none with that index.
func (n *ifNames) name(index int, now time.Time) string {
	if index == 0 {
		return ""
	}
	if e, ok := n.known[index]; ok && now.Before(e.until) {
		return e.name
	}
	if n.known == nil || len(n.known) >= maxNames {
		n.known = make(map[int]ifName)
	}
	e := ifName{name: n.ask(index), until: now.Add(nameLife)}
	n.known[index] = e
	return e.name
}

// ask asks the kernel (SIOCGIFNAME, netdevice(7)).
func (n *ifNames) ask(index int) string {
	req, err := unix.NewIfreq("")
	if err != nil {
		return ""
	}
	req.SetUint32(uint32(index))
	var ioctlErr error
	if err := n.raw.Control(func(fd uintptr) { ioctlErr = unix.IoctlIfreq(int(fd), unix.SIOCGIFNAME, req) }); err != nil || ioctlErr != nil {
		return ""
	}
	return req.Name()
}
