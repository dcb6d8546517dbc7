package tap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

func TestGroupKeepsTheOrderOfTimeAcrossInterfaces(t *testing.T) {
	router, left, right := taptest.Need(t), taptest.Need(t), taptest.Need(t)
	for _, l := range []struct {
		ns   *taptest.NS
		name string
	}{{left, "vl"}, {right, "vr"}} {
		if err := taptest.Veth(router, l.name, l.ns, "eth0"); err != nil {
			t.Fatal(err)
		}
	}
	rl := open(t, router, Config{Interface: "vl"})
	rr := open(t, router, Config{Interface: "vr", RetireTimeout: 3 * time.Millisecond})
	g, c := group(t, rl, rr)
	inl, inr := taptest.NeedInjector(t, left, "eth0"), taptest.NeedInjector(t, right, "eth0")
	frame := taptest.Ethernet(packet(t, false, 0, 0))
	const n = 20000
	for i := range n {
		binary.BigEndian.PutUint32(frame[len(frame)-8:], uint32(i))
		in := inl
		if i%3 == 1 || i%7 == 2 {
			in = inr
		}
		send(t, in, frame)
	}
	c.wait(t, n)
	got := c.stop(t)
	if len(got) != n {
		t.Fatalf("%d frames, want %d", len(got), n)
	}
	early := uint64(0) // places that hold a frame sent before the one that came last
	latest := uint32(0)
	for _, f := range got {
		k := binary.BigEndian.Uint32(f.data[len(f.data)-8:])
		if k < latest {
			early++
		}
		latest = max(latest, k)
		want := rl.IfIndex()
		if k%3 == 1 || k%7 == 2 {
			want = rr.IfIndex()
		}
		if f.IfIndex != want {
			t.Fatalf("frame %d: interface %d, want %d", k, f.IfIndex, want)
		}
	}
	// A machine that holds the reader up may make frames late; the group then knows.
	if early > g.Late() {
		t.Errorf("%d frames out of order, %d counted as late", early, g.Late())
	}
}

// group runs a group with rings until its collector is stopped.
func group(t *testing.T, rings ...*Ring) (*Group, *collector) {
	t.Helper()
	g := NewGroup(nil)
	c := collect(t, func(ctx context.Context, fn func(*Frame)) error {
		g.fn = fn
		var all errgroup.Group
		all.Go(func() error { return g.Run(ctx) })
		for _, r := range rings {
			all.Go(func() error { return g.Serve(ctx, r) })
		}
		return all.Wait()
	})
	return g, c
}

func TestGroupGoesOnWhenOneInterfaceIsGone(t *testing.T) {
	a, b := taptest.Pair(t)
	x, y := taptest.Pair(t)
	first, second := open(t, a, Config{Interface: "va"}), open(t, x, Config{Interface: "va"})
	inb, iny := taptest.NeedInjector(t, b, "vb"), taptest.NeedInjector(t, y, "vb")
	frame := taptest.Ethernet(packet(t, false, 0, 0))

	gone := make(chan error, 1)
	c := collect(t, func(ctx context.Context, fn func(*Frame)) error {
		g := NewGroup(fn)
		var all errgroup.Group
		all.Go(func() error { return g.Run(ctx) })
		all.Go(func() error { return g.Serve(ctx, second) })
		all.Go(func() error {
			gone <- g.Serve(ctx, first)
			return nil
		})
		return all.Wait()
	})
	send(t, inb, frame)
	send(t, iny, frame)
	c.wait(t, 2)
	if err := a.Delete("va"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gone:
		if !errors.Is(err, ErrInterfaceGone) {
			t.Errorf("Serve: %v, want ErrInterfaceGone", err)
		}
	case <-time.After(patience):
		t.Fatal("Serve did not end")
	}
	send(t, iny, frame)
	c.wait(t, 3)
	c.stop(t)
}

func TestServeEndsWhenItsRingIsClosed(t *testing.T) {
	a, b := taptest.Pair(t)
	ra := open(t, a, Config{Interface: "va"})
	_, c := group(t, open(t, b, Config{Interface: "vb"}), ra)
	if err := ra.Close(); err != nil {
		t.Fatal(err)
	}
	c.cancel()
	if err := c.result(t); !errors.Is(err, ErrClosed) {
		t.Errorf("Serve: %v, want ErrClosed", err)
	}
}

