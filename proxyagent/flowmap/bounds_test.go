package flowmap

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// counted holds the map's parts to each other and to its bound.
func counted(t *testing.T, m *Map, bound int) {
	t.Helper()
	streams, pairs, known, allSettled := 0, 0, 0, 0
	for i := range m.shards {
		sh := &m.shards[i]
		sh.mu.Lock()
		if sh.peak < len(sh.streams) {
			t.Fatalf("peak %d of %d streams: their memory stays when they leave", sh.peak, len(sh.streams))
		}
		streams += len(sh.streams)
		settled := 0
		for e, ok := sh.oldestSettled(); ok; settled++ {
			n := m.settled.at(e).newer
			if m.settled.at(e).doubted() {
				known -= 2
			}
			e, ok = settledRef(n-1)<<1, n != 0
		}
		streams, known, allSettled = streams+2*settled, known+2*settled, allSettled+settled
		pairs += len(sh.pairs)
		for _, s := range sh.streams {
			if len(s.cands) > maxCandidates+samePortSlots {
				t.Fatalf("%d candidates in one stream", len(s.cands))
			}
			if s.answer.Load().known() {
				known++
			}
		}
		for _, p := range sh.pairs {
			open, rc := 0, [2]int{p.settled, p.settled}
			for side := range p.streams {
				for _, s := range p.streams[side] {
					if s.open {
						open++
					}
					if s.transport == roce.TransportRC {
						rc[side]++
					}
				}
			}
			if open != p.open || rc != p.rc || p.refs <= 0 {
				t.Fatalf("pair %v: open %d counted %d, rc %v counted %v, refs %d", p.addr, open, p.open, rc, p.rc, p.refs)
			}
			if v := p.votes; v != nil && max(len(v.index[0].ring), len(v.index[1].ring)) > indexMax {
				t.Fatal("an index outgrew its bound")
			}
		}
		sh.mu.Unlock()
	}
	m.claims.mu.Lock()
	if held, peak := len(m.claims.held), m.claims.peak; peak < held {
		t.Fatalf("peak %d of %d claims: their memory stays when they leave", peak, held)
	}
	m.claims.mu.Unlock()
	if n := int(m.settled.count.Load()); n != allSettled {
		t.Fatalf("%d settled pairs, counted %d", n, allSettled)
	}
	gotKnown, total := m.Len()
	if total != streams || gotKnown != known {
		t.Fatalf("Len %d of %d, counted %d of %d", gotKnown, total, known, streams)
	}
	if streams > bound {
		t.Fatalf("%d entries, bound %d", streams, bound)
	}
	if pairs > streams+int(shardCount)*m.maxPending() {
		t.Fatalf("%d address pairs for %d entries", pairs, streams)
	}
}

func TestBoundLeastRecentlySeenLeavesFirst(t *testing.T) {
	l := newLab(t, Config{MaxEntries: 4})
	w := l.m.Watch(100)
	defer w.Close()
	fs := make([]flow, 5)
	for i := range fs {
		fs[i] = newConn(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), hostB, 0, 0x100+uint32(i), 49152, 0).ab
	}
	for _, f := range fs[:4] {
		l.request(f, 1)
		l.wait(time.Second)
	}
	l.request(fs[0], 2) // now the second is the least recently seen
	l.wait(time.Second)
	l.request(fs[4], 1)
	l.want(fs[1], Miss, 0)
	for _, i := range []int{0, 2, 3, 4} {
		l.want(fs[i], Undecided, 0)
	}
	if n := l.m.Counters().Evicted; n != 1 {
		t.Fatalf("%d evicted, want 1", n)
	}
	evicted := false
	for len(w.C()) > 0 {
		c := <-w.C()
		evicted = evicted || c.Entry.State == StateEvicted && c.Entry.Key == fs[1].key()
	}
	if !evicted {
		t.Fatal("watchers were not told of the eviction")
	}
}

func TestBoundASecondPacketIsNoSecondChance(t *testing.T) {
	l := newLab(t, Config{MaxEntries: 2})
	fs := make([]flow, 3)
	for i := range fs {
		fs[i] = newConn(hostA, hostB, 0, 0x100+uint32(i), 49152, 0).ab
	}
	l.request(fs[0], 1)
	l.wait(50 * time.Millisecond)
	l.request(fs[0], 2) // too soon to be listed anew
	l.wait(time.Second)
	l.request(fs[1], 1)
	l.wait(time.Second)
	l.request(fs[2], 1)
	l.want(fs[0], Miss, 0)
	l.want(fs[1], Undecided, 0)
}

