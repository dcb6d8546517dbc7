package flowmap

import (
	"maps"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel/kerneltest"
)

// selecting makes a lab whose tap selects, and shows nothing of a followed flow for an hour unless it steps.
func selecting(t *testing.T) *lab {
	l := newLab(t, Config{})
	l.selector = newSelector(l.m, time.Hour, 0)
	return l
}

// followed returns such a lab with a pair decided by the port formula, which the tap has been told to follow.
func following(t *testing.T) (*lab, conn) {
	l := selecting(t)
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	l.exchange(n, highStart, 6)
	l.paired(n, SourcePort)
	l.sight(n, Followed)
	return l, n
}

// flow is the tap's record of a flow.
func (l *lab) flow(f flow) *kerneltest.Flow {
	l.t.Helper()
	fl := l.selector.model.Flows[kerneltest.Key{Src: f.from, Dst: f.to, DestQP: f.qp, SrcPort: f.port, VLAN: f.vlan}]
	if fl == nil {
		l.t.Fatalf("the tap has no flow %v", f.key())
	}
	return fl
}

func (l *lab) sight(n conn, want Sight) {
	l.t.Helper()
	for _, f := range []flow{n.ab, n.ba} {
		if got := Sight(l.flow(f).State); got != want {
			l.t.Fatalf("%v is %v, want %v", f.key(), got, want)
		}
	}
}

func TestFollowedPairIsShownNothingWhileItGoesOn(t *testing.T) {
	l, n := following(t)
	before := l.selector.shown
	l.exchange(n, highStart+6, 70_000) // further than any step and window of rule 8
	if shown := l.selector.shown - before; shown != 0 {
		t.Fatalf("%d of 140,000 packets were shown", shown)
	}
	l.m.Seen(FlowID{Key: n.ab.key(), SrcPort: n.ab.port}, Progress{Sight: Followed, LastSeen: l.now})
	l.paired(n, SourcePort)
	if c := l.m.Counters(); c.Withdrawn != 0 || c.Contradicted != 0 {
		t.Fatalf("%+v", c)
	}
}

// What the tap skipped is no jump, and neither a response's distance from the last request that was shown.
func TestSkippedPacketsAreNoStep(t *testing.T) {
	l, n := following(t)
	l.exchange(n, highStart+6, 70_000)
	l.flow(n.ba).State, l.flow(n.ab).State = uint8(Watched), uint8(Watched)
	l.exchange(n, highStart+70_006, 1)
	l.paired(n, SourcePort)
	l.wait(time.Duration(tellDelay))
	l.exchange(n, highStart+70_007, 3)
	l.paired(n, SourcePort)
	l.sight(n, Followed) // nothing is wrong with it: the tap is told again
	if c := l.m.Counters(); c.Withdrawn != 0 {
		t.Fatalf("%+v", c)
	}
}

func TestFollowedPairIsWatchedWhileInDoubt(t *testing.T) {
	l, n := following(t)
	l.exchange(n, highStart+6, 5000)
	l.request(n.ab, highStart+5006+0x10000) // a jump
	l.undecided(n)
	l.sight(n, Watched)
	l.wait(time.Millisecond)
	l.exchange(n, highStart+5006, 2) // in sequence: it was a stray packet
	l.paired(n, SourcePort)
	l.sight(n, Followed)
	for i := range uint32(2) {
		l.request(n.ab, highStart+0x200000+i)
	}
	l.undecided(n)
	l.sight(n, Watched)
}

// reuses are what a flow shows whose QP is used anew.
var reuses = []struct {
	name string
	play func(l *lab, n conn)
}{
	{"another port", func(l *lab, n conn) {
		n.ab.port++
		l.request(n.ab, highStart)
	}},
	{"PSNs of its own", func(l *lab, n conn) {
		l.request(n.ab, 0x100)
		l.request(n.ab, 0x101)
	}},
	{"PSNs from the start again", func(l *lab, n conn) {
		l.wait(200 * time.Millisecond)
		l.request(n.ab, highStart)
	}},
	{"PSNs that the peer has acknowledged", func(l *lab, n conn) {
		l.request(n.ab, highStart+3000)
	}},
	{"another transport", func(l *lab, n conn) { l.packet(n.ab, 0x2A, highStart+5006, true, nil) }},
}

