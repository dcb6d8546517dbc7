package flowmap

import (
	"net/netip"
	"sync"
	"testing"
	"time"
)

// settled returns a lab with a pair that is followed and settled.
func settled(t *testing.T) (*lab, conn) {
	t.Helper()
	l, n := following(t)
	l.wait(time.Duration(settleAfter))
	l.tick()
	l.settled(1)
	l.paired(n, SourcePort)
	return l, n
}

func (l *lab) tick() {
	l.m.Tick(l.now)
	l.selector.tell()
}

// settled holds the map to so many settled pairs, and its counts to each other.
func (l *lab) settled(want int64) {
	l.t.Helper()
	if got := l.m.settled.count.Load(); got != want {
		l.t.Fatalf("%d settled pairs, want %d", got, want)
	}
	counted(l.t, l.m, 1<<20)
}

func TestSettledPairAnswersAsItDid(t *testing.T) {
	l, n := following(t)
	l.wait(time.Duration(settleAfter))
	for _, f := range []flow{n.ab, n.ba} {
		before := l.want(f, Hit, map[uint32]uint32{n.ab.qp: n.ba.qp, n.ba.qp: n.ab.qp}[f.qp])
		l.tick()
		l.settled(1)
		after, _ := l.m.Lookup(f.key(), l.now)
		for _, d := range []time.Duration{before.LastSeen.Sub(after.LastSeen), before.LearnedAt.Sub(after.LearnedAt), before.ChangedAt.Sub(after.ChangedAt)} {
			if d < 0 || d >= settledTick {
				t.Errorf("a time differs by %v", d)
			}
		}
		after.LastSeen, after.LearnedAt, after.ChangedAt = before.LastSeen, before.LearnedAt, before.ChangedAt
		if before != after {
			t.Errorf("before %+v\nafter  %+v", before, after)
		}
		l.m.shards[l.m.shardOf(&l.stream0(f).pair.key).id].unsettleAll()
		again, _ := l.m.Lookup(f.key(), l.now)
		again.LastSeen, again.LearnedAt, again.ChangedAt = before.LastSeen, before.LearnedAt, before.ChangedAt
		if before != again {
			t.Errorf("before %+v\nagain  %+v", before, again)
		}
		l.settled(0)
		for i := range l.m.shards {
			for _, s := range l.m.shards[i].streams {
				l.m.shards[i].settling(s.link)
			}
		}
	}
}

// stream0 is stream, of a settled pair too.
func (l *lab) stream0(f flow) *stream {
	k := l.m.streamKeyOf(f.key(), f.vlan)
	e, ok := l.m.settled.find(&k)
	if !ok {
		l.t.Fatalf("%v is not settled", f.key())
	}
	return &stream{pair: l.m.settled.at(e).pair.Load()}
}

func TestSettledPairGoesOn(t *testing.T) {
	l, n := settled(t)
	l.selector.model.Interval = int64(100 * time.Millisecond)
	for i := range uint32(200) {
		l.exchange(n, highStart+6+100*i, 100)
		l.tick()
	}
	l.settled(1)
	l.paired(n, SourcePort)
	if c := l.m.Counters(); c.Withdrawn+c.Contradicted+c.Aged != 0 {
		t.Fatalf("%+v", c)
	}
	if known, total := l.m.Len(); known != 2 || total != 2 {
		t.Fatalf("%d of %d", known, total)
	}
	var seen []Entry
	l.m.Range(l.now, func(e Entry) bool { seen = append(seen, e); return true })
	if len(seen) != 2 || seen[0].SourceQP != seen[1].Key.DestQP {
		t.Fatalf("%+v", seen)
	}
	if a := testing.AllocsPerRun(100, func() { l.m.Lookup(n.ab.key(), l.now) }); a != 0 {
		t.Errorf("%v allocations a look-up", a)
	}
}

func TestReuseOfASettledQPIsNoticed(t *testing.T) {
	for _, c := range reuses {
		t.Run(c.name, func(t *testing.T) {
			l, n := settled(t)
			l.exchange(n, highStart+6, 5000)
			l.paired(n, SourcePort)
			l.settled(1)
			c.play(l, n)
			if e, v := l.m.Lookup(n.ab.key(), l.now); v == Hit {
				t.Fatalf("still %+v", e)
			}
			l.settled(0)
		})
	}
}

