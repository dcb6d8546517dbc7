package bgp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
	"pncd/pnc"
)

// staleTime bounds how long paths stay stale after a restarted neighbour is back and never sends
// End-of-RIB (RFC 4724 section 4.2 asks for an upper bound).
const staleTime = 360 * time.Second

// rib mirrors what the neighbours announce, and turns changes into updates for package pnc. It is
// pure: events and the time go in, updates come out.
type rib struct {
	policy   learning
	peers    map[netip.Addr]*ribPeer
	prefixes map[netip.Prefix][]*path // sorted by neighbour, then path identifier
	dirty    map[netip.Prefix]struct{}
	total    map[pnc.DisregardReason]uint64
	out      learned
}

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
	ownAS  int
}

type ribPeer struct {
	peerInfo
	state       engine.State
	staleUntil  time.Time // when stale paths go at the latest; zero while there are none to wait for
	paths       int
	nhc         int // paths that have an NHC attribute
	believed    int // paths whose PNC is believed
	disregarded map[pnc.DisregardReason]uint64
}

// path is one path as kept.
type path struct {
	peer       *ribPeer
	id         uint32
	stale      bool
	best       bool
	published  bool // as it is now
	told       bool // the sink knows this path, maybe as it was before
	localPref  uint32
	med        uint32
	neighborAS uint32
	asPathLen  int
	clusters   int
	origin     uint8
	originator netip.Addr // ORIGINATOR_ID, or the peer's BGP Identifier
	nhcPath
	verdict verdict
}

// nhcPath is what judging the NHC attribute needs.
type nhcPath struct {
	v6       bool // family of the prefix
	nextHop  netip.Addr
	peerID   netip.Addr
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
		policy: l, peers: map[netip.Addr]*ribPeer{}, prefixes: map[netip.Prefix][]*path{},
		dirty: map[netip.Prefix]struct{}{}, total: map[pnc.DisregardReason]uint64{},
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
			r.path(p, &ev.Path)
		case engine.EventState:
			r.state(now, p, ev)
		case engine.EventEndOfRIB:
			r.dropStale(p, ev.Family)
		}
	}
	return r.flush()
}

func (r *rib) state(now time.Time, p *ribPeer, ev *engine.Event) {
	p.state = ev.State
	switch {
	case !ev.Keep:
		// Down for good, or up without a restart before: nothing of an earlier session counts.
		p.staleUntil = time.Time{}
		if p.paths > 0 {
			r.drop(func(x *path) bool { return x.peer == p })
		}
	case ev.State == engine.StateEstablished:
		p.staleUntil = now.Add(staleTime)
	default:
		r.markStale(p)
	}
}

func (r *rib) markStale(p *ribPeer) {
	for prefix, paths := range r.prefixes {
		for _, x := range paths {
			if x.peer == p && !x.stale {
				x.stale, x.published = true, false
				r.dirty[prefix] = struct{}{}
			}
		}
	}
}

func (r *rib) dropStale(p *ribPeer, f engine.Family) {
	if p.staleUntil.IsZero() {
		return // the usual End-of-RIB after a session came up
	}
	r.drop(func(x *path) bool { return x.peer == p && x.stale && x.v6 == (f == engine.IPv6Unicast) })
}

// expire drops paths that have been stale for too long.
func (r *rib) expire(now time.Time) learned {
	for _, p := range r.peers {
		if !p.staleUntil.IsZero() && !now.Before(p.staleUntil) {
			p.staleUntil = time.Time{}
			r.drop(func(x *path) bool { return x.peer == p && x.stale })
		}
	}
	return r.flush()
}

func (r *rib) drop(which func(*path) bool) {
	for prefix, paths := range r.prefixes {
		if !slices.ContainsFunc(paths, which) {
			continue
		}
		var kept []*path
		for _, x := range paths {
			if which(x) {
				r.gone(prefix, x)
			} else {
				kept = append(kept, x)
			}
		}
		r.keep(prefix, kept)
	}
}

// gone counts a path out and tells the sink when it knows the path.
func (r *rib) gone(prefix netip.Prefix, x *path) {
	x.count(-1)
	if !x.told {
		return
	}
	x.told = false
	r.out.updates = append(r.out.updates, pnc.Update{Withdraw: true, Route: pnc.Route{
		Context: r.policy.context, Prefix: prefix, Source: pnc.SourceBGP, Peer: x.peer.name, PathID: x.id}})
}

func (r *rib) keep(prefix netip.Prefix, paths []*path) {
	if len(paths) == 0 {
		delete(r.prefixes, prefix)
		delete(r.dirty, prefix)
		return
	}
	r.prefixes[prefix] = paths
	r.dirty[prefix] = struct{}{}
}