// One direction alone can't vote: however busy, it costs little.
func TestBoundOneDirectionAloneKeepsASmallIndex(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	for i := range uint32(10_000) {
		l.request(n.ab, highStart+i)
		l.wait(time.Microsecond)
	}
	if size := len(l.stream(n.ab).pair.votes.index[1].ring); size > indexPerFlow {
		t.Fatalf("%d entries indexed without any response, want at most %d", size, indexPerFlow)
	}
	l.exchange(n, highStart+10_000, 5)
	l.paired(n, SourcePSN)
}

func TestBoundAPairLeavesAsOneAndByItsLastPacket(t *testing.T) {
	l := newLab(t, Config{MaxEntries: 3})
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	l.exchange(n, highStart, 5)
	l.paired(n, SourcePort)
	other := newConn(hostA, hostC, 0, 0x300, 49152, 0).ab
	l.request(other, 1)
	l.wait(time.Second)
	l.ack(n.ba, highStart+4) // one direction refreshes both
	l.wait(time.Second)
	more := newConn(hostC, hostB, 0, 0x400, 49152, 0).ab
	l.request(more, 1)
	l.paired(n, SourcePort)
	l.want(other, Miss, 0)
	l.wait(time.Second)
	l.request(more, 2)
	l.request(other, 2) // over the bound again: now the pair is the oldest
	l.want(n.ab, Miss, 0)
	l.want(n.ba, Miss, 0)
	counted(t, l.m, 3)
	if len(l.m.claims.held) != 0 {
		t.Fatal("an evicted pair still holds its QPs")
	}
}

func TestBoundHoldsUnderHostileTraffic(t *testing.T) {
	const bound = 500
	l := newLab(t, Config{MaxEntries: bound})
	rng := rand.New(rand.NewPCG(3, 3))
	ops := []uint8{roce.OpSendOnly, roce.OpAck, roce.OpReadRequest, roce.OpReadRespFirst, 0x20 | roce.OpSendOnly, 0x64, 0x4A, 0xA4}
	for i := range 60_000 {
		a := netip.AddrFrom4([4]byte{10, byte(rng.UintN(4)), 0, byte(rng.UintN(32))})
		b := netip.AddrFrom4([4]byte{10, 9, 0, byte(rng.UintN(32))})
		if rng.IntN(2) == 0 {
			a, b = b, a
		}
		f := flow{from: a, to: b, qp: rng.Uint32N(64), port: uint16(49152 + rng.UintN(4)), ttl: 64, ifIndex: 1}
		var body [24]byte
		binary.BigEndian.PutUint32(body[12:], rng.Uint32())
		l.packet(f, roce.Opcode(ops[rng.IntN(len(ops))]), rng.Uint32N(200), rng.IntN(2) == 0, body[:])
		l.wait(time.Duration(rng.IntN(50)) * time.Microsecond)
		if i%997 == 0 {
			l.m.Tick(l.now)
			counted(t, l.m, bound)
		}
	}
	counted(t, l.m, bound)
	l.wait(3 * DefaultAgeAfter)
	l.m.Tick(l.now)
	l.wait(3 * DefaultAgeAfter)
	l.m.Tick(l.now)
	if _, total := l.m.Len(); total != 0 || len(l.m.claims.held) != 0 {
		t.Fatalf("%d entries and %d claims left after all aged", total, len(l.m.claims.held))
	}
}

func TestReconfigureLowersTheBoundAndRefusesNonsense(t *testing.T) {
	l := newLab(t, Config{})
	for i := range uint32(50) {
		l.request(newConn(hostA, hostB, 0, 0x100+i, 49152, 0).ab, 1)
	}
	if err := l.m.Reconfigure(Config{MaxEntries: -1}); err == nil {
		t.Fatal("MaxEntries -1 was taken")
	}
	if err := l.m.Reconfigure(Config{MaxEntries: 10}); err != nil {
		t.Fatal(err)
	}
	l.m.Tick(l.now)
	counted(t, l.m, 10)
}

