package flowmap

import (
	"net/netip"
	"testing"
	"time"
)

func inContext(c conn, context uint32) conn {
	c.ab.context, c.ba.context = context, context
	return c
}

func (f flow) tuple() Tuple {
	return Tuple{Context: f.context, Sender: f.from, Receiver: f.to, SrcPort: f.port}
}

func (l *lab) wantTuple(f flow, v Verdict, qp uint32) Entry {
	l.t.Helper()
	e, got := l.m.LookupTuple(f.tuple(), l.now)
	if got != v || e.SourceQP != qp {
		l.t.Fatalf("%+v: %v, Source QP 0x%x (%v, %q); want %v, 0x%x", f.tuple(), got, e.SourceQP, e.State, e.Detail, v, qp)
	}
	if v == Hit && e.Key != f.key() {
		l.t.Fatalf("the entry is that of %v, want %v", e.Key, f.key())
	}
	return e
}

func TestFlowsOfAVPNAreFoundByTheirTuple(t *testing.T) {
	l := newLab(t, Config{})
	c, d := inContext(formulaConn(hostA, hostB, 0x111, 0x211), 1), inContext(formulaConn(hostA, hostB, 0x112, 0x213), 2)
	def := formulaConn(hostA, hostB, 0x113, 0x215)
	for _, x := range []conn{c, d, def} {
		l.wantTuple(x.ab, Miss, 0)
		l.exchange(x, highStart, 20)
		l.paired(x, SourcePort)
	}
	for _, x := range []conn{c, d} {
		l.wantTuple(x.ab, Hit, x.ba.qp)
		l.wantTuple(x.ba, Hit, x.ab.qp)
	}
	l.wantTuple(def.ab, Miss, 0) // the default context has no tuples: format 1 names its flows
	c.ab.context = 2             // the other VPN has a flow with another port
	l.wantTuple(c.ab, Miss, 0)
	tuple := d.ab.tuple()
	if n := testing.AllocsPerRun(100, func() { l.m.LookupTuple(tuple, l.now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestATupleOfSeveralQueuePairsIsNoAnswer(t *testing.T) {
	l := newLab(t, Config{})
	c := inContext(formulaConn(hostA, hostB, 0x111, 0x211), 1)
	l.exchange(c, highStart, 20)
	l.wantTuple(c.ab, Hit, 0x111)
	other := inContext(newConn(hostA, hostB, 0x999, 0x998, c.ab.port, c.ba.port), 1)
	l.request(other.ab, 5) // undecided, but it may be the one that is meant
	if e := l.wantTuple(c.ab, Undecided, 0); e.Detail != several || e.Key.DestQP != 0 {
		t.Errorf("%+v", e)
	}
	l.want(c.ab, Hit, 0x111)

	third := inContext(newConn(hostA, hostB, 0x997, 0x996, c.ab.port, c.ba.port), 1)
	l.request(third.ab, 5)
	l.wantTuple(c.ab, Undecided, 0)

	// The others end, and the one that lives is the answer again.
	for range 70 {
		l.wait(time.Second)
		l.exchange(c, highStart+100, 1)
	}
	l.m.Tick(l.now)
	l.wantTuple(c.ab, Hit, 0x111)
	l.wait(2 * time.Minute)
	l.m.Tick(l.now)
	if _, v := l.m.LookupTuple(c.ab.tuple(), l.now); v != Aged && v != Miss {
		t.Errorf("%v when all have ended", v)
	}
}

func TestATupleFollowsThePortAndGoesWithTheFlow(t *testing.T) {
	l := newLab(t, Config{})
	c := inContext(formulaConn(hostA, hostB, 0x111, 0x211), 1)
	l.exchange(c, highStart, 20)
	moved := c.ab
	moved.port++
	l.request(moved, highStart+20)
	l.wantTuple(c.ab, Miss, 0)
	l.wantTuple(moved, Undecided, 0)
	if n := l.m.tuples.Size(); n != 2 {
		t.Errorf("%d tuples, want that of each direction", n)
	}
	for range 10 {
		l.wait(10 * time.Minute)
		l.m.Tick(l.now)
	}
	if _, total := l.m.Len(); total != 0 || l.m.tuples.Size() != 0 {
		t.Errorf("%d tuples for %d flows", l.m.tuples.Size(), total)
	}
}

func TestTuplesAreBoundedAsTheMapIs(t *testing.T) {
	l := newLab(t, Config{MaxEntries: 100})
	for i := range uint32(1000) {
		f := inContext(newConn(hostA, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 0x100+i, 0x5000+i, uint16(49152+i%300), 7), 1).ab
		l.request(f, i)
		l.wait(time.Millisecond)
	}
	if _, total := l.m.Len(); total != 100 || l.m.tuples.Size() > total {
		t.Errorf("%d tuples for %d flows", l.m.tuples.Size(), total)
	}
}

// Who asks again at each call of OnAnswer has what the map says of a tuple, whatever moves, ends or lives again.
func TestCopyOfTuplesIsNeverBehind(t *testing.T) {
	l := newLab(t, Config{})
	c := inContext(formulaConn(hostA, hostB, 0x111, 0x211), 1)
	moved := c.ab
	moved.port++
	copies := map[Tuple]uint32{c.ab.tuple(): 0, moved.tuple(): 0}
	l.m.OnAnswer(func(Key) {
		for tuple := range copies {
			e, v := l.m.LookupTupleAlone(tuple, l.now)
			if v != Hit {
				e.SourceQP = 0
			}
			copies[tuple] = e.SourceQP
		}
	})
	check := func(what string, f flow, want uint32) {
		t.Helper()
		if got := copies[f.tuple()]; got != want {
			t.Errorf("%s: the copy has Source QP %#x, want %#x", what, got, want)
		}
		if e, v := l.m.LookupTuple(f.tuple(), l.now); want != 0 && (v != Hit || e.SourceQP != want) {
			t.Errorf("%s: the map has %v, Source QP %#x; the copy %#x", what, v, e.SourceQP, want)
		}
	}
	l.exchange(c, highStart, 20)
	check("learned", c.ab, 0x111)
	other := inContext(newConn(hostA, hostB, 0x999, 0x998, c.ab.port, c.ba.port), 1)
	l.request(other.ab, 5)
	check("another one with the port", c.ab, 0)
	next := uint32(highStart + 100)
	for e, v := l.m.Lookup(other.ab.key(), l.now); v != Miss; e, v = l.m.Lookup(other.ab.key(), l.now) {
		l.wait(time.Second)
		l.exchange(c, next, 1)
		next++
		l.m.Tick(l.now)
		if copies[c.ab.tuple()] != 0 && v != Miss {
			if _, still := l.m.Lookup(other.ab.key(), l.now); still != Miss {
				t.Fatalf("the other one has ended (%v) and may live again, and the copy has an answer", e.State)
			}
		}
		if next > highStart+100_000 {
			t.Fatal("the other one is never forgotten")
		}
	}
	check("the other one is forgotten", c.ab, 0x111)
	l.request(moved, next)
	check("the port has changed", c.ab, 0)
	check("the port has changed", moved, 0)
	l.m.OnAnswer(nil)
}
