package bgp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"unsafe"

	"pncd/bgp/engine"
	"pncd/pnc"
)

// A full table is millions of paths: what one needs is what the process needs.
func TestWhatPathsHaveInCommonIsKeptOnce(t *testing.T) {
	if size := unsafe.Sizeof(path{}); size > 24 {
		t.Errorf("a path has %d octets", size)
	}
	tb := newTable(t)
	const prefixes, kinds = 1000, 7
	for i := range prefixes {
		tb.apply(pathEvent(t, peer1, 0, func(p *engine.Path) {
			p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
			p.MED = uint32(i % kinds)
		}))
	}
	different := map[*attributes]bool{}
	for _, x := range tb.r.prefixes.all() {
		different[x.attributes] = true
	}
	if len(different) != kinds || tb.r.prefixes.len() != prefixes {
		t.Errorf("%d prefixes with %d kinds of attributes keep %d", tb.r.prefixes.len(), kinds, len(different))
	}
	if tb.take(tb.r.dropAll()); tb.r.prefixes.len() != 0 || len(tb.routes) != 0 {
		t.Errorf("%d prefixes and %d routes are left", tb.r.prefixes.len(), len(tb.routes))
	}
}

// Whatever an announcement says must be told apart from what was seen before.
func TestAttributesThatDifferAreNotTakenForEachOther(t *testing.T) {
	rd, target := engine.RD{1}, engine.RouteTarget{2}
	for name, edit := range map[string]func(*attributes){
		"neighbour":     func(a *attributes) { a.peer = &ribPeer{} },
		"LOCAL_PREF":    func(a *attributes) { a.localPref++ },
		"MED":           func(a *attributes) { a.med++ },
		"first AS":      func(a *attributes) { a.neighborAS++ },
		"AS_PATH":       func(a *attributes) { a.asPathLen++ },
		"CLUSTER_LIST":  func(a *attributes) { a.clusters++ },
		"ORIGIN":        func(a *attributes) { a.origin++ },
		"originator":    func(a *attributes) { a.originator = peer2 },
		"NO_LLGR":       func(a *attributes) { a.noLongLived = true },
		"LLGR_STALE":    func(a *attributes) { a.llgrStale = true },
		"family":        func(a *attributes) { a.v6 = true },
		"next hop":      func(a *attributes) { a.nextHop = peer2 },
		"identifier":    func(a *attributes) { a.peerID = peer2 },
		"from":          func(a *attributes) { a.from = [4]byte{1} },
		"context":       func(a *attributes) { a.vpn = &vpnPath{context: &inbound{}} },
		"communities":   func(a *attributes) { a.untagged = true },
		"NHC":           func(a *attributes) { a.hasNHC = true },
		"NHC flags":     func(a *attributes) { a.nhcFlags = 0xe0 },
		"NHC value":     func(a *attributes) { a.nhc = []byte{1} },
		"VPN":           func(a *attributes) { a.vpn = &vpnPath{} },
		"RD":            func(a *attributes) { a.vpn = &vpnPath{rd: rd} },
		"route targets": func(a *attributes) { a.vpn = &vpnPath{targets: []engine.RouteTarget{target}} },
	} {
		a := attributes{peer: &ribPeer{peerInfo: peerInfo{addr: peer1}}}
		b := a
		if !a.same(&b) {
			t.Fatal("equal ones differ")
		}
		edit(&b)
		if a.same(&b) || b.same(&a) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestTheSameAnnouncementAgainIsNoChange(t *testing.T) {
	tb := newTable(t)
	ev := pathEvent(t, peer1, 0, nil)
	tb.apply(ev)
	if out := tb.r.apply(tb.now, []engine.Event{ev}); len(out.updates) != 0 {
		t.Errorf("%+v", out.updates)
	}
	// One whose PNC is not believed is reported each time.
	bad := pathEvent(t, peer1, 0, func(p *engine.Path) { p.NextHop = addr("198.51.100.99") })
	for range 3 {
		tb.apply(bad)
	}
	if n := tb.r.total[pnc.DisregardNextHopMismatch]; n != 3 || len(tb.events) != 3 {
		t.Errorf("%d counted, %d told", n, len(tb.events))
	}
	if tb.apply(ev); !tb.get(peer1, 0).Believed() {
		t.Errorf("%+v", tb.get(peer1, 0))
	}
}

func TestAChangedPolicyIsNotAnsweredFromWhatWasSeenBefore(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, nil))
	if !tb.get(peer1, 0).Believed() {
		t.Fatal("not believed")
	}
	l := testLearning()
	l.accept = []netip.Prefix{prefix("198.51.100.0/24")}
	tb.take(tb.r.rejudge(l))
	tb.apply(pathEvent(t, peer1, 1, nil))
	for id := range uint32(2) {
		if r := tb.get(peer1, id); r.Disregarded != pnc.DisregardProxyNotAccepted {
			t.Errorf("path %d: %+v", id, r)
		}
	}
}

// TestPrefixMap does the same to a map of sorted slices.
func TestPrefixMap(t *testing.T) {
	w := rand.New(rand.NewPCG(3, 4))
	peers := []*ribPeer{{peerInfo: peerInfo{addr: peer1}}, {peerInfo: peerInfo{addr: peer2}}}
	m, model := newPrefixMap(), map[netip.Prefix][]*path{}
	var prefixes []netip.Prefix
	for i := range 8 {
		prefixes = append(prefixes, prefix(fmt.Sprintf("10.0.%d.0/24", i)), prefix(fmt.Sprintf("10.0.0.0/%d", i)), prefix(fmt.Sprintf("2001:db8:%d::/48", i)))
	}
	for step := range 20_000 {
		p := prefixes[w.IntN(len(prefixes))]
		if w.IntN(2) == 0 {
			x := &path{attributes: &attributes{peer: peers[w.IntN(2)]}, id: uint32(w.IntN(5))}
			at, found := slices.BinarySearchFunc(model[p], x, comparePath)
			if got := m.insert(p, x); found != (got != nil) || found && got != model[p][at] {
				t.Fatalf("step %d: insert gave %v", step, got)
			}
			if !found {
				model[p] = slices.Insert(model[p], at, x)
			}
		} else {
			peer, id := peers[w.IntN(2)], uint32(w.IntN(5))
			which := func(x *path) bool { return x.peer == peer && x.id >= id }
			if got := m.remove(p, m.first(p), which); got != slices.ContainsFunc(model[p], which) {
				t.Fatalf("step %d: remove gave %v", step, got)
			}
			if model[p] = slices.DeleteFunc(model[p], which); len(model[p]) == 0 {
				delete(model, p)
			}
		}
		if got := slices.Collect(m.first(p).list()); !slices.Equal(got, model[p]) {
			t.Fatalf("step %d: %s has %v, want %v", step, p, got, model[p])
		}
		if m.len() != len(model) {
			t.Fatalf("step %d: %d prefixes, want %d", step, m.len(), len(model))
		}
	}
	for p, first := range m.all() {
		if !slices.Equal(slices.Collect(first.list()), model[p]) {
			t.Errorf("%s differs", p)
		}
		delete(model, p)
	}
	if len(model) != 0 {
		t.Errorf("not gone through: %v", model)
	}
}
