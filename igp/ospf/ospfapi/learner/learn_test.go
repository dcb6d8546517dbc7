package learner

import (
	"net/netip"
	"slices"
	"testing"

	"pncd/igp"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
)

var (
	prefix = netip.MustParsePrefix("10.1.0.0/24")
	proxy  = netip.MustParseAddr("192.0.2.9")
)

// marked is an Extended Prefix LSA with the P flag.
func marked(t testing.TB, of packet.ID, number int32) packet.LSA {
	t.Helper()
	x := packet.V2ExtendedPrefix{RouteType: packet.RouteIntraArea, Prefix: prefix, Subs: []packet.TLV{
		{Type: packet.V2SubSourceRouterAddr, Value: proxy.AsSlice()}, {Type: packet.V2SubPrefixFlags, Value: packet.WithFlagBit(2)},
	}}
	return lsa(t, packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, 1), of, number, x.Append(nil))
}

// learning is a daemon whose router reaches router2, which marks a prefix.
func learning(t *testing.T) *daemon {
	t.Helper()
	d := newDaemon(t, Config{Carrier: marks.Carrier{Bit: 2}})
	d.lsas = []packet.LSA{routerLSA(t, ownRouter, 0, router2), routerLSA(t, router2, 0, ownRouter), marked(t, router2, 0)}
	d.connect()
	d.learns("at first", there)
	return d
}

var (
	there = igp.Learned{Prefix: prefix, Originator: router2.String(), P: true, Proxy: proxy, Cost: 10}
	gone  = igp.Learned{Prefix: prefix, Originator: router2.String(), Gone: true}
)

// learns lets SPF run, and fails the test when what was learned since the last call is not this.
func (d *daemon) learns(when string, want ...igp.Learned) {
	d.t.Helper()
	d.pass(d.m.cfg.SPF.Max)
	if got := d.m.Learned(); !slices.Equal(got, want) {
		d.t.Errorf("%s: learned %+v\nwant %+v", when, got, want)
	}
}

func TestAMarkIsLearnedAndWithdrawn(t *testing.T) {
	d := learning(t)
	d.delete(d.lsas[2])
	d.learns("the mark is gone", gone)
	d.update(d.lsas[2])
	d.learns("the mark is there again", there)
	d.delete(d.lsas[0])
	d.update(routerLSA(t, ownRouter, 1))
	d.learns("its router is not reachable", gone)
}

func TestANewInstanceIsNoReasonToWithdraw(t *testing.T) {
	d := learning(t)
	d.delete(d.lsas[2])
	d.update(marked(t, router2, 1))
	d.learns("refreshed")
}

func TestNothingIsLearnedFromHalfADatabase(t *testing.T) {
	d := learning(t)
	d.m.Disconnected(d.now)
	d.m.Connected(d.now, 9, nil)
	d.update(routerLSA(t, ownRouter, 1))
	d.learns("half of it") // without the connection to router2
	d.lsas[0], d.lsas[1] = routerLSA(t, ownRouter, 1), routerLSA(t, router2, 1)
	d.connect()
	d.learns("all of it", gone)
}

func TestWithoutTheDaemonEverythingIsWithdrawnLater(t *testing.T) {
	d := learning(t)
	d.m.Disconnected(d.now)
	d.pass(DefaultHold - 1)
	if got := d.m.Learned(); got != nil {
		t.Fatalf("learned %+v", got)
	}
	d.m.Replay()
	if got := d.m.Learned(); !slices.Equal(got, []igp.Learned{there}) {
		t.Errorf("replay: %+v", got)
	}
	d.pass(1)
	if got := d.m.Learned(); !slices.Equal(got, []igp.Learned{gone}) {
		t.Errorf("learned %+v", got)
	}
	d.connect()
	d.learns("again", there)
}

func TestWhatADaemonThatIsNotReadyForLongSaidIsWithdrawn(t *testing.T) {
	d := learning(t)
	d.m.Disconnected(d.now)
	d.instance = false
	d.connect()
	d.pass(DefaultHold)
	d.learns("no instance", gone)
	d.instance = true
	d.news(0, message.NewInterface{Interface: itsAddr})
	d.learns("again", there)
}

func TestAnotherRouterIDSeesOtherPaths(t *testing.T) {
	d := learning(t)
	renamed := ownRouter + 8
	d.news(0, message.RouterID{ID: renamed})
	d.learns("an ID that nobody announces", gone)
	d.update(routerLSA(t, renamed, 0, router2))
	d.update(routerLSA(t, router2, 1, renamed))
	d.learns("announced", there)
}

func TestAreasAreLearnedApart(t *testing.T) {
	d := learning(t)
	for _, l := range d.lsas {
		d.news(0, message.LSAChange{Area: 5, LSA: l})
	}
	of5, gone5 := there, gone
	of5.Area, gone5.Area = 5, 5
	d.learns("a second area", of5)
	d.m.Replay()
	d.learns("replay", there, of5)
	for _, l := range d.lsas {
		d.news(0, message.LSAChange{Deleted: true, Area: 5, LSA: l})
	}
	d.learns("it is left", gone5)
	if st := d.m.Status(); len(st.Areas) != 1 || st.Areas[0].Marked != 1 || st.Areas[0].LSAs != 3 {
		t.Errorf("%+v", st.Areas)
	}
}

func TestTheMirrorSaysWhichRoutersAreReachable(t *testing.T) {
	d := learning(t)
	d.update(routerLSA(t, 77, 0, router2)) // which doesn't say so of it
	d.pass(d.m.cfg.SPF.Max)
	want := map[packet.ID]bool{ownRouter: true, router2: true, 77: false}
	list := d.m.LSAs(d.now, packet.Backbone)
	if len(list) != 4 {
		t.Errorf("%d LSAs", len(list))
	}
	for _, l := range list {
		if l.Reachable != want[l.Adv] || l.Age > 60 {
			t.Errorf("%s: reachable %t, age %d", l.Key, l.Reachable, l.Age)
		}
	}
	if got := d.m.LSAs(d.now, 9); got != nil {
		t.Errorf("of an area that isn't there: %v", got)
	}
}
