package daemon

import (
	"maps"
	"net/netip"
	"slices"

	"pncd/dataplane/host"
)

// senderPaths says whether the kernel has a route to the senders of a prefix: by one address of each.
type senderPaths struct {
	tracker pathTracker
	paths   map[netip.Prefix]*senderPath
}

// pathTracker is what is asked for routes; *host.Tracker is one.
type pathTracker interface {
	Watch(addrs ...netip.Addr)
	Reach(addr netip.Addr) (s host.Status, known bool)
}

type senderPath struct {
	host  netip.Addr // invalid: every address is this node's own
	wrong string     // of the last look-up that is known; empty: there is a route
}

func newSenderPaths(t pathTracker) senderPaths {
	return senderPaths{tracker: t, paths: map[netip.Prefix]*senderPath{}}
}

// follow takes the address of each prefix that stands for it.
func (s *senderPaths) follow(hosts map[netip.Prefix]netip.Addr) {
	changed := false
	for p, a := range hosts {
		x := s.paths[p]
		if x == nil {
			x = &senderPath{wrong: "the route was not looked up yet"}
			s.paths[p], changed = x, true
		}
		if x.host != a {
			x.host, changed = a, true
		}
	}
	maps.DeleteFunc(s.paths, func(p netip.Prefix, _ *senderPath) bool {
		_, there := hosts[p]
		changed = changed || !there
		return !there
	})
	if !changed {
		return
	}
	addrs := make([]netip.Addr, 0, len(s.paths))
	for _, x := range s.paths {
		addrs = append(addrs, x.host)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	s.tracker.Watch(slices.Compact(addrs)...)
}

// wrong says why there is no path to the senders of a prefix; empty when there is. While the kernel has
// not answered about a new address, what was known of the one before holds.
func (s *senderPaths) wrong(p netip.Prefix) string {
	x := s.paths[p]
	if x == nil {
		return "the route was not looked up yet"
	}
	if !x.host.IsValid() {
		return p.String() + " holds only addresses of this node"
	}
	st, known := s.tracker.Reach(x.host)
	switch {
	case !known:
	case st.Self:
		x.wrong = x.host.String() + " is this node's own"
	case !st.Reachable:
		x.wrong = x.host.String() + ": " + st.Detail
	default:
		x.wrong = ""
	}
	return x.wrong
}
