package bgp

import (
	"net/netip"
	"slices"
	"time"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
	"pncd/pnc"
)

// rib mirrors what the neighbours announce, and turns changes into updates for package pnc. It is
// pure: events and the time go in, updates come out.
type rib struct {
	policy   learning
	peers    map[netip.Addr]*ribPeer
	vrf      // the unicast routes
	contexts map[string]*vpnVRF
	total    map[pnc.DisregardReason]uint64
	seen     *attributeCache
	out      learned

	unmatched uint64 // announcements of VPN routes that no context imports
}

// vrf is the routes of one context.
type vrf struct {
	prefixes prefixMap
	dirty    []netip.Prefix // a prefix may be in it twice
}

func newVRF() vrf { return vrf{prefixes: newPrefixMap()} }

// learned is what a step gives to the sink.
type learned struct {
	updates     []pnc.Update
	disregarded []pnc.Event
}

// peerInfo is what is configured about a neighbour as far as learning goes.
type peerInfo struct {
	addr   netip.Addr
	name   string // addr as text: it is in every route
	ebgp   bool
	accept bool
	in     inbound
	ownAS  int
	helped bool // through a graceful restart
	// longLived bounds how long paths are kept beyond the restart time; 0: not at all.
	longLived time.Duration
}

type ribPeer struct {
	peerInfo
	state       engine.State
	restart     engine.Restart // what its last OPEN said
	keeping     families       // how paths outlive the session
	paths       int
	stale       int    // paths kept through a restart
	nhc         int    // paths that have an NHC attribute
	believed    int    // paths whose PNC is believed
	refused     uint64 // announcements that the prefix list didn't take
	disregarded map[pnc.DisregardReason]uint64
}

// nhcPath is what judging the NHC attribute needs.
type nhcPath struct {
	v6       bool // family of the prefix
	vpn      *vpnPath
	nextHop  netip.Addr
	peerID   netip.Addr
	from     [4]byte // BGP Identifier of who brought the route into this AS
	untagged bool    // none of the communities that the policy asks for
	hasNHC   bool
	nhcFlags uint8
	nhc      []byte
}

func (p *nhcPath) afi() uint16 {
	if p.v6 {
		return nhc.AFIIPv6
	}
	return nhc.AFIIPv4
}

func newRIB(l learning) *rib {
	return &rib{
		policy: l, peers: map[netip.Addr]*ribPeer{}, vrf: newVRF(), contexts: map[string]*vpnVRF{},
		total: map[pnc.DisregardReason]uint64{}, seen: newAttributeCache(),
	}
}

func (r *rib) addPeer(a netip.Addr, info peerInfo) {
	r.peers[a] = &ribPeer{peerInfo: info, state: engine.StateIdle, disregarded: map[pnc.DisregardReason]uint64{}}
}

// removePeer forgets a neighbour and its paths.
func (r *rib) removePeer(a netip.Addr) learned {
	if p := r.peers[a]; p != nil {
		r.drop(func(x *path) bool { return x.peer == p })
		delete(r.peers, a)
		r.seen.forget()
	}
	return r.flush()
}

// dropAll removes every path.
func (r *rib) dropAll() learned {
	r.drop(func(*path) bool { return true })
	return r.flush()
}

// apply takes in events.
func (r *rib) apply(now time.Time, events []engine.Event) learned {
	for i := range events {
		ev := &events[i]
		p := r.peers[ev.Peer]
		if p == nil {
			continue
		}
		switch ev.Kind {
		case engine.EventPath:
			if p.ebgp {
				external(&ev.Path)
			}
			r.path(p, ev.Family, &ev.Path)
		case engine.EventState:
			r.state(now, p, ev)
		case engine.EventEndOfRIB:
			r.endOfRIB(p, ev.Family)
		}
	}
	return r.flush()
}

func (r *rib) drop(which func(*path) bool) {
	for name, v := range r.vrfs() {
		r.dropFrom(name, v, which)
	}
}

func (r *rib) dropFrom(context string, v *vrf, which func(*path) bool) {
	for prefix, first := range v.prefixes.all() {
		r.take(context, v, prefix, first, which)
	}
	if v.prefixes.len() == 0 {
		*v = newVRF() // an empty map keeps its memory
	}
}

// take takes out paths of a prefix, and tells the sink.
func (r *rib) take(context string, v *vrf, prefix netip.Prefix, first *path, which func(*path) bool) {
	removed := v.prefixes.remove(prefix, first, func(x *path) bool {
		if !which(x) {
			return false
		}
		r.gone(context, prefix, x)
		return true
	})
	if removed {
		v.dirty = append(v.dirty, prefix)
	}
}

// gone counts a path out and tells the sink when it knows the path.
func (r *rib) gone(context string, prefix netip.Prefix, x *path) {
	x.count(-1)
	if x.sink == untold {
		return
	}
	x.sink = untold
	r.out.updates = append(r.out.updates, pnc.Update{Withdraw: true, Route: pnc.Route{
		Context: context, Prefix: prefix, Source: pnc.SourceBGP, Peer: x.peer.name, RD: x.rd(), PathID: x.id}})
}

func (x *path) count(n int) {
	x.peer.paths += n
	if x.stale {
		x.peer.stale += n
	}
	if x.hasNHC {
		x.peer.nhc += n
	}
	if x.verdict.believed() {
		x.peer.believed += n
	}
}

