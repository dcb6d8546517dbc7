package flowmap

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// unsettleEverything makes links of all settled pairs, as who knew no doubt of settled ones would.
func (l *lab) unsettleEverything() {
	for i := range l.m.shards {
		sh := &l.m.shards[i]
		sh.mu.Lock()
		sh.unsettleAll()
		sh.mu.Unlock()
	}
}

func (l *lab) doubt() {
	l.m.Doubt(l.now)
	l.selector.tell()
}

// streams counts those that are not of settled pairs.
func (l *lab) streams() (n int) {
	for i := range l.m.shards {
		n += len(l.m.shards[i].streams)
	}
	return n
}

// Whatever follows, a settled pair in doubt answers as one does that was made a link before the doubt.
func TestDoubtOfASettledPairIsThatOfALink(t *testing.T) {
	var held, again atomic.Int64
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 5))
			labs := [2]*lab{selecting(t), selecting(t)}
			conns := []conn{formulaConn(hostA, hostB, 0x11, 0x2200), formulaConn(hostA, hostB, 0x12, 0x2207), formulaConn(hostA, hostC, 0x11, 0x3300)}
			psn := []uint32{highStart, 2 * highStart, 3 * highStart}
			both := func(f func(*lab)) {
				for _, l := range labs {
					f(l)
				}
			}
			both(func(l *lab) {
				for i, c := range conns[:2] {
					l.exchange(c, psn[i], 8)
				}
				l.wait(time.Duration(settleAfter))
				l.tick()
				l.settled(2)
			})
			psn[0], psn[1] = psn[0]+8, psn[1]+8
			var doubted time.Time
			for range 60 {
				i := rng.IntN(len(conns))
				c, p := conns[i], psn[i]
				switch op := rng.IntN(12); op {
				case 0, 1:
					if labs[0].now.Sub(doubted) < 200*time.Millisecond { // nearer ones differ by a tick
						continue
					}
					doubted = labs[0].now
					labs[1].unsettleEverything()
					both((*lab).doubt)
					both((*lab).doubt) // once more is no more
				case 2:
					both(func(l *lab) { l.request(c.ab, p) })
					psn[i]++
				case 3:
					both(func(l *lab) { l.ack(c.ba, p) })
				case 4:
					psn[i] += 1 << (8 + rng.Uint32N(15)) // another queue pair, or a stray
				case 5:
					d := time.Duration(rng.Int64N(int64(250 * time.Millisecond)))
					both(func(l *lab) { l.wait(d) })
				case 6:
					both(func(l *lab) { l.wait(time.Duration(settleAfter)); l.tick() })
				case 7:
					both((*lab).tick)
				case 8:
					forged := c.ab
					forged.mac = 9
					both(func(l *lab) { l.request(forged, p) })
				default:
					n := 1 + rng.IntN(6)
					both(func(l *lab) { l.exchange(c, p, n) })
					psn[i] += uint32(n)
				}
				for _, f := range []flow{conns[0].ab, conns[0].ba, conns[1].ab, conns[1].ba, conns[2].ab} {
					got, v := labs[0].m.Lookup(f.key(), labs[0].now)
					want, w := labs[1].m.Lookup(f.key(), labs[1].now)
					if v != w || got.SourceQP != want.SourceQP || got.State != want.State || got.Source != want.Source || got.Votes != want.Votes ||
						got.Detail != want.Detail || got.LearnedAt.IsZero() != want.LearnedAt.IsZero() {
						t.Fatalf("%v\ngot  %v %+v\nwant %v %+v", f.key(), v, got, w, want)
					}
					switch {
					case v == Undecided && got.Detail == gapDetail:
						held.Add(1)
					case v == Hit && got.Detail == "in sequence again":
						again.Add(1)
					}
				}
			}
			both(func(l *lab) { counted(t, l.m, 1<<20) })
		})
	}
	t.Cleanup(func() {
		if held.Load() < 100 || again.Load() < 100 {
			t.Errorf("%d answers were held back and %d given again: too few to tell anything", held.Load(), again.Load())
		}
	})
}

