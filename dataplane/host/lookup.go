package host

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Status says whether and how the kernel would reach an address. Statuses compare with ==.
type Status struct {
	Reachable  bool       // a route leads there that counts
	Self       bool       // the address is one of this host's own
	ViaDefault bool       // the route is 0.0.0.0/0 or ::/0
	Interface  string     // the outgoing interface; of several, the first that works
	NextHop    netip.Addr // the gateway; invalid when the address is on the link
	Detail     string     // why it is not reachable, in words
}

// lookup asks the kernel for the route to the address: the entry of its table (RTM_F_FIB_MATCH), so
// that the prefix shows, by the rules as a packet of this host would meet them. names maps interface
// indexes to names and may be nil.
func (h *Host) lookup(addr netip.Addr, names map[int]string) (Status, error) {
	if !addr.IsValid() {
		return Status{}, errors.New("look up a route: the address is missing")
	}
	addr = addr.Unmap()
	routes, err := h.nl.RouteGetWithOptions(addr.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true})
	switch {
	case errors.Is(err, unix.ENETUNREACH):
		return Status{Detail: "no route"}, nil
	// What the kernel answers for unreachable, prohibit and blackhole routes (ip-route(8)); to some
	// of its versions they are all the first.
	case errors.Is(err, unix.EHOSTUNREACH):
		return Status{Detail: "no route, or an unreachable, prohibit or blackhole one"}, nil
	case errors.Is(err, unix.EACCES):
		return Status{Detail: "prohibit route"}, nil
	case errors.Is(err, unix.EINVAL):
		return Status{Detail: "blackhole route"}, nil
	case err != nil:
		return Status{}, fmt.Errorf("look up the route to %s: %w", addr, err)
	case len(routes) == 0:
		return Status{Detail: "no route"}, nil
	}
	return judge(&routes[0], names), nil
}

// Route types (rtnetlink(7)) that can't carry a packet to one other host.
var unusable = map[int]string{
	unix.RTN_BROADCAST:   "broadcast address",
	unix.RTN_ANYCAST:     "anycast address of this host",
	unix.RTN_MULTICAST:   "multicast address",
	unix.RTN_BLACKHOLE:   "blackhole route",
	unix.RTN_UNREACHABLE: "unreachable route",
	unix.RTN_PROHIBIT:    "prohibit route",
	unix.RTN_THROW:       "throw route",
}

// judge says what a table entry means.
func judge(r *netlink.Route, names map[int]string) Status {
	if r.Type == unix.RTN_LOCAL {
		return Status{Reachable: true, Self: true, Interface: names[r.LinkIndex]}
	}
	if why := unusable[r.Type]; why != "" {
		return Status{Detail: why}
	}
	if r.Type != unix.RTN_UNICAST {
		return Status{Detail: fmt.Sprintf("route of type %d", r.Type)}
	}
	var s Status
	if r.Dst != nil {
		bits, _ := r.Dst.Mask.Size()
		s.ViaDefault = bits == 0
	}
	hops := r.MultiPath
	if len(hops) == 0 {
		hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Flags: r.Flags, Gw: r.Gw, Via: r.Via}}
	}
	down := ""
	for _, hop := range hops {
		name := names[hop.LinkIndex]
		if hop.Flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0 {
			down = name
			continue
		}
		s.Reachable, s.Interface, s.NextHop = true, name, gateway(hop)
		return s
	}
	s.Detail = fmt.Sprintf("the link %s is down", down)
	return s
}

func gateway(hop *netlink.NexthopInfo) netip.Addr {
	ip := hop.Gw
	if via, ok := hop.Via.(*netlink.Via); ok && len(ip) == 0 {
		ip = via.Addr
	}
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