func TestLookupDoesNotAllocate(t *testing.T) {
	l, n := decided(t)
	for _, k := range []Key{n.ab.key(), {Sender: hostC, Receiver: hostA, DestQP: 1}} {
		if a := testing.AllocsPerRun(1000, func() { l.m.Lookup(k, l.now) }); a != 0 {
			t.Errorf("%v: %v allocations a look-up, want 0", k, a)
		}
	}
	psn := uint32(highStart + 5)
	p := &roce.Packet{Src: hostA, Dst: hostB, TTL: 64, SrcPort: n.ab.port, SrcMAC: [6]byte{2, 5: n.ab.mac}, BTH: roce.BTH{Opcode: rcSend, PKey: 0xFFFF, DestQP: n.ab.qp}}
	o := &Observation{Packet: p, IfIndex: 1}
	if a := testing.AllocsPerRun(1000, func() { p.BTH.PSN = psn; psn++; o.At = l.now; l.m.Observe(o) }); a != 0 {
		t.Errorf("%v allocations a packet of a decided flow, want 0", a)
	}
}

func TestWatchNeverBlocksAndCountsWhatItDrops(t *testing.T) {
	l := newLab(t, Config{})
	w := l.m.Watch(2)
	for i := range uint32(5) {
		l.request(newConn(hostA, hostB, 0, 0x100+i, 49152, 0).ab, 1)
	}
	first, second := <-w.C(), <-w.C()
	if first.Entry.Key.DestQP != 0x100 || second.Entry.Key.DestQP != 0x101 || first.Dropped+second.Dropped != 0 {
		t.Fatalf("%+v %+v", first, second)
	}
	l.request(newConn(hostA, hostB, 0, 0x200, 49152, 0).ab, 1)
	if c := <-w.C(); c.Dropped != 3 || c.Entry.Key.DestQP != 0x200 || c.Entry.State != StateUndecided {
		t.Fatalf("%+v, want three dropped", c)
	}
	w.Close()
	w.Close()
	if _, open := <-w.C(); open {
		t.Fatal("the channel is still open")
	}
	l.request(newConn(hostA, hostB, 0, 0x300, 49152, 0).ab, 1)
}

func TestRangeListsAllAndStops(t *testing.T) {
	l, _ := decided(t)
	l.request(newConn(hostA, hostC, 0, 0x300, 49152, 0).ab, 1)
	states := map[State]int{}
	l.m.Range(l.now, func(e Entry) bool { states[e.State]++; return true })
	if states[StateConfirmed] != 2 || states[StateUndecided] != 1 || len(states) != 2 {
		t.Fatalf("%v", states)
	}
	n := 0
	l.m.Range(l.now, func(Entry) bool { n++; return false })
	if n != 1 {
		t.Fatalf("%d after false, want 1", n)
	}
}

func TestConcurrentTapsAndReaders(t *testing.T) {
	m := New(Config{MaxEntries: 300, AgeAfter: time.Second})
	base := time.Unix(1_700_000_000, 0)
	var clock atomic.Int64
	stop := make(chan struct{})
	var taps, readers sync.WaitGroup
	for tap := range uint64(3) {
		taps.Go(func() {
			rng := rand.New(rand.NewPCG(tap, 9))
			l := &lab{t: t, m: m}
			for range 4000 {
				l.now = base.Add(time.Duration(clock.Add(int64(20 * time.Microsecond))))
				q := rng.Uint32N(40)
				c := formulaConn(netip.AddrFrom4([4]byte{10, 0, 1, byte(q % 5)}), hostB, 0x100+q, 0x2000+q)
				psn := uint32(highStart) + uint32(clock.Load()/100_000)
				l.request(c.ab, psn)
				l.ack(c.ba, psn)
				if rng.IntN(50) == 0 {
					newDialogue(l, c, q).connect()
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			w := m.Watch(8)
			defer w.Close()
			for i := uint32(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				now := base.Add(time.Duration(clock.Load()))
				c := formulaConn(netip.AddrFrom4([4]byte{10, 0, 1, byte(i % 40 % 5)}), hostB, 0x100+i%40, 0x2000+i%40)
				if e, v := m.Lookup(c.ab.key(), now); v == Hit && e.SourceQP != c.ba.qp {
					t.Errorf("%v: Source QP 0x%x", c.ab.key(), e.SourceQP)
					return
				}
				if i%64 == 0 {
					m.Tick(now)
					m.Range(now, func(Entry) bool { return true })
					m.Counters()
				}
			}
		})
	}
	taps.Wait()
	close(stop)
	readers.Wait()
	counted(t, m, 300)
}