func TestStrayJumpOfASettledPair(t *testing.T) {
	l, n := settled(t)
	l.exchange(n, highStart+6, 5000)
	l.request(n.ab, highStart+5006+0x10000)
	l.undecided(n)
	l.wait(time.Millisecond)
	l.exchange(n, highStart+5006, 2)
	l.paired(n, SourcePort)
	l.wait(time.Duration(settleAfter))
	l.tick()
	l.settled(1)
}

func TestForeignPacketOfASettledPair(t *testing.T) {
	l, n := settled(t)
	l.exchange(n, highStart+6, 10)
	forged := n.ab
	forged.mac = 9
	for i := range uint32(5) {
		l.request(forged, 0x900000+i)
	}
	l.paired(n, SourcePort)
	l.settled(1)
	if c := l.m.Counters(); c.Foreign != 5 {
		t.Fatalf("%d foreign packets, want 5", c.Foreign)
	}
	l.rerouted(n, highStart+16)
	l.wait(time.Duration(settleAfter))
	l.tick()
	l.settled(1)
}

// rerouted lets both directions of a pair that the tap follows come another way, and holds the map to it.
func (l *lab) rerouted(n conn, psn uint32) {
	l.t.Helper()
	l.wait(2 * time.Second) // nothing for so long:
	n.ab.mac, n.ba.mac = 9, 9
	n.ab.ifIndex, n.ba.ifIndex = 7, 8
	l.exchange(n, psn, 3)
	l.paired(n, SourcePort)
	l.sight(n, Followed) // with the new way: its packets are not shown any more
	before, shown := l.m.Counters().Foreign, l.selector.shown
	l.exchange(n, psn+3, 1000)
	if c := l.m.Counters(); c.Foreign != before || l.selector.shown != shown {
		l.t.Fatalf("%d foreign packets more, %d shown", c.Foreign-before, l.selector.shown-shown)
	}
	l.paired(n, SourcePort)
}

func TestSettledPairAges(t *testing.T) {
	l, n := settled(t)
	for i := range uint32(100) {
		l.exchange(n, highStart+6+i, 1)
		l.wait(time.Second)
		l.tick() // asks the tap
	}
	l.paired(n, SourcePort)
	l.settled(1)
	l.wait(61 * time.Second)
	l.want(n.ab, Aged, 0)
	l.tick()
	l.want(n.ab, Aged, 0)
	l.settled(0)
	l.wait(61 * time.Second)
	l.tick()
	l.want(n.ab, Miss, 0)
	counted(t, l.m, 0)
}

// askedTap counts how often it is asked, and ends a test in which that does not end.
type askedTap struct {
	Tap
	t    *testing.T
	left int
}

func (a *askedTap) Progress(id FlowID) (Progress, bool) {
	if a.left--; a.left < 0 {
		a.t.Fatal("the tap is asked on and on")
	}
	return a.Tap.Progress(id)
}

// The tap knows to the nanosecond when it saw a pair, and the map to a tick: between the two ends of AgeAfter a pair ages.
func TestSettledPairAgesByTheTick(t *testing.T) {
	l, n := settled(t)
	st := &l.m.settled
	tick := time.Unix(0, st.time(st.tick(l.now.UnixNano())+1))
	l.now = tick.Add(50 * time.Millisecond)
	l.exchange(n, highStart+6, 1)
	l.m.Seen(FlowID{Key: n.ab.key(), SrcPort: n.ab.port}, Progress{Sight: Followed, LastSeen: tick.Add(50 * time.Millisecond)})
	l.m.SetTap(&askedTap{l.selector, t, 10})
	l.now = tick.Add(DefaultAgeAfter)
	l.tick()
	l.paired(n, SourcePort)
	l.settled(1)
	l.now = tick.Add(DefaultAgeAfter + 20*time.Millisecond)
	l.want(n.ab, Aged, 0)
	l.tick()
	l.want(n.ab, Aged, 0)
	l.settled(0)
}

