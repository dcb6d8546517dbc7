package kernel

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

// pairsOf reads all that is kept.
func pairsOf(t *testing.T, k *Tap) map[Key]Pair {
	t.Helper()
	out := map[Key]Pair{}
	if err := k.Pairs(func(key Key, p Pair) {
		if _, twice := out[key]; twice {
			t.Errorf("%+v twice", key)
		}
		out[key] = p
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// follow keeps a pair of a flow and sets it so.
func follow(t *testing.T, k *Tap, key Key, p Pair) {
	t.Helper()
	if err := errors.Join(k.KeepPair(key, p), k.SetState(key, Followed)); err != nil {
		t.Fatal(err)
	}
}

// twice opens a tap with pins on va, lets before use it, kills it, and opens it again for after.
func twice(t *testing.T, c Config, before func(k *Tap, in *taptest.Injector), meanwhile func(in *taptest.Injector), after func(k *Tap)) {
	t.Helper()
	a, b := taptest.Pair(t)
	in, root := taptest.NeedInjector(t, b, "vb"), taptest.BPFFS(t)
	c.Pins = openPins(t, a, root)
	first := need(t, c)
	attach(t, first, a, "va")
	before(first, in)
	kill(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(in)
	}
	c.Pins = openPins(t, a, root)
	next := need(t, c)
	if yes, _ := next.TakenOver(); !yes {
		t.Fatal("nothing was taken over")
	}
	after(next)
}

func send(t *testing.T, in *taptest.Injector, frames ...[]byte) {
	t.Helper()
	if err := in.Send(frames...); err != nil {
		t.Fatal(err)
	}
}

// Kept is what was known of the flows that the program still follows, of both families.
func TestPairsOutliveTheProcess(t *testing.T) {
	want := map[Key]Pair{}
	var frames [][]byte
	var keys []Key
	for _, v6 := range []bool{false, true} {
		f, k := flowFrames(t, 4, v6)
		frames, keys = append(frames, f...), append(keys, k...)
	}
	learned := time.Now().Truncate(time.Second)
	pairAt := func(i int) Pair {
		return Pair{SourceQP: 0xFFFFF0 + uint32(i), Votes: uint32(i), LearnedAt: learned, PKey: 0x8000 + uint16(i), Source: uint8(1 + i%3)}
	}
	twice(t, Config{MaxFlows: 1024, MaxFlows6: 2048, RingSize: 1 << 16, Interval: time.Hour}, func(k *Tap, in *taptest.Injector) {
		send(t, in, frames...)
		for i, key := range keys {
			switch i % 4 {
			case 0, 1:
				follow(t, k, key, pairAt(i))
				want[key] = pairAt(i)
			case 2: // and taken back
				follow(t, k, key, pairAt(i))
				if err := errors.Join(k.SetState(key, Watched), k.DropPair(key), k.SetState(key, Followed)); err != nil {
					t.Fatal(err)
				}
			case 3: // kept, but not followed
				if err := k.KeepPair(key, pairAt(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}, func(in *taptest.Injector) {
		jump := spec(writeOnly, 90_000) // of the second flow: the program watches it
		jump.BTH.DestQP, jump.SrcPort = keys[1].DestQP, keys[1].SrcPort
		send(t, in, frameOf(t, jump))
		delete(want, keys[1])
	}, func(k *Tap) {
		got := pairsOf(t, k)
		for key, p := range want {
			g, ok := got[key]
			if off := p.LearnedAt.Sub(g.LearnedAt); !ok || off > time.Minute || off < -time.Second {
				t.Errorf("%+v: %+v, %v", key, g, ok)
			}
			if g.LearnedAt = p.LearnedAt; g != p {
				t.Errorf("got %+v, want %+v", g, p)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d pairs, want %d", len(got), len(want))
		}
	})
}

// A place that another flow has by now, whoever was in it when the process ended, gives no pair.
func TestPlaceThatIsUsedAgainGivesNoPair(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		frames, keys := flowFrames(t, 4*minFlows, v6)
		old, others := keys[0], frames[1:]
		var place uint32
		twice(t, Config{MaxFlows: minFlows, RingSize: 1 << 16, Interval: time.Hour}, func(k *Tap, in *taptest.Injector) {
			send(t, in, frames[0])
			follow(t, k, old, Pair{SourceQP: 7, Source: 2})
			var e entry
			var err error
			if place, err = k.table(old.words()).find(old.words(), &e); err != nil || len(pairsOf(t, k)) != 1 {
				t.Fatal(err)
			}
			nextTick(t)
		}, func(in *taptest.Injector) {
			send(t, in, others...)
		}, func(k *Tap) {
			if _, err := k.Lookup(old); !errors.Is(err, ErrNoFlow) {
				t.Fatalf("it was not evicted: %v", err)
			}
			if got := pairsOf(t, k); len(got) != 0 {
				t.Errorf("%+v", got)
			}
			for name, err := range map[string]error{"KeepPair": k.KeepPair(old, Pair{Source: 1}), "DropPair": k.DropPair(old)} {
				if !errors.Is(err, ErrNoFlow) {
					t.Errorf("%s of a flow that is gone: %v", name, err)
				}
			}
			// A process that ended as it set a state, while the place changed hands, may have left it Followed.
			flows := k.table(old.words())
			var e entry
			if err := flows.read(place, &e); err != nil {
				t.Fatal(err)
			}
			now := flows.key(&e)
			want := 0
			if pairWord(0).of(flows.seed, now.words()) == pairWord(0).of(flows.seed, old.words()) {
				want = 1 // by chance
			}
			if err := k.SetState(now, Followed); err != nil {
				t.Fatal(err)
			}
			if got := pairsOf(t, k); len(got) != want {
				t.Errorf("%+v", got)
			}
			follow(t, k, now, Pair{SourceQP: 9, Source: 3})
			if got := pairsOf(t, k); len(got) != 1 || got[now].SourceQP != 9 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// While flows take each other's places, no pair becomes another flow's.
func TestPairsStandProcessorsAtTheSameTime(t *testing.T) {
	a, _ := taptest.Pair(t)
	k := need(t, Config{MaxFlows: minFlows, RingSize: 1 << 16, Interval: time.Hour, Pins: openPins(t, a, taptest.BPFFS(t))})
	frames, keys := flowFrames(t, workers*minFlows/2, true)
	runAtOnce(t, k, frames, func(i int) {
		if k.KeepPair(keys[i], Pair{SourceQP: keys[i].DestQP, Source: 1}) == nil {
			_ = k.SetState(keys[i], Followed) // it may be gone
		}
	})
	got := pairsOf(t, k)
	for key, p := range got {
		if p.SourceQP != key.DestQP {
			t.Errorf("%+v: %+v", key, p)
		}
	}
	if len(got) < minFlows/2 {
		t.Errorf("%d pairs", len(got))
	}
}

func TestPairThatCannotBeKeptIsDropped(t *testing.T) {
	a, _ := taptest.Pair(t)
	k := need(t, Config{MaxFlows: minFlows, RingSize: 1 << 16, Interval: time.Hour, Pins: openPins(t, a, taptest.BPFFS(t))})
	expect(t, k, spec(writeOnly, 1), ReasonNew)
	key := keyOfSpec(spec(writeOnly, 1))
	follow(t, k, key, Pair{SourceQP: 7, Source: 1})
	if err := k.KeepPair(key, Pair{SourceQP: 1 << 24, Source: 1}); err == nil {
		t.Error("no error")
	}
	if got := pairsOf(t, k); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	since := k.kept.since
	follow(t, k, key, Pair{SourceQP: 7, Source: 1, LearnedAt: since})
	if err := k.DropPairs(); err != nil || len(pairsOf(t, k)) != 0 {
		t.Errorf("all dropped, but %+v, %v", pairsOf(t, k), err)
	}
	again, err := openPairs(k.pairs, minFlows, minFlows)
	if err != nil || !again.since.Equal(since) {
		t.Errorf("words count from %v, was %v; %v", again.since, since, err)
	}
	if err := errors.Join(again.close(), k.Close()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"KeepPair": k.KeepPair(key, Pair{Source: 1}), "DropPair": k.DropPair(key), "DropPairs": k.DropPairs(), "Pairs": k.Pairs(func(Key, Pair) {}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is kept takes eight octets a place, and nothing without pins.
func TestMemoryOfKeptPairs(t *testing.T) {
	const places = 1 << 16
	a, _ := taptest.Pair(t)
	c := Config{MaxFlows: places, MaxFlows6: places / 2, RingSize: 1 << 16}
	without, err := need(t, c).Memory()
	if err != nil {
		t.Fatal(err)
	}
	c.Pins = openPins(t, a, taptest.BPFFS(t))
	k := need(t, c)
	with, err := k.Memory()
	if more := with - without; err != nil || more < places*3/2*8 || more > places*3/2*8+3*4096 {
		t.Errorf("%d octets more, %v", more, err)
	}
}

// A map of another layout is not read.
func TestPairsOfAnotherLayoutAreMadeAnew(t *testing.T) {
	for _, spec := range []*ebpf.MapSpec{
		{Type: ebpf.Hash, KeySize: 40, ValueSize: 24, MaxEntries: 2*minFlows + 1},
		pairsSpec(minFlows),
		{Type: ebpf.Array, KeySize: 4, ValueSize: pairOctets, MaxEntries: 2*minFlows + 1}, // not to be mapped
	} {
		a, _ := taptest.Pair(t)
		root := taptest.BPFFS(t)
		c := Config{MaxFlows: minFlows, RingSize: 1 << 16, Pins: openPins(t, a, root)}
		first := need(t, c)
		made := idsOf(t, first, attach(t, first, a, "va"))
		other, err := ebpf.NewMap(spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(first.pairs.Unpin(), other.Pin(filepath.Join(first.dir, "pairs"))); err != nil {
			t.Fatal(err)
		}
		kill(t, first)
		if err := errors.Join(first.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		c.Pins = openPins(t, a, root)
		next := need(t, c)
		testwait.UntilRight(t, made.Left)
		if yes, _ := next.TakenOver(); yes || len(pairsOf(t, next)) != 0 {
			t.Errorf("%v: taken over %v", spec, yes)
		}
	}
}

// BenchmarkPairs reads what is kept of 131,072 flows, half of the places.
func BenchmarkPairs(b *testing.B) {
	const n = 1 << 17
	a, _ := taptest.Pair(b)
	k := need(b, Config{MaxFlows: 2 * n, MaxFlows6: minFlows, RingSize: 1 << 16, Interval: time.Hour, Pins: openPins(b, a, taptest.BPFFS(b))})
	s := spec(writeOnly, 1)
	for i := range uint32(n) {
		s.BTH.DestQP = 0x1000 + i
		if _, err := k.progs[0].Run(runOptions(frameOf(b, s))); err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(k.KeepPair(keyOfSpec(s), Pair{SourceQP: i, Source: 1}), k.SetState(keyOfSpec(s), Followed)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		got := 0
		if err := k.Pairs(func(Key, Pair) { got++ }); err != nil || got != n {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pair")
	b.ReportMetric(0, "ns/op")
}
