package bgp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pncd/bgp/engine"
	"pncd/pnc"
)

// table keeps what a sink would have.
type table struct {
	t      *testing.T
	r      *rib
	now    time.Time
	routes map[pnc.RouteID]pnc.Route
	events []pnc.Event
}

var (
	peer1 = addr("192.0.2.1")
	peer2 = addr("192.0.2.2")
	pfx   = prefix("203.0.113.0/24")
)

func newTable(t *testing.T) *table {
	tb := &table{t: t, r: newRIB(testLearning()), now: time.Unix(1000, 0), routes: map[pnc.RouteID]pnc.Route{}}
	for _, a := range []netip.Addr{peer1, peer2} {
		tb.r.addPeer(a, peerInfo{addr: a, name: a.String(), accept: true})
	}
	return tb
}

func (tb *table) take(l learned) {
	for _, u := range l.updates {
		id := u.Route.ID()
		if _, ok := tb.routes[id]; u.Withdraw {
			if !ok {
				tb.t.Errorf("withdrawn, but never announced: %+v", id)
			}
			delete(tb.routes, id)
		} else {
			tb.routes[id] = u.Route
		}
	}
	tb.events = append(tb.events, l.disregarded...)
	// The counts by neighbour always fit what is there.
	n := map[string]int{}
	for id := range tb.routes {
		n[id.Peer]++
	}
	for _, p := range tb.r.peers {
		if p.paths != n[p.name] {
			tb.t.Errorf("%s: %d paths counted, %d there", p.name, p.paths, n[p.name])
		}
	}
}

func (tb *table) apply(evs ...engine.Event) { tb.take(tb.r.apply(tb.now, evs)) }

func (tb *table) get(peer netip.Addr, id uint32) *pnc.Route {
	r, ok := tb.routes[pnc.RouteID{Source: pnc.SourceBGP, Prefix: pfx, Peer: peer.String(), PathID: id}]
	if !ok {
		return nil
	}
	return &r
}

func pathEvent(t *testing.T, peer netip.Addr, id uint32, edit func(*engine.Path)) engine.Event {
	p := engine.Path{Prefix: pfx, PathID: id, PeerID: peer, NextHop: addr("198.51.100.1"), LocalPref: 100,
		HasNHC: true, NHCFlags: 0xc0, NHC: unhex(t, head4+pnc7)}
	if edit != nil {
		edit(&p)
	}
	return engine.Event{Kind: engine.EventPath, Peer: peer, Family: engine.IPv4Unicast, Path: p}
}

func withdrawal(peer netip.Addr, id uint32) engine.Event {
	return engine.Event{Kind: engine.EventPath, Peer: peer, Path: engine.Path{Prefix: pfx, PathID: id, Withdrawn: true}}
}

func state(peer netip.Addr, s engine.State, keep bool) engine.Event {
	return engine.Event{Kind: engine.EventState, Peer: peer, State: s, Keep: keep}
}

func TestEveryPathIsARouteWithOrWithoutPNC(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, nil), pathEvent(t, peer2, 7, func(p *engine.Path) { p.HasNHC = false; p.LocalPref = 200 }))
	with, without := tb.get(peer1, 0), tb.get(peer2, 7)
	if with == nil || !with.Believed() || with.Best || with.NextHop != addr("198.51.100.1") || with.Originator != "192.0.2.1" {
		t.Errorf("with PNC: %+v", with)
	}
	if without == nil || without.Proxy.IsValid() || !without.Best {
		t.Errorf("without PNC: %+v", without)
	}
	// The best one goes: the other becomes best, though nothing was said about it.
	tb.apply(withdrawal(peer2, 7))
	if r := tb.get(peer1, 0); r == nil || !r.Best || tb.get(peer2, 7) != nil {
		t.Errorf("after the withdrawal: %+v", tb.routes)
	}
}

func TestPNCNeverChangesTheSelection(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, func(p *engine.Path) { p.HasNHC = false }), pathEvent(t, peer2, 0, nil))
	if !tb.get(peer1, 0).Best || tb.get(peer2, 0).Best {
		t.Errorf("the lower router ID must win, PNC or not: %+v", tb.routes)
	}
}

func TestPathsOfOnePeerAreToldApartByTheirIdentifier(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 1, nil), pathEvent(t, peer1, 2, nil), withdrawal(peer1, 1), withdrawal(peer1, 9))
	if tb.get(peer1, 1) != nil || tb.get(peer1, 2) == nil {
		t.Errorf("%+v", tb.routes)
	}
}

func TestASessionThatEndsTakesItsPathsAlong(t *testing.T) {
	tb := newTable(t)
	tb.apply(state(peer1, engine.StateEstablished, false), pathEvent(t, peer1, 0, nil), pathEvent(t, peer2, 0, nil))
	tb.apply(state(peer1, engine.StateIdle, false))
	if tb.get(peer1, 0) != nil || tb.get(peer2, 0) == nil || !tb.get(peer2, 0).Best {
		t.Errorf("%+v", tb.routes)
	}
	tb.take(tb.r.removePeer(peer2))
	if len(tb.routes) != 0 {
		t.Errorf("after removal: %+v", tb.routes)
	}
}

