package pnc

import "slices"

// slot is what hangs off a prefix in the longest-match table, ready for the packet path: the answer
// in the common case needs nothing but the slot and the state of one proxy.
type slot struct {
	route *Route     // the highest ranked route
	more  *group     // all routes, when there is more than one
	proxy proxyIndex // of route; noProxy when no route of the prefix carries a believed PNC
	flags slotFlags  // why the common case does not hold
}

// group is several routes of one prefix, best first.
type group struct {
	routes []*Route
}

type slotFlags uint8

const (
	slotDefault slotFlags = 1 << iota // 0.0.0.0/0 or ::/0
	slotShared                        // different proxies are equal to the best
)

// newSlot makes a slot of routes in rank order, at least one. It keeps the slice.
func newSlot(routes []*Route, rk *ranking) slot {
	first := routes[0]
	s := slot{route: first, proxy: first.proxy}
	if first.Prefix.Bits() == 0 {
		s.flags |= slotDefault
	}
	if len(routes) == 1 {
		return s
	}
	s.more = &group{routes: routes}
	if s.proxy == noProxy {
		return s
	}
	for _, r := range routes[1:] {
		if rk.compareMerit(first, r) != 0 {
			break
		}
		if r.proxy != first.proxy {
			s.flags |= slotShared
			break
		}
	}
	return s
}

// list appends the routes, best first, to dst.
func (s *slot) list(dst []*Route) []*Route {
	switch {
	case s.more != nil:
		return append(dst, s.more.routes...)
	case s.route != nil:
		return append(dst, s.route)
	}
	return dst
}

// find gives the route with the identity of r, prefix and context being the same; nil if there is
// none.
func (s *slot) find(r *Route) *Route {
	same := func(x *Route) bool {
		return x.Source == r.Source && x.PathID == r.PathID && x.Peer == r.Peer
	}
	if s.more == nil {
		if s.route != nil && same(s.route) {
			return s.route
		}
		return nil
	}
	if i := slices.IndexFunc(s.more.routes, same); i >= 0 {
		return s.more.routes[i]
	}
	return nil
}

// replace gives the routes in rank order with old taken out and r put in; either may be nil.
func (s *slot) replace(old, r *Route, rk *ranking) []*Route {
	n := 1
	if s.more != nil {
		n = len(s.more.routes) + 1
	}
	routes := s.list(make([]*Route, 0, n))
	if old != nil {
		i := slices.Index(routes, old)
		routes = slices.Delete(routes, i, i+1)
	}
	if r != nil {
		i, _ := slices.BinarySearchFunc(routes, r, rk.compare)
		routes = slices.Insert(routes, i, r)
	}
	return routes
}