// Who watches, who keeps copies and who asks all learn of the doubt as of any other change, and once.
func TestDoubtOfASettledPairIsToldOfOnce(t *testing.T) {
	l, n := settled(t)
	keys := []Key{n.ab.key(), n.ba.key()}
	c := follow(l.m, func() time.Time { return l.now })
	for _, k := range keys {
		e, _ := l.m.Lookup(k, l.now)
		c.answers[k] = e
	}
	w, before := l.m.Watch(8), l.m.Version()
	defer w.Close()
	l.doubt()
	l.doubt()
	if n := len(w.C()); n != 2 || l.m.Version() != before+2 || len(c.answers) != 0 {
		t.Fatalf("%d changes, version %d after %d, %d copies", n, l.m.Version(), before, len(c.answers))
	}
	for range keys {
		e := (<-w.C()).Entry
		got, v := l.m.Lookup(e.Key, l.now)
		if v != Undecided || got != e || e.State != StateUndecided || e.SourceQP != 0 || e.Detail != gapDetail || e.Version <= before {
			t.Errorf("told of %+v\nLookup %v %+v", e, v, got)
		}
	}
	if known, total := l.m.Len(); known != 0 || total != 2 {
		t.Errorf("%d of %d", known, total)
	}
	l.settled(1)
	l.sight(n, Watched)
	held, _ := l.m.Lookup(keys[0], l.now)
	l.unsettleEverything()
	if e, v := l.m.Lookup(keys[0], l.now); v != Undecided || e != held {
		t.Errorf("as a link: %v %+v\nsettled: %+v", v, e, held)
	}
}

// In doubt a pair ages, is evicted, and loses its QPs as any other.
func TestSettledPairInDoubtEnds(t *testing.T) {
	for name, end := range map[string]func(*lab, conn){
		"ages": func(l *lab, n conn) {
			l.wait(61 * time.Second)
			l.want(n.ab, Aged, 0)
			l.tick()
			l.want(n.ab, Aged, 0)
		},
		"is evicted": func(l *lab, n conn) {
			l.exchange(formulaConn(hostB, hostC, 0x15, 0x2100), highStart, 6)
			l.m.Reconfigure(Config{MaxEntries: 2})
			l.tick()
			l.want(n.ab, Miss, 0)
		},
		"loses a QP": func(l *lab, n conn) {
			l.wait(1100 * time.Millisecond)
			other := formulaConn(hostA, hostC, 0x11, 0x3300)
			l.exchange(other, 0, 6)
			l.want(other.ab, Hit, other.ba.qp)
			l.want(n.ab, Contradicted, 0)
			l.tick()
			l.want(n.ab, Contradicted, 0)
		},
		"is connected anew by CM": func(l *lab, n conn) {
			l.wait(1100 * time.Millisecond)
			d := newDialogue(l, newConn(hostA, hostC, n.ba.qp, 0x4400, 50000, 50000), 7)
			d.connect()
			l.want(n.ab, Contradicted, 0)
			l.tick()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, n := settled(t)
			l.doubt()
			end(l, n)
			l.settled(0)
			l.unsettleEverything()
			counted(t, l.m, 1<<20)
		})
	}
}

// connections makes n pairs that are followed and settled, of fifty between two hosts.
func (l *lab) connections(n int) (conns []conn) {
	for i := range uint32(n) {
		hosts := i / 50
		c := formulaConn(netip.AddrFrom4([4]byte{10, 1, byte(hosts >> 8), byte(hosts)}), netip.AddrFrom4([4]byte{10, 2, byte(hosts >> 8), byte(hosts)}), 0x100+i%50, 0x2000+7*(i%50))
		conns = append(conns, c)
		l.exchange(c, highStart, 6)
	}
	l.m.Reconfigure(Config{AgeAfter: 24 * time.Hour})
	l.wait(time.Duration(settleAfter))
	l.tick()
	l.settled(int64(n))
	return conns
}

// answering counts the directions that answer, and holds them to the truth.
func (l *lab) answering(conns []conn) (n int) {
	for _, c := range conns {
		for _, f := range [2]flow{c.ab, c.ba} {
			if e, v := l.m.Lookup(f.key(), l.now); v == Hit {
				n++
				if want := map[uint32]uint32{c.ab.qp: c.ba.qp, c.ba.qp: c.ab.qp}[f.qp]; e.SourceQP != want {
					l.t.Fatalf("%v: %#x, want %#x", f.key(), e.SourceQP, want)
				}
			}
		}
	}
	return n
}

// However many pairs go on through a doubt, streams are made of so many at a time.
func TestDoubtOfManyPairsMakesFewStreams(t *testing.T) {
	pairs := 100_000
	if raceEnabled {
		pairs = 4000
	}
	l := selecting(t)
	perTick := pairs / 10
	l.m.settled.questions.perTick = perTick
	conns := l.connections(pairs)
	l.doubt()
	if n, hits := l.streams(), l.answering(conns); n != 0 || hits != 0 {
		t.Fatalf("%d streams, %d answers", n, hits)
	}
	const perSecond = 3 // requests of each pair, of which each is answered
	step := time.Second / perSecond / 2 / time.Duration(pairs)
	most, seconds, psn := 0, 0, uint32(highStart+6)
	for ; l.answering(conns) < 2*pairs; seconds++ {
		for range perSecond {
			for _, c := range conns {
				l.request(c.ab, psn)
				l.wait(step)
				l.ack(c.ba, psn)
				l.wait(step)
			}
			psn++
			most = max(most, l.streams())
		}
		l.tick()
		if seconds > 2*pairs/perTick+5 {
			t.Fatalf("%d of %d answer after %d seconds, %d streams", l.answering(conns), 2*pairs, seconds, l.streams())
		}
	}
	t.Logf("%d directions: %d streams at most, all answer after %d s", 2*pairs, most, seconds)
	if most < perTick || most > 4*perTick {
		t.Errorf("%d streams at a time, though the tap is told of %d a second", most, perTick)
	}
	l.wait(time.Duration(settleAfter))
	l.tick()
	l.settled(int64(pairs))
}