func TestReuseOfAFollowedQPIsNoticed(t *testing.T) {
	for _, c := range reuses {
		t.Run(c.name, func(t *testing.T) {
			l, n := following(t)
			l.exchange(n, highStart+6, 5000)
			l.paired(n, SourcePort)
			c.play(l, n)
			if e, v := l.m.Lookup(n.ab.key(), l.now); v == Hit {
				t.Fatalf("still %+v", e)
			}
		})
	}
}

// A forger's packet is shown, is not believed, and hides nothing of what comes after.
func TestForeignPacketOfAFollowedFlow(t *testing.T) {
	l, n := following(t)
	l.exchange(n, highStart+6, 100)
	forged := n.ab
	forged.mac = 9
	for i := range uint32(5) {
		l.request(forged, 0x900000+i)
	}
	l.paired(n, SourcePort)
	l.sight(n, Followed)
	if c := l.m.Counters(); c.Foreign != 5 {
		t.Fatalf("%d foreign packets, want 5", c.Foreign)
	}
	l.wait(2 * time.Second)                           // nothing for so long:
	l.request(forged, highStart+106)                  // the flow goes another way now
	if f := l.flow(n.ab); f.State != uint8(Watched) { // and the tap must learn that
		t.Fatalf("the tap is told %v", Sight(f.State))
	}
}

func TestTapThatForgotAFlowHoldsTheAnswerBack(t *testing.T) {
	l, n := following(t)
	l.exchange(n, highStart+6, 5000)
	clear(l.selector.model.Flows) // as by eviction
	l.request(n.ab, highStart+5006)
	l.undecided(n)
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+5006)
	l.wait(20 * time.Microsecond)
	l.request(n.ab, highStart+5007)
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+5007)
	l.paired(n, SourcePort)
}

func TestFollowedPairLivesByWhatTheTapHasSeen(t *testing.T) {
	for _, sweep := range []bool{true, false} {
		l, n := following(t)
		for i := range uint32(100) {
			l.exchange(n, highStart+6+i, 1)
			l.wait(time.Second)
			if sweep {
				l.m.Seen(FlowID{Key: n.ab.key(), SrcPort: n.ab.port}, Progress{Sight: Followed, LastSeen: l.now})
				l.paired(n, SourcePort)
			}
			l.m.Tick(l.now) // asks the tap before it ages a pair out
		}
		l.paired(n, SourcePort)
		l.wait(61 * time.Second)
		l.m.Tick(l.now)
		l.want(n.ab, Aged, 0)
	}
}

func TestFollowedPairBeatsAClaimAsLongAsTheTapSeesIt(t *testing.T) {
	l, n := following(t)
	for i := range uint32(5) {
		l.exchange(n, highStart+6+i, 1)
		l.wait(900 * time.Millisecond)
	}
	other := formulaConn(hostA, hostC, 0x11, 0x3300) // A's QP, with C
	l.exchange(other, 0, 6)
	l.undecided(other)
	if l.m.Counters().Refused == 0 {
		t.Fatal("no claim was refused")
	}
	l.paired(n, SourcePort)
	l.wait(1100 * time.Millisecond)
	l.exchange(other, 6, 3)
	l.want(other.ab, Hit, other.ba.qp)
}

func TestTellingsAreBoundedAndNotLost(t *testing.T) {
	l := selecting(t)
	l.selector.told = nil // the daemon is slow
	conns := make([]conn, 20)
	for i := range conns {
		conns[i] = formulaConn(hostA, hostB, 0x100+uint32(i), 0x2000+uint32(i)*7)
		l.exchange(conns[i], highStart+uint32(i)*0x10000, 8)
	}
	told := map[FlowID]Sight{}
	buffer := make([]Telling, 0, 3)
	for range 100 {
		list := l.m.Due(buffer, l.now)
		if len(list) > 3 {
			t.Fatalf("%d tellings in room for 3", len(list))
		}
		for _, d := range list {
			if _, twice := told[d.Flow]; twice {
				t.Fatalf("%v told twice", d.Flow)
			}
			told[d.Flow] = d.Sight
		}
	}
	want := map[FlowID]Sight{}
	for _, n := range conns {
		for _, f := range []flow{n.ab, n.ba} {
			want[FlowID{Key: f.key(), SrcPort: f.port}] = Followed
		}
	}
	if !maps.Equal(told, want) {
		t.Fatalf("told %v", told)
	}
}

