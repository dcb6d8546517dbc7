package pnc

import (
	"net/netip"
	"slices"
)

// Resolve answers which proxy serves the sender, by the rules of the package comment. The hash
// identifies the flow for ShareHash; any function of the flow does. It doesn't allocate.
func (s *Snapshot) Resolve(context string, sender netip.Addr, hash uint64) Resolution {
	v := s.base
	if context != "" {
		if v = s.vpn[context]; v == nil || !v.configured {
			return Resolution{Reason: ReasonContextUnknown, Version: s.version}
		}
	}
	if sender.Is4In6() {
		sender = sender.Unmap()
	}
	sl, ok := v.lookup(sender)
	if !ok {
		return Resolution{Reason: ReasonNoRoute, Version: s.version}
	}
	if sl.flags == 0 {
		if sl.proxy == noProxy {
			return Resolution{Reason: ReasonNoProxy, Route: sl.route, Version: s.version}
		}
		if p := &s.proxies[sl.proxy]; p.reach.usable() {
			return Resolution{Reason: ReasonFound, Proxy: p.addr, Route: sl.route, Version: s.version}
		}
	}
	return s.resolveSlot(sl, hash)
}

// resolveSlot is Resolve for the less common cases of the winning prefix.
func (s *Snapshot) resolveSlot(sl slot, hash uint64) Resolution {
	res := Resolution{Route: sl.route, Version: s.version}
	switch {
	case sl.flags&slotDefault != 0 && !s.allowDefault:
		res.Reason = ReasonDefaultRouteRefused
		return res
	case sl.proxy == noProxy:
		res.Reason = ReasonNoProxy
		return res
	}
	if r := s.choose(sl, hash); r != nil {
		res.Reason, res.Proxy, res.Route = ReasonFound, r.proxy, r
		return res
	}
	res.Reason = ReasonProxyUnreachable
	if s.proxies[sl.proxy].reach.Self {
		res.Reason = ReasonSelfProxy
	}
	return res
}

// choose gives the route whose proxy is to be used; nil when no proxy is usable.
func (s *Snapshot) choose(sl slot, hash uint64) *Entry {
	routes := sl.several()
	if routes == nil {
		if s.proxies[sl.proxy].reach.usable() {
			return sl.route
		}
		return nil
	}
	var chosen *Entry
	var best uint64
	for _, r := range routes {
		if r.index == noProxy {
			break // those without a believed PNC are last
		}
		p := &s.proxies[r.index]
		switch {
		case !p.reach.usable():
			continue
		case chosen == nil:
			chosen, best = r, mix(hash^p.seed)
		case s.rank.compareMerit(chosen, r) != 0:
			return chosen
		default:
			// Rendezvous hashing: the highest weight wins, so a proxy that leaves takes only its
			// own flows with it. Routes with the same proxy have the same weight.
			if w := mix(hash ^ p.seed); w > best {
				chosen, best = r, w
			}
		}
		if s.share == ShareLowest {
			return chosen
		}
	}
	return chosen
}

// Shared lists the proxies among which ShareHash spreads the flows of the sender, sorted: which of them
// Resolve gives depends on the hash. Nil when every flow gets the same answer.
func (s *Snapshot) Shared(context string, sender netip.Addr) []netip.Addr {
	if s.share != ShareHash || s.Resolve(context, sender, 0).Reason != ReasonFound {
		return nil
	}
	sl, _ := s.view(context).lookup(sender.Unmap())
	var first *Entry
	var proxies []netip.Addr
	for _, r := range sl.several() {
		switch {
		case r.index == noProxy || !s.proxies[r.index].reach.usable():
			continue
		case first == nil:
			first = r
		case s.rank.compareMerit(first, r) != 0:
			continue
		}
		proxies = append(proxies, r.proxy)
	}
	slices.SortFunc(proxies, netip.Addr.Compare)
	if proxies = slices.Compact(proxies); len(proxies) < 2 {
		return nil
	}
	return proxies
}

// Candidates lists all routes of the prefix that wins for the sender, best first: the believed ones
// in the order in which they are tried, then the others. Nil when none matches or the context is
// not configured.
func (s *Snapshot) Candidates(context string, sender netip.Addr) []*Route {
	v := s.view(context)
	if v == nil || !v.configured {
		return nil
	}
	sl, ok := v.lookup(sender.Unmap())
	if !ok {
		return nil
	}
	var out []*Route
	for _, e := range sl.list(nil) {
		r := e.Route()
		out = append(out, &r)
	}
	return out
}

// Explain gives the answer as one sentence for a reader.
func (r Resolution) Explain() string {
	via := ""
	if r.Route != nil {
		via = " (" + r.Route.source.String() + " route " + r.Route.Prefix().String() + ")"
	}
	switch r.Reason {
	case ReasonFound:
		return "The proxy is " + r.Proxy.String() + via + "."
	case ReasonNoRoute:
		return "No route matches the sender."
	case ReasonNoProxy:
		if r.Route != nil && r.Route.disregarded != DisregardNone {
			return "The longest matching prefix has a capability that is not believed, " +
				r.Route.disregarded.String() + via + "."
		}
		return "The longest matching prefix carries no believed Proxy Node Capability" + via + "."
	case ReasonDefaultRouteRefused:
		return "Only a default route matches the sender, and the configuration does not allow its use" + via + "."
	case ReasonProxyUnreachable:
		return "The kernel has no route to the proxy " + r.Route.proxy.String() + via + "."
	case ReasonSelfProxy:
		return "The proxy " + r.Route.proxy.String() + " is this node itself" + via + "."
	case ReasonContextUnknown:
		return "The context is not configured."
	}
	return "Unknown."
}
