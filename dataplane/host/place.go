package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Place is where a VPN is on this host: a VRF device, a network namespace, or a routing table to which a firewall
// mark leads.
type Place struct {
	Device    string // VRF device
	Namespace string // as NamespacePath reads it
	Table     uint32 // with Mark
	Mark      uint32
}

// String names the place as the configuration does.
func (p Place) String() string {
	switch {
	case p.Device != "":
		return "device " + p.Device
	case p.Namespace != "":
		return "namespace " + p.Namespace
	}
	return fmt.Sprintf("table %d with mark %#x", p.Table, p.Mark)
}

// ErrOpen is wrapped by the error for a place that packets could leave: what its table has no route for would go by
// the next one, to somebody else with the same address.
var ErrOpen = errors.New("the VPN is not closed")

// look is what a place is at one time.
type look struct {
	id    string // of the namespace or device
	table uint32 // the place's routing table; 0 for a namespace
	local map[netip.Addr]struct{}
}

// look reads the place; h is in its namespace. families are those of its senders (unix.AF_INET, AF_INET6). The
// error says what keeps the place from being one.
func (p Place) look(h *Host, families []int) (look, error) {
	var l look
	own := func(netlink.Addr) bool { return true }
	table := p.Table
	switch {
	case p.Namespace != "":
		id, err := NamespaceID(p.Namespace)
		if err != nil {
			return l, err
		}
		l.id = id
	case p.Device != "":
		vrf, err := h.vrf(p.Device)
		if err != nil {
			return l, err
		}
		l.id, table = fmt.Sprint(vrf.Attrs().Index), vrf.Table
		if own, err = h.ofMaster(vrf.Attrs().Index); err != nil {
			return l, err
		}
	}
	l.table = table
	if p.Namespace == "" {
		for _, f := range families {
			if err := p.closed(h, f, table); err != nil {
				return l, err
			}
		}
	}
	addrs, err := dump(func() ([]netlink.Addr, error) { return h.nl.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return l, fmt.Errorf("list addresses: %w", err)
	}
	l.local = make(map[netip.Addr]struct{}, len(addrs))
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && own(a) {
			l.local[ip.Unmap()] = struct{}{}
		}
	}
	return l, nil
}

// vrf finds a VRF device that is up.
func (h *Host) vrf(name string) (*netlink.Vrf, error) {
	l, err := h.nl.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, h.InterfaceExists(name)
	}
	if err != nil {
		return nil, fmt.Errorf("look up the device %s: %w", name, err)
	}
	vrf, ok := l.(*netlink.Vrf)
	if !ok {
		return nil, fmt.Errorf("device %s is of type %s; it must be a VRF ('ip link add %s type vrf table N')", name, l.Type(), name)
	}
	if l.Attrs().Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("device %s is down", name)
	}
	return vrf, nil
}

// ofMaster tells the addresses of a device and of the interfaces that it is the master of.
func (h *Host) ofMaster(index int) (func(netlink.Addr) bool, error) {
	all, err := dump(h.nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	members := map[int]bool{index: true}
	for _, l := range all {
		if l.Attrs().MasterIndex == index {
			members[l.Attrs().Index] = true
		}
	}
	return func(a netlink.Addr) bool { return members[a.LinkIndex] }, nil
}

var familyNames = map[int]string{unix.AF_INET: "IPv4", unix.AF_INET6: "IPv6"}

// closed says why packets with the place's mark, or from its device, could leave its table.
func (p Place) closed(h *Host, family int, table uint32) error {
	if p.Mark != 0 {
		if err := p.leads(h, family); err != nil {
			return err
		}
	}
	routes, err := dump(func() ([]netlink.Route, error) {
		return h.nl.RouteListFiltered(family, &netlink.Route{Table: int(table)}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return fmt.Errorf("list the routes of table %d: %w", table, err)
	}
	if slices.ContainsFunc(routes, func(r netlink.Route) bool { return isDefault(&r) && r.Type != unix.RTN_THROW }) {
		return nil
	}
	v := ""
	if family == unix.AF_INET6 {
		v = "-6 "
	}
	return fmt.Errorf("%w: table %d has no %s default route, so what it has no route for would leave by another table; where the VPN has none, add 'ip %sroute add unreachable default metric 4278198272 table %d'",
		ErrOpen, table, familyNames[family], v, table)
}

func isDefault(r *netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	bits, _ := r.Dst.Mask.Size()
	return bits == 0
}

// leads checks that of the rules that a marked packet of this host meets, the first after that of this host's own
// addresses leads to the table.
func (p Place) leads(h *Host, family int) error {
	rules, err := dump(func() ([]netlink.Rule, error) { return h.nl.RuleList(family) })
	if err != nil {
		return fmt.Errorf("list the routing rules: %w", err)
	}
	slices.SortStableFunc(rules, func(a, b netlink.Rule) int { return cmp.Compare(a.Priority, b.Priority) })
	for i := range rules {
		r := &rules[i]
		switch {
		case r.Table == unix.RT_TABLE_LOCAL, r.Table == 0 && r.Goto < 0: // the latter for VRF devices, or ends the look-up
			continue
		case r.IifName != "" && r.IifName != "lo", r.OifName != "", !r.Invert && !marks(r, p.Mark):
			continue
		case uint32(r.Table) == p.Table && r.Mark != 0 && plain(r):
			return nil
		}
		if !slices.ContainsFunc(rules[i:], func(r netlink.Rule) bool { return uint32(r.Table) == p.Table && r.Mark != 0 && marks(&r, p.Mark) }) {
			break // there is none to give a lower priority
		}
		return fmt.Errorf("%w: the %s rule with priority %d (%s) comes before one from mark %#x to table %d; give that a lower one",
			ErrOpen, familyNames[family], r.Priority, strings.TrimSpace(r.String()), p.Mark, p.Table)
	}
	v := ""
	if family == unix.AF_INET6 {
		v = "-6 "
	}
	return fmt.Errorf("%w: no %s rule leads from mark %#x to table %d; add 'ip %srule add fwmark %#x lookup %d'", ErrOpen, familyNames[family], p.Mark, p.Table, v, p.Mark, p.Table)
}

// marks says whether a rule is for packets with a mark.
func marks(r *netlink.Rule, mark uint32) bool {
	mask := ^uint32(0)
	if r.Mask != nil {
		mask = *r.Mask
	} else if r.Mark == 0 {
		return true // for all
	}
	return mark&mask == r.Mark
}

// plain says whether a rule asks for nothing but the mark.
func plain(r *netlink.Rule) bool {
	return !r.Invert && r.Src == nil && r.Dst == nil && r.IifName == "" && r.Tos == 0 && r.TunID == 0 && r.Goto < 0 &&
		r.SuppressPrefixlen < 0 && r.SuppressIfgroup < 0 && r.IPProto == 0 && r.Dport == nil && r.Sport == nil && r.UIDRange == nil
}
