package pnc

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
)

// Snapshot is one state of a Table. It never changes.
type Snapshot struct {
	base    *view // the default context
	proxies []proxyState
	share   Share
	rank    ranking

	allowDefault bool
	version      uint64
	routes       int
	capabilities int
	vpn          map[string]*view // the other contexts, configured or with routes
	ownVPN       bool             // while it is built: vpn is not shared with the one before
}

// successor is a copy to change and publish, with the next version.
func (s *Snapshot) successor() *Snapshot {
	n := *s
	n.version++
	n.ownVPN = false
	return &n
}

func (s *Snapshot) view(context string) *view {
	if context == "" {
		return s.base
	}
	return s.vpn[context]
}

func (s *Snapshot) setView(context string, v *view) {
	if context == "" {
		s.base = v
		return
	}
	if !s.ownVPN {
		s.vpn = maps.Clone(s.vpn)
		if s.vpn == nil {
			s.vpn = map[string]*view{}
		}
		s.ownVPN = true
	}
	s.vpn[context] = v
}

// all iterates over the views as they are now; they may be replaced meanwhile.
func (s *Snapshot) all() iter.Seq2[string, *view] {
	vpn := s.vpn
	return func(yield func(string, *view) bool) {
		if !yield("", s.base) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(vpn)) {
			if !yield(name, vpn[name]) {
				return
			}
		}
	}
}

// Version is the version of the table.
func (s *Snapshot) Version() uint64 { return s.version }

// Len is the number of routes over all contexts, and of those that carry a believed PNC.
func (s *Snapshot) Len() (routes, capabilities int) { return s.routes, s.capabilities }

// Contexts lists the configured contexts, sorted; the default one is the empty string.
func (s *Snapshot) Contexts() []string {
	var names []string
	for name, v := range s.all() {
		if v.configured {
			names = append(names, name)
		}
	}
	return names
}

// Filter chooses routes.
type Filter struct {
	Context string
	Prefix  netip.Prefix // only routes that cover it or are covered by it; all when invalid
	All     bool         // routes without a believed PNC too
}

// Routes iterates over the routes that match, sorted by prefix (IPv4 first, then as
// netip.Prefix.Compare), then by rank. Hidden routes are among them.
func (s *Snapshot) Routes(f Filter) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		v := s.view(f.Context)
		if v == nil {
			return
		}
		for sl := range v.slots(f.Prefix) {
			for _, e := range sl.list(nil) {
				if !f.All && !e.Believed() {
					continue
				}
				if r := e.Route(); !yield(&r) {
					return
				}
			}
		}
	}
}

// slots iterates over the slots of prefixes that cover p or are covered by it, sorted.
func (v *view) slots(p netip.Prefix) iter.Seq[slot] {
	return func(yield func(slot) bool) {
		if !p.IsValid() {
			for _, sl := range v.routes.AllSorted() {
				if !yield(sl) {
					return
				}
			}
			return
		}
		p = p.Masked()
		var covering []slot
		for q, sl := range v.routes.Supernets(p) { // from long to short, p itself first
			if q != p {
				covering = append(covering, sl)
			}
		}
		for _, sl := range slices.Backward(covering) {
			if !yield(sl) {
				return
			}
		}
		for _, sl := range v.routes.Subnets(p) {
			if !yield(sl) {
				return
			}
		}
	}
}

// Reach gives what is known about a proxy of the table; known is false when nothing was told. The
// cost grows with the number of proxies; RouteReach is the quick way.
func (s *Snapshot) Reach(proxy netip.Addr) (r Reach, known bool) {
	proxy = proxy.Unmap()
	for i := range s.proxies[1:] {
		if p := &s.proxies[i+1]; p.addr == proxy {
			return p.reach, p.known
		}
	}
	return Reach{}, false
}

// RouteReach is Reach for the proxy of a route of this snapshot, in constant time.
func (s *Snapshot) RouteReach(r *Route) (reach Reach, known bool) {
	if r.proxy == noProxy || int(r.proxy) >= len(s.proxies) {
		return Reach{}, false
	}
	p := &s.proxies[r.proxy]
	if p.addr != r.Proxy { // a route of another snapshot
		return s.Reach(r.Proxy)
	}
	return p.reach, p.known
}