// adopted plays a pair in one map, then hands its entries to another one; change is what happens between.
func adopted(t *testing.T, change func(l *lab, n conn)) (l *lab, n conn, count int) {
	t.Helper()
	l, n = following(t)
	l.exchange(n, highStart+6, 5000)
	return l, n, l.restarted(n, change, func() {})
}

// restarted hands the map's entries to another one; first is what that one is shown before.
func (l *lab) restarted(n conn, change func(l *lab, n conn), first func()) (adopted int) {
	var entries []Entry
	l.m.Range(l.now, func(e Entry) bool { entries = append(entries, e); return true })
	f := l.selector
	dead := *l // the map is gone, the tap goes on
	dead.m = nil
	f.m = nil
	change(&dead, n)
	l.now = dead.now
	l.m = New(Config{})
	f.m = l.m
	l.m.SetTap(f)
	first()
	return l.adopt(entries)
}

// adopt hands the map entries, and all flows that the tap knows.
func (l *lab) adopt(entries []Entry) int {
	return l.m.Adopt(entries, func(yield func(FlowID, Progress) bool) {
		for k, fl := range l.selector.model.Flows {
			if !yield(FlowID{Key: Key{Sender: k.Src, Receiver: k.Dst, DestQP: k.DestQP}, VLAN: k.VLAN, SrcPort: k.SrcPort}, progressOf(fl, fl.State)) {
				return
			}
		}
	}, l.now)
}

func TestAdoptUsesPairsThatWereFollowedSince(t *testing.T) {
	l, n, count := adopted(t, func(l *lab, n conn) { l.exchange(n, highStart+5006, 1000) })
	if count != 2 {
		t.Fatalf("%d entries adopted, want 2", count)
	}
	l.paired(n, SourcePort)
	l.exchange(n, highStart+6006, 40_000)
	l.paired(n, SourcePort)
	l.sight(n, Followed)
	l.request(n.ab, 0x100)
	l.undecided(n)
	l.sight(n, Watched)
}

// What was followed all along is settled at once, and the tap needs to be told nothing.
func TestAdoptedPairIsSettledAtOnce(t *testing.T) {
	for source, settled := range map[Source]int64{SourcePort: 1, SourcePSN: 1, SourceCM: 0} {
		l, n := following(t)
		l.exchange(n, highStart+6, 5000)
		var entries []Entry
		l.m.Range(l.now, func(e Entry) bool { e.Source = source; entries = append(entries, e); return true })
		l.m = New(Config{})
		l.selector.m = l.m
		l.m.SetTap(l.selector)
		if count := l.adopt(entries); count != 2 {
			t.Fatalf("%v: %d adopted", source, count)
		}
		if list := l.m.Due(make([]Telling, 0, 8), l.now); len(list) != 0 {
			t.Errorf("%v: told %v", source, list)
		}
		l.settled(settled)
		if c := l.m.Counters(); c.Learned != 2 || c.Confirmed != 2 {
			t.Errorf("%v: %+v", source, c)
		}
		l.paired(n, source)
		l.exchange(n, highStart+5006, 40_000)
		l.paired(n, source)
		l.sight(n, Followed)
		l.settled(settled)
		l.request(n.ab, highStart+100_000) // a step
		l.undecided(n)
		l.wait(time.Millisecond)
		l.exchange(n, highStart+45_006, 3)
		l.paired(n, source)
	}
}

func TestAdoptedPairMayComeAnotherWay(t *testing.T) {
	l, n, _ := adopted(t, func(l *lab, n conn) { l.exchange(n, highStart+5006, 1000) })
	l.rerouted(n, highStart+6006)
}