func (x *path) count(n int) {
	x.peer.paths += n
	if x.hasNHC {
		x.peer.nhc += n
	}
	if x.verdict.believed() {
		x.peer.believed += n
	}
}

// path takes in one announcement or withdrawal.
func (r *rib) path(p *ribPeer, from *engine.Path) {
	paths := r.prefixes[from.Prefix]
	at, found := slices.BinarySearchFunc(paths, pathAt{p.addr, from.PathID}, comparePath)
	x := newPath(p, from)
	if !from.Withdrawn {
		x.verdict = r.policy.judge(&x.nhcPath, &p.peerInfo)
		r.report(from.Prefix, x)
	}
	if from.Withdrawn || !p.accept || r.policy.looped(from, &p.peerInfo) {
		if found {
			r.gone(from.Prefix, paths[at])
			r.keep(from.Prefix, slices.Delete(paths, at, at+1))
		}
		return
	}
	if found {
		paths[at].count(-1)
		x.told = paths[at].told
		paths[at] = x
	} else {
		paths = slices.Insert(paths, at, x)
	}
	x.count(1)
	r.keep(from.Prefix, paths)
}

type pathAt struct {
	peer netip.Addr
	id   uint32
}

func comparePath(x *path, k pathAt) int {
	if c := x.peer.addr.Compare(k.peer); c != 0 {
		return c
	}
	return cmp.Compare(x.id, k.id)
}

func newPath(p *ribPeer, from *engine.Path) *path {
	originator := from.OriginatorID
	if !originator.IsValid() {
		originator = from.PeerID
	}
	return &path{
		peer: p, id: from.PathID, localPref: from.LocalPref, med: from.MED, neighborAS: from.NeighborAS,
		asPathLen: from.ASPathLen, clusters: len(from.ClusterList), origin: from.Origin, originator: originator,
		nhcPath: nhcPath{
			v6: from.Prefix.Addr().Is6(), nextHop: from.NextHop, peerID: from.PeerID,
			hasNHC: from.HasNHC, nhcFlags: from.NHCFlags, nhc: from.NHC,
		},
	}
}

// report counts what was disregarded on a path and tells the sink.
func (r *rib) report(prefix netip.Prefix, x *path) {
	for _, pr := range x.verdict.problems {
		x.peer.disregarded[pr.reason]++
		r.total[pr.reason]++
		if pr.silent {
			continue
		}
		route := r.route(prefix, x)
		route.Disregarded = pr.reason
		r.out.disregarded = append(r.out.disregarded, pnc.Event{
			Kind: pnc.EventDisregarded, Route: route, Reason: pr.reason, Detail: pr.detail})
	}
	x.verdict.problems = nil // reported; not worth the memory
}

// rejudge applies a changed policy to every path.
func (r *rib) rejudge(l learning) learned {
	if l.context != r.policy.context {
		// The context is part of a route's identity.
		for prefix, paths := range r.prefixes {
			for _, x := range paths {
				r.gone(prefix, x)
				x.count(1)
				x.published = false
			}
		}
	}
	r.policy = l
	for prefix, paths := range r.prefixes {
		for _, x := range paths {
			x.count(-1)
			x.verdict = l.judge(&x.nhcPath, &x.peer.peerInfo)
			x.count(1)
			x.published = false
			r.report(prefix, x)
		}
		r.dirty[prefix] = struct{}{}
	}
	return r.flush()
}

// flush selects the best paths of the prefixes that changed and gives what the sink has to know.
func (r *rib) flush() learned {
	r.out.updates = slices.Grow(r.out.updates, len(r.dirty))
	for prefix := range r.dirty {
		paths := r.prefixes[prefix]
		b := best(paths)
		for _, x := range paths {
			if isBest := x == b; x.best != isBest || !x.published {
				x.best, x.published, x.told = isBest, true, true
				r.out.updates = append(r.out.updates, pnc.Update{Route: r.route(prefix, x)})
			}
		}
	}
	clear(r.dirty)
	out := r.out
	r.out = learned{}
	return out
}

func (r *rib) route(prefix netip.Prefix, x *path) pnc.Route {
	originator := ""
	if x.originator.IsValid() {
		originator = x.originator.String()
	}
	return pnc.Route{
		Context: r.policy.context, Prefix: prefix, Source: pnc.SourceBGP,
		Proxy: x.verdict.proxy, NextHop: x.nextHop, Originator: originator,
		Peer: x.peer.name, PathID: x.id, Best: x.best, Stale: x.stale,
		Partial: x.verdict.partial, Disregarded: x.verdict.reason,
	}
}