func TestSettledPairLivesByTheSweep(t *testing.T) {
	l, n := settled(t)
	for range 100 {
		l.wait(time.Second)
		l.m.Seen(FlowID{Key: n.ab.key(), SrcPort: n.ab.port}, Progress{Sight: Followed, LastSeen: l.now})
	}
	l.paired(n, SourcePort)
	l.settled(1)
}

func TestSettledPairHoldsItsQPs(t *testing.T) {
	l, n := settled(t)
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
	l.want(n.ab, Contradicted, 0) // at once, though it is another shard's
	l.tick()
	l.want(n.ab, Contradicted, 0)
	l.settled(0)
}

func TestCMEndsASettledPairWhoseQPItConnectsAnew(t *testing.T) {
	for _, to := range []netip.Addr{hostB, hostC} {
		l, n := settled(t)
		d := newDialogue(l, newConn(hostA, to, n.ba.qp, 0x4400, 50000, 50000), 7)
		l.exchange(n, highStart+6, 1)
		d.connect() // which way the pair's packets come is not known, and it is live
		l.paired(n, SourcePort)
		l.settled(1)
		l.wait(1100 * time.Millisecond)
		d.connect()
		l.want(n.ab, Contradicted, 0)
		l.want(d.c.ab, Hit, n.ba.qp)
		l.tick()
		l.settled(0)
	}
}

func TestPairThatIsSettledNoMoreSettlesAgain(t *testing.T) {
	l, n := settled(t)
	sh := l.m.shardOf(&l.stream0(n.ab).pair.key)
	sh.mu.Lock()
	sh.unsettleAll()
	sh.mu.Unlock()
	l.settled(0)
	l.paired(n, SourcePort)
	l.tick()
	l.settled(1)
	l.paired(n, SourcePort)
}

func TestAfterAGapASettledPairWaitsForAResponse(t *testing.T) {
	l, n := settled(t)
	l.m.Doubt(l.now)
	l.selector.tell()
	l.undecided(n)
	l.sight(n, Watched)
	l.wait(20 * time.Microsecond)
	l.request(n.ab, highStart+6)
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+6)
	l.wait(20 * time.Microsecond)
	l.request(n.ab, highStart+7)
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+7)
	l.paired(n, SourcePort)
}

func TestSettledPairsLeaveWhenTheMapIsFull(t *testing.T) {
	l := selecting(t)
	var conns []conn
	for i := range uint32(40) {
		c := formulaConn(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), hostB, 0x100+i, 0x2000+i)
		conns = append(conns, c)
		l.exchange(c, highStart, 8)
		l.wait(200 * time.Millisecond)
	}
	l.wait(time.Duration(settleAfter))
	l.tick()
	l.settled(40)
	l.m.Reconfigure(Config{MaxEntries: 60})
	l.tick()
	counted(t, l.m, 60)
	for i, c := range conns {
		want := Miss
		if i >= 10 {
			want = Hit
		}
		if _, v := l.m.Lookup(c.ab.key(), l.now); v != want {
			t.Errorf("pair %d of 40: %v, want %v", i, v, want)
		}
	}
}

// Who keeps copies of a million answers need not make each anew when its pair is settled, and when it is so no more.
func TestSettlingChangesNoAnswer(t *testing.T) {
	l, n := following(t)
	told := 0
	l.m.OnAnswer(func(Key) { told++ })
	l.wait(time.Duration(settleAfter))
	l.tick()
	l.settled(1)
	l.m.shardOf(&l.stream0(n.ab).pair.key).unsettleAll()
	l.settled(0)
	if told != 0 {
		t.Errorf("told of %d answers", told)
	}
}

