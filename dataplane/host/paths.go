package host

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gaissmai/bart"
	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Defaults and bounds of PathsConfig.
const (
	DefaultMaxPaths = 16384
	// probeAgain is how long the kernel is trusted to learn whether a stale neighbour is there; it waits
	// delay_first_probe_time, 5 s, before it asks.
	probeAgain = 15 * time.Second
	// whenFull is how long no more destinations are taken once Max of them are in use.
	whenFull = time.Second
)

// PathsConfig is what Paths needs to know.
type PathsConfig struct {
	// Namespace is the path of a network namespace; empty means the process's own.
	Namespace string
	// Max bounds the destinations that are followed; those not asked for lately make room. 0 means DefaultMaxPaths.
	Max int
}

// Paths follows by which interface and to which MAC address the kernel would send packets to some destinations,
// for who sends frames by a packet socket. It says nothing where a packet socket would do something else than
// the kernel: where the way isn't one route of an Ethernet interface to one neighbour that the kernel knows, where
// routes encapsulate, and where there are policy rules beside those of every host.
//
// A neighbour whose state is STALE (RFC 4861 section 7.3.2) may be gone. Path answers once that there is no
// path, so that the packet goes by the kernel's own output, which then asks the neighbour; what it finds arrives
// here as a notification.
type Paths struct {
	follower
	cfg   PathsConfig
	table atomic.Pointer[map[netip.Addr]*path] // replaced, never modified

	routesDirty atomic.Bool
	fullUntil   atomic.Int64              // Unix nanoseconds: no destination is taken before
	watched     atomic.Pointer[bart.Lite] // the destinations as host routes; replaced, never modified

	mu      sync.Mutex
	pending map[netip.Addr]struct{} // asked for, and not in the table

	// The goroutine of Run's own.
	ways    map[netip.Addr]way // of the destinations in the table
	heardOf uint64             // overruns that a round has answered
}

// way is what the routes say of a destination; the zero value is one that can't be used.
type way struct {
	index   int
	mtu     int
	nextHop netip.Addr
}

// path is what Path answers with.
type path struct {
	way
	neighbor *neighbor // nil: not known to the kernel, or the way can't be used
	used     atomic.Bool
}

// neighbor is one whose MAC address the kernel would use.
type neighbor struct {
	mac    [6]byte
	stale  bool
	probed atomic.Int64 // Unix nanoseconds: when the kernel was last left to ask a stale one
}

type neighborKey struct {
	index int
	addr  netip.Addr
}

// NewPaths makes a follower of no destination yet. It does nothing before Run.
func NewPaths(cfg PathsConfig, log logrus.FieldLogger) *Paths {
	if cfg.Max <= 0 {
		cfg.Max = DefaultMaxPaths
	}
	p := &Paths{
		follower: newFollower(cfg.Namespace, log), cfg: cfg,
		pending: map[netip.Addr]struct{}{}, ways: map[netip.Addr]way{},
	}
	p.groups = append(slices.Clone(groups), unix.RTNLGRP_NEIGH)
	p.table.Store(&map[netip.Addr]*path{})
	p.watched.Store(new(bart.Lite))
	p.follower.round = p.round
	p.follower.relevant = p.relevant
	return p
}

