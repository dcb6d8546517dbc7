package pnc

import "slices"

// slot is what hangs off a prefix in the longest-match table, ready for the packet path: the answer
// in the common case needs nothing but the slot and the state of one proxy. It is kept small (16
// octets), because a look-up costs as much as the memory that it has to fetch.
type slot struct {
	route *Entry     // the highest ranked route; nil in the zero slot
	proxy proxyIndex // of route; noProxy when no route of the prefix carries a believed PNC
	flags slotFlags  // why the common case does not hold
}

// group is all routes of one prefix, best first, where there are several. The first of them points
// to it.
type group struct {
	routes []*Entry
}

type slotFlags uint8

const (
	slotDefault slotFlags = 1 << iota // 0.0.0.0/0 or ::/0
	slotShared                        // different proxies are equal to the best
)

// newSlot makes a slot of routes in rank order, at least one. It keeps the slice.
func newSlot(routes []*Entry, rk *ranking) slot {
	for i, r := range routes {
		// Only the first may point to the group, and the one it points to is this. A stored route is
		// not modified: a snapshot may have it.
		if first := i == 0 && len(routes) > 1; first || r.group != nil {
			c := *r
			c.group = nil
			if first {
				c.group = &group{routes: routes}
			}
			routes[i] = &c
		}
	}
	first := routes[0]
	s := slot{route: first, proxy: first.index}
	if first.bits == 0 {
		s.flags |= slotDefault
	}
	if s.proxy == noProxy {
		return s
	}
	for _, r := range routes[1:] {
		if rk.compareMerit(first, r) != 0 {
			break
		}
		if r.index != first.index {
			s.flags |= slotShared
			break
		}
	}
	return s
}

// several gives the routes, best first, when there is more than one.
func (s slot) several() []*Entry {
	if s.route == nil || s.route.group == nil {
		return nil
	}
	return s.route.group.routes
}

// list appends the routes, best first, to dst.
func (s slot) list(dst []*Entry) []*Entry {
	if s.route == nil {
		return dst
	}
	if routes := s.several(); routes != nil {
		return append(dst, routes...)
	}
	return append(dst, s.route)
}

// find gives the route with the identity of r, prefix and context being the same; nil if there is
// none.
func (s slot) find(r *Route) *Entry {
	same := func(x *Entry) bool {
		return x.source == r.Source && x.pathID == r.PathID && x.peer == r.Peer && x.rd == r.RD
	}
	for _, x := range s.several() {
		if same(x) {
			return x
		}
	}
	if s.route != nil && same(s.route) {
		return s.route
	}
	return nil
}

// replace gives the routes in rank order with old taken out and r put in; either may be nil.
func (s slot) replace(old, r *Entry, rk *ranking) []*Entry {
	routes := s.list(make([]*Entry, 0, max(1, len(s.several()))+1))
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
