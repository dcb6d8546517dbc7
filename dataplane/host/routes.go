package host

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RouteSource chooses routes of the kernel. Sources compare with ==.
type RouteSource struct {
	// Interface is the outgoing interface. Without a table it means the connected routes: those that
	// the kernel made for the interface's addresses (ip-route(8): proto kernel).
	Interface string
	// Table is a routing table; 0 means the main one, and then Interface is needed. Its routes count
	// whoever made them.
	Table uint32
}

// String says what is chosen, as in "interface eth1" or "table 100".
func (s RouteSource) String() string {
	switch {
	case s.Table == 0:
		return "interface " + s.Interface
	case s.Interface == "":
		return fmt.Sprintf("table %d", s.Table)
	}
	return fmt.Sprintf("table %d, interface %s", s.Table, s.Interface)
}

func (s RouteSource) table() int {
	if s.Table == 0 {
		return unix.RT_TABLE_MAIN
	}
	return int(s.Table)
}

// RoutesConfig is what Routes needs to know.
type RoutesConfig struct {
	// Namespace is the path of a network namespace; empty means the process's own.
	Namespace string
	// OnChange is told the prefixes of every source, sorted, from the goroutine of Run: when any
	// differs from what was told before, and after each Follow. It must not change them. May be nil.
	OnChange func(map[RouteSource][]netip.Prefix)
}

// Routes follows which prefixes the kernel has routes to, by source.
//
// Only unicast routes that can carry a packet count: not blackhole and its like, and not those whose
// links are all down. Default routes, link-local, loopback and multicast prefixes never count.
type Routes struct {
	follower
	cfg RoutesConfig

	mu      sync.Mutex
	sources []RouteSource
	told    map[RouteSource][]netip.Prefix
	fresh   bool // Follow was called since the last round
}

// NewRoutes makes a follower of routes. It does nothing before Run.
func NewRoutes(cfg RoutesConfig, log logrus.FieldLogger) *Routes {
	r := &Routes{follower: newFollower(cfg.Namespace, log), cfg: cfg}
	r.follower.round = r.round
	r.follower.relevant = r.relevant
	return r
}

// Follow sets the sources: those not named are followed no longer. It doesn't wait.
func (r *Routes) Follow(sources ...RouteSource) {
	r.mu.Lock()
	r.sources, r.fresh = slices.Clone(sources), true
	r.mu.Unlock()
	r.poke()
}

// relevant leaves out the routes of tables that nobody follows, and where only connected routes of the
// main table are followed, those that routing daemons put there: there may be many, and they change.
func (r *Routes) relevant(m *syscall.NetlinkMessage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sources) == 0 {
		return false
	}
	if m.Header.Type != unix.RTM_NEWROUTE && m.Header.Type != unix.RTM_DELROUTE {
		return true
	}
	table, protocol, ok := routeTable(m.Data)
	return !ok || slices.ContainsFunc(r.sources, func(s RouteSource) bool {
		return s.table() == table && (s.Table != 0 || protocol == unix.RTPROT_KERNEL)
	})
}

// round asks for the routes of all sources and tells when they differ.
func (r *Routes) round(h *Host) error {
	r.rounds.Add(1)
	r.mu.Lock()
	sources := r.sources
	r.mu.Unlock()
	found := make(map[RouteSource][]netip.Prefix, len(sources))
	if len(sources) > 0 {
		if err := h.routes(sources, found); err != nil {
			return err
		}
	}
	r.mu.Lock()
	if !slices.Equal(sources, r.sources) { // Follow was called meanwhile, and has asked for another round
		r.mu.Unlock()
		return nil
	}
	tell := r.fresh || !maps.EqualFunc(found, r.told, slices.Equal[[]netip.Prefix])
	r.told, r.fresh = found, false
	r.mu.Unlock()
	if tell && r.cfg.OnChange != nil {
		r.cfg.OnChange(found)
	}
	return nil
}

// routes adds the prefixes of the sources. Each source has an entry, also when it has no route.
func (h *Host) routes(sources []RouteSource, found map[RouteSource][]netip.Prefix) error {
	names, err := h.names()
	if err != nil {
		return err
	}
	for _, s := range sources {
		found[s] = nil
	}
	err = h.nl.RouteListFilteredIter(netlink.FAMILY_ALL, &netlink.Route{}, netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
		prefix, ok := followable(&r)
		if !ok {
			return true
		}
		for _, s := range sources {
			if r.Table == s.table() && (s.Table != 0 || r.Protocol == unix.RTPROT_KERNEL) && leavesBy(&r, s.Interface, names) {
				found[s] = append(found[s], prefix)
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for s, list := range found {
		slices.SortFunc(list, netip.Prefix.Compare)
		found[s] = slices.Compact(list) // one prefix may have several routes, of different metrics
	}
	return nil
}

// followable gives the destination of a route, if it is one whose prefix may be followed.
func followable(r *netlink.Route) (netip.Prefix, bool) {
	if r.Type != unix.RTN_UNICAST || r.Dst == nil {
		return netip.Prefix{}, false
	}
	p, ok := prefixOf(r.Dst)
	a := p.Addr()
	return p, ok && p.Bits() > 0 && !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsLoopback()
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	if n.IP.To4() != nil && len(n.Mask) == net.IPv4len {
		a = a.Unmap()
	}
	p := netip.PrefixFrom(a, bits).Masked()
	return p, ok && p.IsValid()
}

// leavesBy reports whether one of the route's next hops that are up goes by the interface; by any, when
// the name is empty.
func leavesBy(r *netlink.Route, name string, names map[int]string) bool {
	hops := r.MultiPath
	if len(hops) == 0 {
		hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Flags: r.Flags}}
	}
	return slices.ContainsFunc(hops, func(hop *netlink.NexthopInfo) bool {
		return hop.Flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) == 0 && (name == "" || names[hop.LinkIndex] == name)
	})
}

// routeTable reads the table and the protocol of a route message: rtmsg, then attributes (rtnetlink(7)).
func routeTable(b []byte) (table int, protocol uint8, ok bool) {
	if len(b) < unix.SizeofRtMsg {
		return 0, 0, false
	}
	table, protocol = int(b[4]), b[5]
	for b = b[unix.SizeofRtMsg:]; len(b) >= unix.SizeofRtAttr; {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			return 0, 0, false
		}
		if binary.NativeEndian.Uint16(b[2:]) == unix.RTA_TABLE && length == unix.SizeofRtAttr+4 {
			table = int(binary.NativeEndian.Uint32(b[unix.SizeofRtAttr:])) // of more than 255, rtmsg has no room
		}
		padded := (length + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1)
		b = b[min(padded, len(b)):]
	}
	return table, protocol, true
}