func TestAdoptedUCPairStaysUC(t *testing.T) {
	l := selecting(t)
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	next := uint32(highStart)
	play := func(l *lab, n conn) {
		for range 2000 {
			l.packet(n.ab, roce.Opcode(0x20|roce.OpSendOnly), next, false, nil)
			l.packet(n.ba, roce.Opcode(0x20|roce.OpSendOnly), next, false, nil)
			next++
			l.wait(time.Millisecond)
		}
	}
	play(l, n)
	l.paired(n, SourcePort)
	l.sight(n, Followed)
	if count := l.restarted(n, play, func() {}); count != 2 {
		t.Fatalf("%d entries adopted, want 2", count)
	}
	l.paired(n, SourcePort)
	play(l, n)
	l.wait(time.Second)
	l.flow(n.ab).State, l.flow(n.ba).State = uint8(Watched), uint8(Watched) // so that the map is shown some
	play(l, n)
	l.paired(n, SourcePort)
	l.tick()
	l.settled(0)
	if c := l.m.Counters(); c.Contradicted+c.Withdrawn+c.Learned != 2 {
		t.Fatalf("%+v", c)
	}
}

func TestTheTapShowsAgainWhatCouldNotBeAdopted(t *testing.T) {
	l, n := following(t)
	other := formulaConn(hostA, hostC, 0x11, 0x3300) // A's QP, with C
	if count := l.restarted(n, func(*lab, conn) {}, func() { l.exchange(other, 0, 6) }); count != 0 {
		t.Fatalf("%d entries adopted", count)
	}
	l.tick()
	l.undecided(n)
	l.sight(n, Watched)
	l.wait(1100 * time.Millisecond)
	l.exchange(n, highStart+6, 6)
	l.paired(n, SourcePort)
}

func TestAdoptLeavesStalePairsOut(t *testing.T) {
	for name, change := range map[string]func(l *lab, n conn){
		"a QP stepped":          func(l *lab, n conn) { l.request(n.ab, 0x100) },
		"a QP has another port": func(l *lab, n conn) { n.ba.port++; l.request(n.ba, highStart+5006) },
		"silent for a minute":   func(l *lab, _ conn) { l.wait(61 * time.Second) },
		"the tap forgot":        func(l *lab, _ conn) { clear(l.selector.model.Flows) },
	} {
		l, n, count := adopted(t, change)
		if count != 0 {
			t.Errorf("%s: %d adopted", name, count)
		}
		if e, v := l.m.Lookup(n.ab.key(), l.now); v != Miss {
			t.Errorf("%s: %v %+v", name, v, e)
		}
	}
}

func TestAdoptKeepsTheBound(t *testing.T) {
	l, n, _ := adopted(t, func(*lab, conn) {})
	counted(t, l.m, 2)
	m := New(Config{MaxEntries: 1})
	var entries []Entry
	l.m.Range(l.now, func(e Entry) bool { entries = append(entries, e); return true })
	m.Adopt(entries, func(yield func(FlowID, Progress) bool) {
		for _, f := range []flow{n.ab, n.ba} {
			if !yield(FlowID{Key: f.key(), SrcPort: f.port}, Progress{Sight: Followed, LastSeen: l.now}) {
				return
			}
		}
	}, l.now)
	counted(t, m, 1)
}

// A tap that was told to follow a flow after packets that the map had not been shown yet shows nothing more, and the map
// believes that it does.
func TestTapThatShowsLessThanTheMapBelievesIsToldAgain(t *testing.T) {
	l, n := following(t)
	id := FlowID{Key: n.ab.key(), SrcPort: n.ab.port}
	fl := l.selector.model.Flows[modelKey(id)]
	l.request(n.ab, highStart+500_000) // a jump: the flow is watched
	fl.State = kerneltest.Followed     // what was under way
	l.m.Seen(id, Progress{Sight: Followed, LastSeen: l.now})
	if list := l.m.Due(make([]Telling, 0, 8), l.now); len(list) != 1 || list[0] != (Telling{id, Watched}) {
		t.Fatalf("told %v", list)
	}
	l.m.Seen(id, Progress{Sight: Watched, LastSeen: l.now})
	if list := l.m.Due(make([]Telling, 0, 8), l.now); len(list) != 0 {
		t.Fatalf("told %v", list)
	}
}