// path takes in one announcement or withdrawal.
func (r *rib) path(p *ribPeer, f engine.Family, from *engine.Path) {
	if f.VPN() {
		r.vpnPath(p, f, from)
		return
	}
	// What was here before, our own announcements among it, is as if it had not come.
	if from.Withdrawn || r.policy.looped(from, &p.peerInfo) {
		r.remove(r.policy.context, &r.vrf, from, &attributes{peer: p})
		return
	}
	a := newAttributes(p, from)
	x := &path{id: from.PathID, longLived: a.llgrStale}
	if from.Stale && !x.replayed(p, f) {
		return // it has left already
	}
	permitted := p.permits(from.Prefix)
	if permitted {
		r.judge(r.policy.context, from.Prefix, x, &a)
	}
	if !permitted || !p.accept {
		r.remove(r.policy.context, &r.vrf, from, &attributes{peer: p})
		return
	}
	r.vrf.put(from.Prefix, x)
}

// judge gives a path its attributes with a verdict on them, and reports what was disregarded.
func (r *rib) judge(context string, prefix netip.Prefix, x *path, a *attributes) {
	kept, at := r.seen.find(a)
	if kept != nil {
		x.attributes = kept
		return
	}
	kept = new(attributes)
	*kept = *a
	if l := r.seen.last; l != nil && l.originator == a.originator {
		kept.name = l.name
	} else if a.originator.IsValid() {
		kept.name = a.originator.String()
	}
	kept.verdict = r.policy.judge(&kept.nhcPath, &kept.peer.peerInfo)
	x.attributes = kept
	if len(kept.verdict.problems) == 0 { // else each path's are reported
		r.seen.put(at, kept)
		return
	}
	r.report(context, prefix, x)
}

// remove takes out the path with the identity that an announcement or withdrawal has.
func (r *rib) remove(context string, v *vrf, from *engine.Path, a *attributes) {
	same := path{attributes: a, id: from.PathID}
	r.take(context, v, from.Prefix, v.prefixes.first(from.Prefix), func(x *path) bool { return comparePath(x, &same) == 0 })
}

// put takes in a path, in the place of the one with the same identity.
func (v *vrf) put(prefix netip.Prefix, x *path) {
	if old := v.prefixes.insert(prefix, x); old != nil {
		if old.attributes == x.attributes && old.stale == x.stale && old.longLived == x.longLived {
			return
		}
		old.count(-1)
		old.attributes, old.stale, old.longLived = x.attributes, x.stale, x.longLived
		old.changed()
		x = old
	}
	x.count(1)
	v.dirty = append(v.dirty, prefix)
}

// report counts what was disregarded on a path and tells the sink.
func (r *rib) report(context string, prefix netip.Prefix, x *path) {
	for _, pr := range x.verdict.problems {
		x.peer.disregarded[pr.reason]++
		r.total[pr.reason]++
		if pr.silent {
			continue
		}
		route := r.route(context, prefix, x)
		route.Disregarded = pr.reason
		r.out.disregarded = append(r.out.disregarded, pnc.Event{
			Kind: pnc.EventDisregarded, Route: route, Reason: pr.reason, Detail: pr.detail})
	}
	x.verdict.problems = nil // reported; not worth the memory. Nobody else has these attributes yet.
}

// rejudge applies a changed policy to every path.
func (r *rib) rejudge(l learning) learned {
	if l.context != r.policy.context {
		// The context is part of a route's identity.
		for prefix, first := range r.prefixes.all() {
			for x := range first.list() {
				r.gone(r.policy.context, prefix, x)
				x.count(1)
			}
		}
	}
	r.policy = l
	r.seen.forget()
	for name, v := range r.vrfs() {
		for prefix, first := range v.prefixes.all() {
			for x := range first.list() {
				x.count(-1)
				r.judge(name, prefix, x, x.attributes)
				x.count(1)
				x.changed()
			}
			v.dirty = append(v.dirty, prefix)
		}
	}
	return r.flush()
}

// flush selects the best paths of the prefixes that changed and gives what the sink has to know.
func (r *rib) flush() learned {
	for name, v := range r.vrfs() {
		r.out.updates = slices.Grow(r.out.updates, len(v.dirty))
		for _, prefix := range v.dirty {
			first := v.prefixes.first(prefix)
			b := best(first.list())
			for x := first; x != nil; x = x.next {
				if isBest := x == b; x.best != isBest || x.sink != current {
					x.best, x.sink = isBest, current
					r.out.updates = append(r.out.updates, pnc.Update{Route: r.route(name, prefix, x)})
				}
			}
		}
		v.dirty = nil
	}
	out := r.out
	r.out = learned{}
	return out
}

func (r *rib) route(context string, prefix netip.Prefix, x *path) pnc.Route {
	return pnc.Route{
		Context: context, Prefix: prefix, Source: pnc.SourceBGP,
		Proxy: x.verdict.proxy, NextHop: x.nextHop, Originator: x.name,
		Peer: x.peer.name, RD: x.rd(), PathID: x.id, Best: x.best, Stale: x.stale, LongLived: x.longLived,
		Partial: x.verdict.partial, Disregarded: x.verdict.reason,
	}
}