func TestDisregardsAreCountedByNeighbourAndReported(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, func(p *engine.Path) { p.NextHop = addr("198.51.100.2") }))
	r := tb.get(peer1, 0)
	if r == nil || r.Believed() || r.Disregarded != pnc.DisregardNextHopMismatch || r.Proxy != addr("192.0.2.7") {
		t.Errorf("route %+v", r)
	}
	if n := tb.r.peers[peer1].disregarded[pnc.DisregardNextHopMismatch]; n != 1 || tb.r.peers[peer1].nhc != 1 || tb.r.peers[peer1].believed != 0 {
		t.Errorf("counted %d, %+v", n, tb.r.peers[peer1])
	}
	if len(tb.events) != 1 || tb.events[0].Reason != pnc.DisregardNextHopMismatch || tb.events[0].Detail == "" || tb.events[0].Route.Prefix != pfx {
		t.Errorf("reported %+v", tb.events)
	}
}

func TestALoopedPathReplacesTheOneBefore(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, nil))
	tb.apply(pathEvent(t, peer1, 0, func(p *engine.Path) { p.ClusterList = []netip.Addr{tb.r.policy.routerID} }))
	if len(tb.routes) != 0 {
		t.Errorf("the path that was replaced is still there: %+v", tb.routes)
	}
}

func TestAPathWithoutReadableNextHopIsARouteAndNeverBest(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, func(p *engine.Path) { p.NextHop, p.HasNHC, p.LocalPref = netip.Addr{}, false, 900 }), pathEvent(t, peer2, 0, nil))
	if r := tb.get(peer1, 0); r == nil || r.Best || !tb.get(peer2, 0).Best {
		t.Errorf("%+v", tb.routes)
	}
}

func TestAChangedPolicyIsAppliedToWhatIsThere(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, nil))
	l := tb.r.policy
	l.accept = []netip.Prefix{prefix("10.0.0.0/8")}
	tb.take(tb.r.rejudge(l))
	if r := tb.get(peer1, 0); r.Disregarded != pnc.DisregardProxyNotAccepted || tb.r.peers[peer1].believed != 0 || len(tb.events) != 1 {
		t.Errorf("%+v, events %+v", r, tb.events)
	}
	l.accept = nil
	tb.take(tb.r.rejudge(l))
	if r := tb.get(peer1, 0); !r.Believed() || tb.r.peers[peer1].believed != 1 {
		t.Errorf("back again: %+v", r)
	}
	l.context = "blue"
	tb.take(tb.r.rejudge(l))
	if len(tb.routes) != 1 || tb.get(peer1, 0) != nil {
		t.Errorf("another context: %+v", tb.routes)
	}
}

func TestTheDecisionProcessTakesItsStepsInOrder(t *testing.T) {
	ibgp := &ribPeer{peerInfo: peerInfo{addr: peer1}}
	ebgp := &ribPeer{peerInfo: peerInfo{addr: peer2, ebgp: true}}
	base := path{id: 5, attributes: &attributes{peer: ibgp, localPref: 100, asPathLen: 2, origin: 1, med: 50, neighborAS: 65001, originator: addr("192.0.2.50"), clusters: 1}}
	// Each step's winner is worse in every later step.
	base.longLived, base.nextHop = true, addr("198.51.100.1")
	for i, edit := range []func(*path){
		func(p *path) { p.longLived = false; p.localPref = 0 }, // RFC 9494 section 4.3
		func(p *path) { p.localPref = 101; p.asPathLen = 9 },
		func(p *path) { p.asPathLen = 1; p.origin = 2 },
		func(p *path) { p.origin = 0; p.med = 99 },
		func(p *path) { p.med = 49; p.originator = addr("192.0.2.99") },
		func(p *path) { p.peer = ebgp; p.originator = addr("192.0.2.99") },
		func(p *path) { p.originator = addr("192.0.2.49"); p.clusters = 3 },
		func(p *path) { p.clusters = 0; p.peer = &ribPeer{peerInfo: peerInfo{addr: addr("192.0.2.200")}} },
		func(p *path) { p.peer = &ribPeer{peerInfo: peerInfo{addr: addr("192.0.2.0")}}; p.id = 9 },
		func(p *path) { p.id = 4 },
	} {
		a, b := base, base
		own := *base.attributes
		a.attributes = &own
		edit(&a)
		if best(slices.Values([]*path{&a, &b})) != &a || best(slices.Values([]*path{&b, &a})) != &a {
			t.Errorf("step %d isn't taken", i+1)
		}
	}
	a, b := base, base
	own := *base.attributes
	a.attributes = &own
	a.med, a.neighborAS, a.id = 999, 65002, 4
	if best(slices.Values([]*path{&b, &a})) != &a {
		t.Error("MEDs of different neighbouring ASes were compared")
	}
}