// Pairs that nothing passes stay settled, and one that waits for its turn and is shown all the same doesn't.
func TestSilentPairsInDoubtStaySettled(t *testing.T) {
	l := selecting(t)
	l.m.settled.questions.perTick = 4
	conns := l.connections(10)
	watched := func() (n int) {
		for _, c := range conns {
			for _, f := range []flow{c.ab, c.ba} {
				if Sight(l.flow(f).State) == Watched {
					n++
				}
			}
		}
		return n
	}
	l.doubt()
	for want := 4; want <= 20; want += 4 {
		if n := watched(); n != want || l.streams() != 0 {
			t.Fatalf("%d flows are watched, want %d; %d streams", n, want, l.streams())
		}
		l.doubt() // asks no more than is left
		l.m.settled.questions.left = 0
		if want == 4 {
			i := slices.IndexFunc(conns, func(c conn) bool { return Sight(l.flow(c.ab).State) == Followed })
			l.request(conns[i].ab, highStart+0x100000) // the tap shows the step by itself
			l.sight(conns[i], Watched)
			if n := l.streams(); n != 2 {
				t.Fatalf("%d streams", n)
			}
			l.undecided(conns[i])
			return
		}
		l.tick()
	}
}

// Doubts that come before the tap has been told of all do not begin with the same pairs each time.
func TestEachPairInDoubtHasItsTurn(t *testing.T) {
	l := selecting(t)
	l.m.settled.questions.perTick = 4
	conns := l.connections(25)
	for range 50/4 + 1 {
		l.m.Doubt(l.now)
		l.tick()
	}
	for _, c := range conns {
		l.sight(c, Watched)
	}
	if l.m.settled.questions.left < 0 {
		t.Error("more were asked than may be")
	}
}

// A link that was a settled pair in doubt is shown, whatever made it a link and whether the tap was told of it or not.
func TestLinkOfAPairInDoubtIsWatched(t *testing.T) {
	l, n := settled(t)
	l.m.settled.questions.perTick = 0
	l.doubt()
	l.sight(n, Followed)
	l.unsettleEverything()
	l.selector.tell()
	l.sight(n, Watched)
}

// A tap that takes one telling at a time is told of each direction; one that takes none makes nothing pile up.
func TestTellingsOfPairsInDoubtFitTheList(t *testing.T) {
	l, _ := settled(t)
	l.m.Doubt(l.now)
	if list := l.m.Due(nil, l.now); len(list) != 0 {
		t.Fatalf("%v", list)
	}
	one := make([]Telling, 0, 1)
	seen := map[FlowID]bool{}
	for one = l.m.Due(one[:0], l.now); len(one) > 0; one = l.m.Due(one[:0], l.now) {
		if one[0].Sight != Watched || seen[one[0].Flow] {
			t.Errorf("%+v", one[0])
		}
		seen[one[0].Flow] = true
	}
	if len(seen) != 2 {
		t.Errorf("%v", seen)
	}
}

// From the moment of the doubt on no look-up gets the answer, whether the pair is settled, or made streams of meanwhile; and
// none misses the pair.
func TestLookUpsWhilePairsAreDoubted(t *testing.T) {
	for range 20 {
		l := selecting(t)
		conns := l.connections(30)
		now := l.now
		var doubted atomic.Bool
		stop := readAllAlong(func(i int) bool {
			was, c := doubted.Load(), conns[i%len(conns)]
			e, v := l.m.Lookup(c.ab.key(), now)
			if was && v != Undecided || v != Undecided && v != Hit || v == Hit && e.SourceQP != c.ba.qp || v == Undecided && e.SourceQP != 0 {
				t.Errorf("doubted before: %v; %v: %v %+v", was, c.ab.key(), v, e)
				return false
			}
			return true
		})
		l.m.Doubt(now)
		doubted.Store(true)
		l.unsettleEverything()
		stop()
		counted(t, l.m, 60)
	}
}