// Path gives the interface's index, the next hop's MAC address and the MTU in octets for packets to a destination.
// With ok false the packet is to go by the kernel's own output; a destination that was not asked for before is
// followed from then on. It may be called from any goroutine; it takes no lock and no memory but for the first
// packets to a destination.
func (p *Paths) Path(dst netip.Addr) (index int, mac [6]byte, mtu int, ok bool) {
	e := (*p.table.Load())[dst]
	if e == nil {
		p.ask(dst)
		return 0, mac, 0, false
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	n := e.neighbor
	if n == nil {
		return 0, mac, 0, false
	}
	if n.stale {
		now, last := time.Now().UnixNano(), n.probed.Load()
		if now-last > int64(probeAgain) && n.probed.CompareAndSwap(last, now) {
			return 0, mac, 0, false
		}
	}
	return e.index, n.mac, e.mtu, true
}

func (p *Paths) ask(dst netip.Addr) {
	if until := p.fullUntil.Load(); until != 0 && time.Now().UnixNano() < until {
		return
	}
	p.mu.Lock()
	_, asked := p.pending[dst]
	if !asked && len(p.pending) < p.cfg.Max {
		p.pending[dst] = struct{}{}
	}
	p.mu.Unlock()
	if !asked {
		p.poke()
	}
}

// relevant notes what has to be asked for again: all routes, or the neighbours only, which change often.
func (p *Paths) relevant(m *syscall.NetlinkMessage) bool {
	switch m.Header.Type {
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return len(*p.table.Load()) > 0
	}
	if !relevant(m, p.watched.Load().OverlapsPrefix) {
		return false
	}
	p.routesDirty.Store(true)
	return true
}

// round brings the table up to date.
func (p *Paths) round(h *Host) error {
	p.rounds.Add(1)
	overruns := p.overruns.Load() // once: one that comes from here on is the next round's
	all := p.routesDirty.Swap(false) || overruns != p.heardOf
	p.mu.Lock()
	pending := p.pending
	p.pending = map[netip.Addr]struct{}{}
	p.mu.Unlock()
	if err := p.resolve(h, pending, all); err != nil {
		p.routesDirty.Store(true)
		p.mu.Lock()
		for dst := range pending {
			p.pending[dst] = struct{}{}
		}
		p.mu.Unlock()
		return err
	}
	p.heardOf = overruns
	return nil
}

func (p *Paths) resolve(h *Host, pending map[netip.Addr]struct{}, all bool) error {
	old := *p.table.Load()
	p.makeRoom(old, len(pending))
	if all || len(pending) > 0 {
		plain, links, err := h.ground()
		if err != nil {
			return err
		}
		if all {
			for dst := range p.ways {
				p.ways[dst] = h.way(dst, plain, links)
			}
		}
		for dst := range pending {
			if len(p.ways) >= p.cfg.Max {
				p.fullUntil.Store(time.Now().Add(whenFull).UnixNano())
				break
			}
			p.ways[dst] = h.way(dst, plain, links)
		}
	}
	neighbors, err := h.neighbors()
	if err != nil {
		return err
	}
	known := map[neighborKey]*neighbor{}
	for _, e := range old {
		if e.neighbor != nil {
			known[neighborKey{e.index, e.nextHop}] = e.neighbor
		}
	}
	table, watched := make(map[netip.Addr]*path, len(p.ways)), new(bart.Lite)
	for dst, w := range p.ways {
		e := &path{way: w}
		if was := old[dst]; was != nil {
			e.used.Store(was.used.Load())
		}
		key := neighborKey{w.index, w.nextHop}
		if n := neighbors[key]; n != nil {
			if was := known[key]; was != nil && was.mac == n.mac && was.stale == n.stale {
				n = was // also when it was probed
			}
			known[key], e.neighbor = n, n
		}
		table[dst] = e
		watched.Insert(netip.PrefixFrom(dst, dst.BitLen()))
	}
	p.watched.Store(watched)
	p.table.Store(&table)
	return nil
}

// makeRoom forgets destinations that were not asked for since the last time that room was needed.
func (p *Paths) makeRoom(table map[netip.Addr]*path, more int) {
	if len(p.ways)+more <= p.cfg.Max {
		return
	}
	for dst, e := range table {
		if !e.used.Swap(false) {
			delete(p.ways, dst)
		}
	}
}

// ground asks for what holds for all destinations: whether there are only the rules of every host, and the
// Ethernet interfaces with their MTU.
func (h *Host) ground() (plain bool, links map[int]int, err error) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := dump(func() ([]netlink.Rule, error) { return h.nl.RuleList(family) })
		if err != nil {
			return false, nil, err
		}
		for _, r := range rules {
			if r.Priority != 0 && r.Priority != 32766 && r.Priority != 32767 {
				return false, nil, nil
			}
		}
	}
	list, err := dump(h.nl.LinkList)
	if err != nil {
		return false, nil, err
	}
	links = map[int]int{}
	for _, l := range list {
		a := l.Attrs()
		if a.EncapType == "ether" && a.Flags&net.FlagUp != 0 && a.RawFlags&unix.IFF_NOARP == 0 && len(a.HardwareAddr) == 6 {
			links[a.Index] = a.MTU
		}
	}
	return true, links, nil
}

// way asks for the route to a destination; the zero value when it can't be used.
func (h *Host) way(dst netip.Addr, plain bool, links map[int]int) way {
	if !plain || dst.Is4In6() || dst.IsMulticast() || dst.IsLinkLocalUnicast() {
		return way{}
	}
	// Only the entry of the kernel's table shows that there are several next hops, and only the answer without it
	// which MTU and gateway ICMP has told of.
	entry, err := h.nl.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true})
	if err != nil || len(entry) != 1 || len(entry[0].MultiPath) > 0 {
		return way{} // the kernel's output will say why
	}
	routes, err := h.nl.RouteGet(dst.AsSlice())
	if err != nil || len(routes) != 1 {
		return way{}
	}
	r := &routes[0]
	mtu, ethernet := links[r.LinkIndex]
	if !ethernet || r.Type != unix.RTN_UNICAST || r.Encap != nil || r.MPLSDst != nil || r.NewDst != nil {
		return way{}
	}
	if r.MTU > 0 && r.MTU < mtu {
		mtu = r.MTU
	}
	next := dst
	if via, ok := r.Via.(*netlink.Via); ok {
		if next, ok = netip.AddrFromSlice(via.Addr); !ok {
			return way{}
		}
	} else if gw, ok := netip.AddrFromSlice(r.Gw); ok && !gw.IsUnspecified() {
		next = gw
	}
	return way{index: r.LinkIndex, mtu: mtu, nextHop: next.Unmap()}
}

// usable are the states in which the kernel would send to a neighbour's MAC address (linux/neighbour.h).
const usable = netlink.NUD_PERMANENT | netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE

func (h *Host) neighbors() (map[neighborKey]*neighbor, error) {
	out := map[neighborKey]*neighbor{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := dump(func() ([]netlink.Neigh, error) { return h.nl.NeighList(0, family) })
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			addr, ok := netip.AddrFromSlice(n.IP)
			if !ok || n.State&usable == 0 || len(n.HardwareAddr) != 6 {
				continue
			}
			out[neighborKey{n.LinkIndex, addr.Unmap()}] = &neighbor{mac: [6]byte(n.HardwareAddr), stale: n.State == netlink.NUD_STALE}
		}
	}
	return out, nil
}

// Known is how many destinations are followed, and to how many of them frames can be sent.
func (p *Paths) Known() (all, usable int) {
	t := *p.table.Load()
	for _, e := range t {
		if e.neighbor != nil {
			usable++
		}
	}
	return len(t), usable
}
