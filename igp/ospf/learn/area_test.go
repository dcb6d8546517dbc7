package learn

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/packet"
)

var (
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	prefix  = netip.MustParsePrefix("10.1.0.0/24")
	proxy   = netip.MustParseAddr("192.0.2.9")
	pacing  = backoff.Config{Initial: 50 * time.Millisecond, Second: 200 * time.Millisecond, Max: time.Second}
	carrier = marks.Carrier{Bit: 2}
)

// IDs of the routers: the one that paths are counted from, and two others.
const (
	root packet.ID = iota + 1
	two
	three
)

// bench is an area with its database.
type bench struct {
	t   *testing.T
	a   *Area
	db  *lsdb.DB
	now time.Time
}

func newBench(t *testing.T, own bool) *bench {
	return &bench{t: t, now: start, db: lsdb.New(0), a: New(Config{Version: packet.V2, Router: root, Own: own, Carrier: carrier, SPF: pacing}, 7)}
}

func (b *bench) put(typ packet.LSType, id, adv packet.ID, body []byte) packet.Key {
	b.t.Helper()
	h := packet.Header{Key: packet.Key{Type: typ, ID: id, Adv: adv}, Sequence: packet.InitialSequence}
	l, err := packet.NewLSA(packet.V2, h, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, _, err := b.db.Install(b.now, l, false); err != nil {
		b.t.Fatal(err)
	}
	b.a.Changed(adv)
	return h.Key
}

// router puts a router LSA with point-to-point links of cost 10.
func (b *bench) router(of packet.ID, to ...packet.ID) packet.Key {
	b.t.Helper()
	var r packet.V2RouterLSA
	for _, n := range to {
		r.Links = append(r.Links, packet.V2Link{ID: n, Kind: packet.LinkPointToPoint, Metric: 10})
	}
	return b.put(packet.V2Router, of, of, r.Append(nil))
}

// mark puts an Extended Prefix LSA, with the P flag or without.
func (b *bench) mark(of packet.ID, p bool) packet.Key {
	b.t.Helper()
	x := packet.V2ExtendedPrefix{RouteType: packet.RouteIntraArea, Prefix: prefix, Subs: []packet.TLV{{Type: packet.V2SubSourceRouterAddr, Value: proxy.AsSlice()}}}
	if p {
		x.Subs = append(x.Subs, packet.TLV{Type: packet.V2SubPrefixFlags, Value: packet.WithFlagBit(carrier.Bit)})
	}
	return b.put(packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, 1), of, x.Append(nil))
}

func (b *bench) remove(k packet.Key) {
	b.db.Remove(k)
	b.a.Changed(k.Adv)
}

// learns lets time pass, and fails the test when what is learned meanwhile is not this.
func (b *bench) learns(when string, want ...igp.Learned) {
	b.t.Helper()
	got := b.a.Learn(b.now, b.db)
	for at := b.a.Wake(); !at.IsZero(); at = b.a.Wake() {
		b.now = at
		got = append(got, b.a.Learn(b.now, b.db)...)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("%s: learned %+v\nwant %+v", when, got, want)
	}
}

func marked(of packet.ID, cost uint32) igp.Learned {
	return igp.Learned{Prefix: prefix, Originator: of.String(), Area: 7, P: true, Proxy: proxy, Cost: cost}
}

func gone(of packet.ID) igp.Learned {
	return igp.Learned{Prefix: prefix, Originator: of.String(), Area: 7, Gone: true}
}

func TestAMarkCountsWhileItsRouterIsReachable(t *testing.T) {
	b := newBench(t, false)
	b.mark(three, true)
	b.router(three, two)
	b.learns("not reachable")
	b.router(root, two)
	b.router(two, root, three)
	b.learns("reachable", marked(three, 20))
	b.router(two, root) // two-way check: three still names two
	b.learns("cut off", gone(three))
	b.router(two, root, three)
	b.learns("again", marked(three, 20))
	b.router(root, two, three)
	b.router(three, two, root)
	b.learns("nearer", marked(three, 10))
	b.mark(three, false)
	b.learns("not marked any more", igp.Learned{Prefix: prefix, Originator: three.String(), Area: 7, Cost: 10})
	k := b.mark(three, true)
	b.learns("marked again", marked(three, 10))
	b.remove(k)
	b.learns("flushed", gone(three))
}

func TestAnLSAAtMaxAgeDoesNotCount(t *testing.T) {
	b := newBench(t, false)
	b.router(root, two)
	b.router(two, root)
	b.mark(two, true)
	b.learns("fresh", marked(two, 10))
	b.now = b.now.Add(packet.MaxAge * time.Second)
	b.a.Changed(two)
	b.learns("old", gone(two))
}

func TestOfTheRootOnlyWhatIsAskedFor(t *testing.T) {
	for _, own := range []bool{false, true} {
		b := newBench(t, own)
		b.router(root)
		b.mark(root, true)
		if own {
			b.learns("own", marked(root, 0))
		} else {
			b.learns("not own")
		}
	}
}

func TestLinksThatFlapDoNotMakeSPFRunEachTime(t *testing.T) {
	b := newBench(t, false)
	b.router(root, two)
	for range 100 { // 10 ms apart
		b.router(two, root)
		b.a.Learn(b.now, b.db)
		b.router(two)
		b.now = b.now.Add(10 * time.Millisecond)
		b.a.Learn(b.now, b.db)
	}
	if n := b.a.Status().SPFRuns; n > 5 {
		t.Errorf("SPF ran %d times in a second", n)
	}
}

func TestRunsAreSpacedAsLastSaid(t *testing.T) {
	b := newBench(t, false)
	b.a.Retime(backoff.Config{Initial: 300 * time.Millisecond, Second: 300 * time.Millisecond, Max: time.Second})
	b.router(root, two)
	b.a.Learn(b.now, b.db)
	if at := b.a.Wake(); !at.Equal(b.now.Add(300 * time.Millisecond)) {
		t.Errorf("SPF runs %s later", at.Sub(b.now))
	}
}

func TestReplayAndLeave(t *testing.T) {
	b := newBench(t, false)
	b.router(root, two)
	b.router(two, root)
	b.mark(two, true)
	b.learns("at first", marked(two, 10))
	if got := b.a.Replay(); !slices.Equal(got, []igp.Learned{marked(two, 10)}) {
		t.Errorf("replay: %+v", got)
	}
	for router, l := range b.a.Told() {
		if router != two || l != marked(two, 10) {
			t.Errorf("told %s %+v", router, l)
		}
	}
	b.learns("nothing new")
	if got := b.a.Leave(); !slices.Equal(got, []igp.Learned{gone(two)}) {
		t.Errorf("leave: %+v", got)
	}
	if got := b.a.Replay(); got != nil {
		t.Errorf("replay of nothing: %+v", got)
	}
	b.learns("believed again", marked(two, 10))
}

func TestStatusCounts(t *testing.T) {
	b := newBench(t, false)
	b.router(root, two)
	b.router(two, root)
	b.router(three) // not reachable
	b.mark(two, true)
	b.put(packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, 1), three, []byte{0, 1, 0, 99}) // longer than the LSA
	b.learns("at first", marked(two, 10))
	st := b.a.Status()
	if st.Routers != 2 || st.Reachable != 1 || st.Prefixes != 1 || st.Marked != 1 || st.Unreadable != 1 || st.SPFRuns != 1 || !st.SPFRan.Equal(b.now) {
		t.Errorf("%+v", st)
	}
	if c := b.a.Cost(two); c != 10 {
		t.Errorf("cost %d", c)
	}
}
