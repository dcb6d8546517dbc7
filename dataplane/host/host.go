package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrNoInterface is wrapped by the error for an interface that does not exist.
var ErrNoInterface = errors.New("no such interface")

// Link is a network interface.
type Link struct {
	Index   int
	Name    string
	Kind    string // as ip-link(8) names it: veth, bridge, vrf; device for physical ones
	MTU     int
	MAC     net.HardwareAddr // nil for interfaces without one
	Up      bool             // administratively
	Carrier bool             // the lower layer can carry packets
}

// Address is an address of an interface with its prefix length.
type Address struct {
	Interface string
	Prefix    netip.Prefix // not masked
}

// Host reads from one network namespace. Its methods may be called from several goroutines.
type Host struct {
	nl *netlink.Handle
}

// Open opens a network namespace by the path of its file, as in /run/netns/blue; the empty path
// means the one that the caller's thread is in. Errors wrap ErrNamespacePermission for a process that may not enter it.
func Open(namespace string) (*Host, error) {
	h := &Host{}
	err := Inside(namespace, func() (err error) {
		if h.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			err = fmt.Errorf("open rtnetlink: %w", err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Close closes the host. It may be called more than once.
func (h *Host) Close() { h.nl.Close() }

// Links lists the interfaces, sorted by name.
func (h *Host) Links() ([]Link, error) {
	all, err := dump(h.nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	links := make([]Link, 0, len(all))
	for _, l := range all {
		a := l.Attrs()
		links = append(links, Link{
			Index: a.Index, Name: a.Name, Kind: l.Type(), MTU: a.MTU, MAC: a.HardwareAddr,
			Up:      a.Flags&net.FlagUp != 0,
			Carrier: a.RawFlags&unix.IFF_LOWER_UP != 0,
		})
	}
	slices.SortFunc(links, func(a, b Link) int { return strings.Compare(a.Name, b.Name) })
	return links, nil
}

// Addresses lists the addresses of all interfaces, sorted by interface, then address.
func (h *Host) Addresses() ([]Address, error) {
	names, err := h.names()
	if err != nil {
		return nil, err
	}
	all, err := dump(func() ([]netlink.Addr, error) { return h.nl.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var addrs []Address
	for i := range all {
		if p := addrPrefix(&all[i]); p.IsValid() {
			addrs = append(addrs, Address{Interface: names[all[i].LinkIndex], Prefix: p})
		}
	}
	slices.SortFunc(addrs, func(a, b Address) int {
		if c := strings.Compare(a.Interface, b.Interface); c != 0 {
			return c
		}
		return a.Prefix.Compare(b.Prefix)
	})
	return addrs, nil
}

// names maps interface indexes to names.
func (h *Host) names() (map[int]string, error) {
	links, err := h.Links()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Index] = l.Name
	}
	return names, nil
}

// InterfaceExists gives nil, or an error that wraps ErrNoInterface and names the interfaces that do
// exist.
func (h *Host) InterfaceExists(name string) error {
	links, err := h.Links()
	if err != nil {
		return err
	}
	var have []string
	for _, l := range links {
		if l.Name == name {
			return nil
		}
		have = append(have, l.Name)
	}
	return noInterface(name, have)
}

func noInterface(name string, have []string) error {
	const most = 20
	more := ""
	if len(have) > most {
		more = fmt.Sprintf(" and %d more, see 'ip link'", len(have)-most)
		have = have[:most]
	}
	return fmt.Errorf("%w: %q; create it or name one that exists: %s%s", ErrNoInterface, name, strings.Join(have, ", "), more)
}

// IsLocal reports whether the kernel takes packets to the address for its own.
func (h *Host) IsLocal(addr netip.Addr) (bool, error) {
	s, err := h.lookup(addr, nil)
	return s.Self, err
}

// dump runs a netlink dump again when the kernel says that it changed meanwhile.
func dump[T any](list func() ([]T, error)) ([]T, error) {
	var all []T
	var err error
	for range 10 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, err
}

// once runs a function on the process's own namespace.
func once[T any](f func(*Host) (T, error)) (T, error) {
	h, err := Open("")
	if err != nil {
		var zero T
		return zero, err
	}
	defer h.Close()
	return f(h)
}

// Links lists the interfaces of the process's network namespace, sorted by name.
func Links() ([]Link, error) { return once((*Host).Links) }

// Addresses lists the addresses in the process's network namespace.
func Addresses() ([]Address, error) { return once((*Host).Addresses) }

// InterfaceExists gives nil, or an error that says which interfaces exist in the process's network
// namespace.
func InterfaceExists(name string) error {
	_, err := once(func(h *Host) (struct{}, error) { return struct{}{}, h.InterfaceExists(name) })
	return err
}

// IsLocal reports whether the address is one of this host's own, in the process's network namespace.
func IsLocal(addr netip.Addr) (bool, error) {
	return once(func(h *Host) (bool, error) { return h.IsLocal(addr) })
}