// One key may have a pair in each of several VLANs, settled or not: it has one entry.
func TestRangeGivesAKeyOnce(t *testing.T) {
	for settled := range 3 {
		l := selecting(t)
		n := formulaConn(hostA, hostB, 0x11, 0x2200)
		for vlan := range uint16(2) {
			n.ab.vlan, n.ba.vlan = vlan, vlan
			l.exchange(n, highStart, 8)
			if int(vlan) < settled {
				l.wait(time.Duration(settleAfter))
				l.tick()
			}
		}
		l.settled(int64(settled))
		c := follow(l.m, func() time.Time { return l.now })
		var keys []Key
		l.m.Range(l.now, func(e Entry) bool { keys = append(keys, e.Key); return true })
		if len(keys) != 2 || keys[0] == keys[1] {
			t.Errorf("%d settled: %v", settled, keys)
		}
		// Which VLAN's version is given depends on which of them are settled.
		for _, f := range []flow{n.ab, n.ba} {
			c.answers[f.key()] = l.want(f, Hit, map[uint32]uint32{n.ab.qp: n.ba.qp, n.ba.qp: n.ab.qp}[f.qp])
		}
		l.m.shardOf(&pairKey{low: hostA.As16(), high: hostB.As16()}).unsettleAll()
		for _, f := range []flow{n.ab, n.ba} {
			if c.differs(l.m, f.key(), l.now) {
				t.Errorf("%d settled: the copy of %v differs", settled, f.key())
			}
		}
	}
}

// readAllAlong calls read over and over from two goroutines until that is false or stop is called, which waits for them.
func readAllAlong(read func(i int) bool) (stop func()) {
	end := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; read(i); i++ {
				select {
				case <-end:
					return
				default:
				}
			}
		})
	}
	return func() {
		close(end)
		readers.Wait()
	}
}

// A look-up finds a pair at any time, also while it is settled or made streams again.
func TestLookUpsWhilePairsAreSettledAndNot(t *testing.T) {
	l := selecting(t)
	var conns []conn
	for i := range uint32(30) {
		c := formulaConn(hostA, hostB, 0x100+i, 0x2000+7*i)
		conns = append(conns, c)
		l.exchange(c, highStart+0x10000*i, 8)
	}
	l.m.settleAfter = 0
	now := l.now
	stop := readAllAlong(func(i int) bool {
		c := conns[i%len(conns)]
		if e, v := l.m.Lookup(c.ab.key(), now); v != Hit || e.SourceQP != c.ba.qp || e.SrcPort != c.ab.port {
			t.Errorf("%v: %v %+v", c.ab.key(), v, e)
			return false
		}
		if i%100 == 0 {
			l.m.Range(now, func(Entry) bool { return true })
		}
		return true
	})
	for range 300 {
		for i := range l.m.shards {
			sh := &l.m.shards[i]
			sh.mu.Lock()
			sh.unsettleAll()
			for _, s := range sh.streams {
				sh.settling(s.link)
			}
			sh.settleDue(l.now.UnixNano())
			sh.mu.Unlock()
		}
	}
	stop()
	l.settled(30)
}

func TestSettledIndexGrowsAndShrinks(t *testing.T) {
	l := selecting(t)
	l.m.settleAfter = 0
	var conns []conn
	for i := range uint32(3000) {
		c := formulaConn(netip.AddrFrom4([4]byte{10, 1, byte(i / 50), 1}), netip.AddrFrom4([4]byte{10, 2, byte(i / 50), 1}), 0x100+i%50, 0x2000+7*(i%50))
		conns = append(conns, c)
		l.exchange(c, highStart, 6)
	}
	l.tick()
	l.settled(3000)
	slots := func() (n int) {
		for i := range l.m.settled.index {
			if p := l.m.settled.index[i].table.Load(); p != nil {
				n += len(*p)
			}
		}
		return n
	}
	if n := slots(); n < 6000 || n > 10_000 {
		t.Errorf("%d slots for 6,000 directions", n)
	}
	for _, c := range conns {
		l.want(c.ab, Hit, c.ba.qp)
		l.want(c.ba, Hit, c.ab.qp)
	}
	for i := range l.m.shards {
		l.m.shards[i].unsettleAll()
	}
	l.settled(0)
	if n := slots(); n != 0 {
		t.Errorf("%d slots for none", n)
	}
	for _, c := range conns {
		l.want(c.ab, Hit, c.ba.qp)
	}
}
