package host

import (
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/gaissmai/bart"
	"github.com/sirupsen/logrus"
)

// Config is what a Tracker needs to know.
type Config struct {
	// AllowDefault lets 0.0.0.0/0 and ::/0 count as a route.
	AllowDefault bool
	// Namespace is the path of a network namespace; empty means the process's own.
	Namespace string
	// OnChange is told what changed, from the goroutine of Run: addresses whose status differs from
	// what was told before, and after each Watch all that are watched. It must not block for long.
	// May be nil.
	OnChange func(changed map[netip.Addr]Status)
}

// Tracker follows whether and how the kernel would reach a set of addresses: next-hop tracking.
//
// It asks the kernel for each address, and asks again when links, addresses, routes, rules or nexthop
// objects change. When the kernel says that it dropped notifications, everything is asked again.
type Tracker struct {
	follower
	cfg     Config
	changes atomic.Uint64

	allowDefault atomic.Bool
	local        atomic.Pointer[map[netip.Addr]struct{}] // this host's addresses; replaced, never modified

	mu      sync.Mutex
	watched *bart.Lite // as host routes; replaced, never modified
	status  map[netip.Addr]Status
	fresh   map[netip.Addr]struct{} // watched, and to be told whatever the status is
}

// Stats are counts since the tracker was made.
type Stats struct {
	Overruns uint64 // times that the kernel dropped notifications
	Ignored  uint64 // notifications of routes that matter to no watched address
	Rounds   uint64 // times that all addresses were asked for
	Changes  uint64 // changes of an address's status
	Watched  int    // addresses that are watched
}

// NewTracker makes a tracker. It does nothing before Run.
func NewTracker(cfg Config, log logrus.FieldLogger) *Tracker {
	t := &Tracker{
		follower: newFollower(cfg.Namespace, log),
		cfg:      cfg,
		watched:  new(bart.Lite),
		status:   map[netip.Addr]Status{},
		fresh:    map[netip.Addr]struct{}{},
	}
	t.follower.round = t.round
	t.follower.relevant = func(m *syscall.NetlinkMessage) bool { return relevant(m, t.concerns) }
	t.allowDefault.Store(cfg.AllowDefault)
	t.local.Store(&map[netip.Addr]struct{}{})
	return t
}

// SetAllowDefault changes Config.AllowDefault while the tracker runs.
func (t *Tracker) SetAllowDefault(allow bool) {
	if t.allowDefault.Swap(allow) != allow {
		t.poke()
	}
}

// IsLocal reports whether an address was one of this host's own at the last look, without asking the
// kernel: packets may come faster than it answers.
func (t *Tracker) IsLocal(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	_, own := (*t.local.Load())[addr]
	return own || addr.IsLoopback()
}

// Watch sets the addresses to follow: those not named are followed no longer. It doesn't wait for
// their status, which OnChange is told for each of them, also where it is what it was: the caller may
// have forgotten an address and learned it again in the meantime.
func (t *Tracker) Watch(addrs ...netip.Addr) {
	watched := new(bart.Lite)
	t.mu.Lock()
	status := make(map[netip.Addr]Status, len(addrs))
	fresh := map[netip.Addr]struct{}{}
	for _, a := range addrs {
		if !a.IsValid() {
			continue
		}
		a = a.Unmap().WithZone("")
		watched.Insert(netip.PrefixFrom(a, a.BitLen()))
		fresh[a] = struct{}{}
		if s, ok := t.status[a]; ok {
			status[a] = s
		}
	}
	t.watched, t.status, t.fresh = watched, status, fresh
	t.mu.Unlock()
	t.poke()
}

// Reach gives the status of a watched address; known is false when it is not watched, or not yet
// asked for.
func (t *Tracker) Reach(addr netip.Addr) (s Status, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, known = t.status[addr.Unmap()]
	return s, known
}

// Stats gives the counts.
func (t *Tracker) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{
		Overruns: t.overruns.Load(), Ignored: t.ignored.Load(),
		Rounds: t.rounds.Load(), Changes: t.changes.Load(),
		Watched: t.watched.Size(),
	}
}

// concerns reports whether a route for the prefix can matter to a watched address.
func (t *Tracker) concerns(p netip.Prefix) bool {
	t.mu.Lock()
	watched := t.watched
	t.mu.Unlock()
	return watched.OverlapsPrefix(p)
}

// round asks for every watched address and tells what changed.
func (t *Tracker) round(h *Host) error {
	names, err := h.names()
	if err != nil {
		return err
	}
	lookup := func(a netip.Addr) Status {
		s, err := h.lookup(a, names)
		if err != nil {
			t.log.WithError(err).WithField("address", a).Warn("a route look-up failed, the address counts as unreachable")
			return Status{Detail: err.Error()}
		}
		return s
	}
	t.rounds.Add(1)
	if err := t.refreshLocal(h); err != nil {
		return err
	}
	changed := t.update(lookup)
	for a, s := range changed {
		t.log.WithFields(logrus.Fields{
			"address": a, "reachable": s.Reachable, "self": s.Self, "via-default": s.ViaDefault,
			"interface": s.Interface, "detail": s.Detail,
		}).Debug("reachability changed")
	}
	if len(changed) > 0 && t.cfg.OnChange != nil {
		t.cfg.OnChange(changed)
	}
	return nil
}

func (t *Tracker) refreshLocal(h *Host) error {
	list, err := h.Addresses()
	if err != nil {
		return err
	}
	own := make(map[netip.Addr]struct{}, len(list))
	for _, a := range list {
		own[a.Prefix.Addr().Unmap().WithZone("")] = struct{}{}
	}
	t.local.Store(&own)
	return nil
}

// update asks for every watched address and gives those to tell: the status differs, or Watch was
// called since.
func (t *Tracker) update(lookup func(netip.Addr) Status) map[netip.Addr]Status {
	t.mu.Lock()
	now := maps.Clone(t.status)
	for a := range t.fresh {
		now[a] = Status{}
	}
	t.mu.Unlock()

	for a := range now { // not under the lock: the kernel may take its time
		s := lookup(a)
		if s.ViaDefault && !t.allowDefault.Load() && s.Reachable {
			s.Reachable, s.Detail = false, "only a default route, which is configured not to count"
		}
		now[a] = s
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	tell := map[netip.Addr]Status{}
	for a, s := range now {
		old, known := t.status[a]
		_, fresh := t.fresh[a]
		if !known && !fresh {
			continue // watched no longer
		}
		if differs := !known || old != s; differs || fresh {
			tell[a] = s
			if differs {
				t.changes.Add(1)
			}
		}
		t.status[a] = s
		delete(t.fresh, a)
	}
	return tell
}