func TestRingsMayJoinBeforeRunAndStayAfterIt(t *testing.T) {
	a, b := taptest.Pair(t)
	r := open(t, a, Config{Interface: "va"})
	in := taptest.NeedInjector(t, b, "vb")
	frame := taptest.Ethernet(packet(t, false, 0, 0))
	seen := make(chan struct{}, 100)
	g := NewGroup(func(*Frame) { seen <- struct{}{} })
	lend, back := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(lend, r) }()
	for range 3 {
		send(t, in, frame)
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- g.Run(ctx) }()
		select {
		case <-seen:
		case <-time.After(patience):
			t.Fatal("no frame")
		}
		if err := g.Run(ctx); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run: %v, want ErrRunning", err)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}
	back() // nobody runs now
	if err := <-served; err != nil {
		t.Error(err)
	}
	c := collect(t, r.Run) // the ring is free again
	send(t, in, frame)
	c.wait(t, 1)
	c.stop(t)
}

func TestRingsComeAndGoWhileFramesArrive(t *testing.T) {
	a, b := taptest.Pair(t)
	x, y := taptest.Pair(t)
	steady, passing := open(t, a, Config{Interface: "va"}), open(t, x, Config{Interface: "va"})
	inb, iny := taptest.NeedInjector(t, b, "vb"), taptest.NeedInjector(t, y, "vb")
	frame, six := taptest.Ethernet(packet(t, false, 0, 0)), taptest.Ethernet(packet(t, true, 0, 0))
	g, c := group(t, steady)
	const n = 200
	for range n {
		lend, back := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- g.Serve(lend, passing) }()
		send(t, inb, six)
		send(t, iny, frame)
		back()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
	}
	ofSteady := func() (k int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, f := range c.frames {
			if bytes.Equal(f.data, six) {
				k++
			}
		}
		return k
	}
	testwait.Until(t, "the ring that stays has shown all its frames", func() bool { return ofSteady() >= n })
	c.stop(t)
	if k := ofSteady(); k != n {
		t.Errorf("%d frames by the ring that stayed, want %d", k, n)
	}
}

// fakeInput is a ring with a closed block with one empty frame for each time, in nanoseconds.
func fakeInput(retire time.Duration, at ...int64) *input {
	const header, frame = 64, 64
	b := make(block, header+frame*len(at))
	h := b.header()
	h.Block_status, h.Num_pkts, h.Offset_to_first_pkt = 1, uint32(len(at)), header
	for i, ns := range at {
		p := b[header+i*frame:]
		binary.NativeEndian.PutUint32(p, frame)
		binary.NativeEndian.PutUint32(p[4:], uint32(ns/1e9))
		binary.NativeEndian.PutUint32(p[8:], uint32(ns%1e9))
	}
	empty := make(block, header)
	return &input{r: &Ring{retire: retire, blocks: []block{b, empty, empty, empty}}}
}

func TestMergeWaitsOnlyWhileAnEarlierFrameIsPossible(t *testing.T) {
	const ms = int64(time.Millisecond)
	clock := time.Unix(0, 1000*ms)
	var got []int64
	a, b := fakeInput(0, 995*ms, 997*ms), fakeInput(0, 996*ms)
	m := merger{
		in: []*input{a, b}, wait: 5 * time.Millisecond, late: new(atomic.Uint64),
		fn: func(f *Frame) { got = append(got, f.At.UnixMilli()) }, now: func() time.Time { return clock },
	}
	run := func() (sleep time.Duration) {
		for idle := false; !idle; {
			sleep, idle = m.step()
		}
		return sleep
	}
	if sleep := run(); len(got) != 2 || got[0] != 995 || got[1] != 996 || sleep != 2*time.Millisecond {
		t.Fatalf("handed over %v, then sleeps %v; want 995 and 996, then 2ms", got, sleep)
	}
	clock = clock.Add(2 * time.Millisecond)
	if sleep := run(); len(got) != 3 || got[2] != 997 || sleep >= 0 {
		t.Fatalf("handed over %v, then sleeps %v; want 997 too, then for ever", got, sleep)
	}
	if m.late.Load() != 0 {
		t.Errorf("%d late", m.late.Load())
	}
}

func TestMergeDoesNotWaitWhenTheClockWasSetBack(t *testing.T) {
	const ms = int64(time.Millisecond)
	n := 0
	m := merger{
		in: []*input{fakeInput(0, 5000*ms), fakeInput(0)}, wait: 5 * time.Millisecond, late: new(atomic.Uint64),
		fn: func(*Frame) { n++ }, now: func() time.Time { return time.Unix(0, 1000*ms) },
	}
	for idle := false; !idle; {
		_, idle = m.step()
	}
	if n != 1 {
		t.Errorf("%d frames handed over, want 1", n)
	}
}

func BenchmarkBlockFrames(b *testing.B) {
	at := make([]int64, 1000)
	in := fakeInput(0, at...)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		var f Frame
		in.r.blocks[0].frames(&f, func(*Frame) { n++ })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/frame")
}
