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

// rib mirrors what the neighbours announce, and turns changes into updates for package pnc. It is
// pure: events and the time go in, updates come out.
type rib struct {
	policy   learning
	peers    map[netip.Addr]*ribPeer
	vrf      // the unicast routes
	contexts map[string]*vpnVRF
	total    map[pnc.DisregardReason]uint64
	out      learned

	unmatched uint64 // announcements of VPN routes that no context imports
}

// vrf is the routes of one context.
type vrf struct {
	prefixes map[netip.Prefix][]*path // sorted by neighbour, RD, then path identifier
	dirty    map[netip.Prefix]struct{}
}

func newVRF() vrf {
	return vrf{prefixes: map[netip.Prefix][]*path{}, dirty: map[netip.Prefix]struct{}{}}
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

// path is one path as kept.
type path struct {
	peer  *ribPeer
	id    uint32
	stale bool // kept through a restart
	// longLived makes it the least preferred: kept beyond the restart time here or elsewhere.
	longLived   bool
	noLongLived bool // it must not be kept that long
	best        bool
	published   bool // as it is now
	told        bool // the sink knows this path, maybe as it was before
	localPref   uint32
	med         uint32
	neighborAS  uint32
	asPathLen   int
	clusters    int
	origin      uint8
	originator  netip.Addr // ORIGINATOR_ID, or the peer's BGP Identifier
	nhcPath
	verdict verdict
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
		total: map[pnc.DisregardReason]uint64{},
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
	for prefix, paths := range v.prefixes {
		if !slices.ContainsFunc(paths, which) {
			continue
		}
		var kept []*path
		for _, x := range paths {
			if which(x) {
				r.gone(context, prefix, x)
			} else {
				kept = append(kept, x)
			}
		}
		v.keep(prefix, kept)
	}
}

// gone counts a path out and tells the sink when it knows the path.
func (r *rib) gone(context string, prefix netip.Prefix, x *path) {
	x.count(-1)
	if !x.told {
		return
	}
	x.told = false
	r.out.updates = append(r.out.updates, pnc.Update{Withdraw: true, Route: pnc.Route{
		Context: context, Prefix: prefix, Source: pnc.SourceBGP, Peer: x.peer.name, RD: x.rd(), PathID: x.id}})
}

func (v *vrf) keep(prefix netip.Prefix, paths []*path) {
	if len(paths) == 0 {
		delete(v.prefixes, prefix)
		delete(v.dirty, prefix)
		return
	}
	v.prefixes[prefix] = paths
	v.dirty[prefix] = struct{}{}
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
	x := newPath(p, from)
	if from.Stale && !x.replayed(f) {
		return // it has left already
	}
	if f.VPN() {
		r.vpnPath(from, x)
		return
	}
	if !from.Withdrawn && p.permits(from.Prefix) {
		x.verdict = r.policy.judge(&x.nhcPath, &p.peerInfo)
		r.report(r.policy.context, from.Prefix, x)
	}
	if from.Withdrawn || !p.accept || !p.in.prefixes.Permits(from.Prefix) || r.policy.looped(from, &p.peerInfo) {
		r.remove(r.policy.context, &r.vrf, from.Prefix, x)
		return
	}
	r.vrf.put(from.Prefix, x)
}

// remove takes out the path that x would replace.
func (r *rib) remove(context string, v *vrf, prefix netip.Prefix, x *path) {
	paths := v.prefixes[prefix]
	if at, found := slices.BinarySearchFunc(paths, x, comparePath); found {
		r.gone(context, prefix, paths[at])
		v.keep(prefix, slices.Delete(paths, at, at+1))
	}
}

// put takes in a path, in the place of the one with the same identity.
func (v *vrf) put(prefix netip.Prefix, x *path) {
	paths := v.prefixes[prefix]
	at, found := slices.BinarySearchFunc(paths, x, comparePath)
	if found {
		paths[at].count(-1)
		x.told = paths[at].told
		paths[at] = x
	} else {
		paths = slices.Insert(paths, at, x)
	}
	x.count(1)
	v.keep(prefix, paths)
}

func comparePath(x, y *path) int {
	if c := x.peer.addr.Compare(y.peer.addr); c != 0 {
		return c
	}
	if c := compareRD(x, y); c != 0 {
		return c
	}
	return cmp.Compare(x.id, y.id)
}

func newPath(p *ribPeer, from *engine.Path) *path {
	originator := from.OriginatorID
	if !originator.IsValid() {
		originator = from.PeerID
	}
	x := &path{
		peer: p, id: from.PathID, localPref: from.LocalPref, med: from.MED, neighborAS: from.NeighborAS,
		asPathLen: from.ASPathLen, clusters: len(from.ClusterList), origin: from.Origin, originator: originator,
		nhcPath: nhcPath{
			v6: from.Prefix.Addr().Is6(), nextHop: from.NextHop, peerID: from.PeerID, from: p.broughtBy(from), untagged: !p.in.tagged(from.Communities),
			hasNHC: from.HasNHC, nhcFlags: from.NHCFlags, nhc: from.NHC,
		},
	}
	x.communities(from.Communities)
	return x
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
	x.verdict.problems = nil // reported; not worth the memory
}

// rejudge applies a changed policy to every path.
func (r *rib) rejudge(l learning) learned {
	if l.context != r.policy.context {
		// The context is part of a route's identity.
		for prefix, paths := range r.prefixes {
			for _, x := range paths {
				r.gone(r.policy.context, prefix, x)
				x.count(1)
				x.published = false
			}
		}
	}
	r.policy = l
	for name, v := range r.vrfs() {
		for prefix, paths := range v.prefixes {
			for _, x := range paths {
				x.count(-1)
				x.verdict = l.judge(&x.nhcPath, &x.peer.peerInfo)
				x.count(1)
				x.published = false
				r.report(name, prefix, x)
			}
			v.dirty[prefix] = struct{}{}
		}
	}
	return r.flush()
}

// flush selects the best paths of the prefixes that changed and gives what the sink has to know.
func (r *rib) flush() learned {
	for name, v := range r.vrfs() {
		r.out.updates = slices.Grow(r.out.updates, len(v.dirty))
		for prefix := range v.dirty {
			paths := v.prefixes[prefix]
			b := best(paths)
			for _, x := range paths {
				if isBest := x == b; x.best != isBest || !x.published {
					x.best, x.published, x.told = isBest, true, true
					r.out.updates = append(r.out.updates, pnc.Update{Route: r.route(name, prefix, x)})
				}
			}
		}
		clear(v.dirty)
	}
	out := r.out
	r.out = learned{}
	return out
}

func (r *rib) route(context string, prefix netip.Prefix, x *path) pnc.Route {
	originator := ""
	if x.originator.IsValid() {
		originator = x.originator.String()
	}
	return pnc.Route{
		Context: context, Prefix: prefix, Source: pnc.SourceBGP,
		Proxy: x.verdict.proxy, NextHop: x.nextHop, Originator: originator,
		Peer: x.peer.name, RD: x.rd(), PathID: x.id, Best: x.best, Stale: x.stale, LongLived: x.longLived,
		Partial: x.verdict.partial, Disregarded: x.verdict.reason,
	}
}
