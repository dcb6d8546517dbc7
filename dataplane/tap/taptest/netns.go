// Package taptest makes network namespaces with veth pairs for the tests and benchmarks of the dataplane, and
// puts crafted frames on them.
//
// The namespaces have no name: they go when the last file that refers to them is closed, so a test that is
// killed leaves nothing behind. It is no part of the product.
package taptest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ErrPermission: the process may not make namespaces.
var ErrPermission = errors.New("needs CAP_NET_ADMIN and CAP_SYS_ADMIN (run as root)")

// NS is a network namespace.
type NS struct{ fd netns.NsHandle }

// New makes a namespace with its loopback interface up. Errors wrap ErrPermission.
func New() (*NS, error) {
	type made struct {
		fd  netns.NsHandle
		err error
	}
	ch := make(chan made)
	go func() {
		// The thread is not unlocked: it ends with the goroutine, and no other one finds itself in here.
		runtime.LockOSThread()
		fd, err := newNamespace()
		ch <- made{fd, err}
	}()
	m := <-ch
	if m.err != nil {
		if errors.Is(m.err, unix.EPERM) {
			return nil, fmt.Errorf("taptest: new namespace: %w", ErrPermission)
		}
		return nil, fmt.Errorf("taptest: new namespace: %w", m.err)
	}
	return &NS{m.fd}, nil
}

func newNamespace() (netns.NsHandle, error) {
	fd, err := netns.New()
	if err != nil {
		return -1, err
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		_ = fd.Close()
		return -1, err
	}
	return fd, nil
}

// Close lets the namespace go, with its interfaces.
func (n *NS) Close() error { return n.fd.Close() }

// Do runs fn on a thread inside the namespace. Sockets that fn opens stay there. fn must not start
// goroutines that expect to be inside.
func (n *NS) Do(fn func() error) error {
	ch := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(n.fd); err != nil {
			ch <- fmt.Errorf("taptest: enter namespace: %w", err)
			return
		}
		ch <- fn()
	}()
	return <-ch
}

// Veth makes a pair of interfaces, both up, and returns when both carry frames. a and b may be the same.
func Veth(a *NS, nameA string, b *NS, nameB string) error {
	err := a.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = nameA
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(b.fd)})
	})
	if err != nil {
		return fmt.Errorf("taptest: veth %s-%s: %w", nameA, nameB, err)
	}
	if err := a.SetLink(nameA, true); err != nil {
		return err
	}
	if err := b.SetLink(nameB, true); err != nil {
		return err
	}
	if err := a.WaitUp(nameA); err != nil {
		return err
	}
	return b.WaitUp(nameB)
}

// upTimeout bounds the waits for the kernel's work queues, which may act only once a second.
const upTimeout = 10 * time.Second

// WaitUp returns when an interface that is set up carries frames. Until the kernel has noticed the carrier,
// which it does in a work queue, frames that are sent vanish without an error.
func (n *NS) WaitUp(name string) error {
	return n.Do(func() error {
		for deadline := time.Now().Add(upTimeout); ; time.Sleep(time.Millisecond) {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return fmt.Errorf("taptest: link %s: %w", name, err)
			}
			if l.Attrs().OperState == netlink.OperUp {
				return netlink.LinkSetUp(l) // waits for the lock under which the state changes
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("taptest: link %s: %v after %v", name, l.Attrs().OperState, upTimeout)
			}
		}
	})
}

// SetLink puts an interface up or down.
func (n *NS) SetLink(name string, up bool) error {
	return n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("taptest: link %s: %w", name, err)
		}
		if up {
			return netlink.LinkSetUp(l)
		}
		return netlink.LinkSetDown(l)
	})
}

// Delete deletes an interface.
func (n *NS) Delete(name string) error {
	return n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("taptest: link %s: %w", name, err)
		}
		return netlink.LinkDel(l)
	})
}

// MAC returns an interface's address.
func (n *NS) MAC(name string) (mac net.HardwareAddr, err error) {
	err = n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("taptest: link %s: %w", name, err)
		}
		mac = l.Attrs().HardwareAddr
		return nil
	})
	return mac, err
}

// Addr adds an address, without duplicate detection, and returns when the host takes packets to it: the
// kernel adds the local route of an IPv6 address from a work queue.
func (n *NS) Addr(name string, p netip.Prefix) error {
	return n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("taptest: link %s: %w", name, err)
		}
		a := &netlink.Addr{IPNet: ipNet(p), Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(l, a); err != nil {
			return fmt.Errorf("taptest: address %v on %s: %w", p, name, err)
		}
		for deadline := time.Now().Add(upTimeout); ; time.Sleep(time.Millisecond) {
			routes, err := netlink.RouteGet(p.Addr().AsSlice())
			if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
				return nil
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("taptest: address %v on %s: no local route after %v", p, name, upTimeout)
			}
		}
	})
}

// Route adds a route by an interface; via may be the zero Addr.
func (n *NS) Route(to netip.Prefix, name string, via netip.Addr) error {
	return n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("taptest: link %s: %w", name, err)
		}
		r := &netlink.Route{Dst: ipNet(to), LinkIndex: l.Attrs().Index}
		if via.IsValid() {
			r.Gw = via.AsSlice()
		}
		if err := netlink.RouteAdd(r); err != nil {
			return fmt.Errorf("taptest: route %v by %s: %w", to, name, err)
		}
		return nil
	})
}

// Neighbor adds a permanent neighbour, so that no address resolution is seen on the wire.
func (n *NS) Neighbor(name string, addr netip.Addr, mac net.HardwareAddr) error {
	return n.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("taptest: link %s: %w", name, err)
		}
		return netlink.NeighSet(&netlink.Neigh{
			LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: addr.AsSlice(), HardwareAddr: mac,
		})
	})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
