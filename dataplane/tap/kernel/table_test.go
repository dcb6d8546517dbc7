package kernel

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
	"pncd/internal/testwait"
)

// flowFrames is a frame of each of n flows, of IPv4 or IPv6.
func flowFrames(t *testing.T, n int, v6 bool) (frames [][]byte, keys []Key) {
	t.Helper()
	for i := range uint32(n) {
		s := spec(writeOnly, 1)
		s.BTH.DestQP, s.SrcPort = 0x1000+i, uint16(49152+i%16384)
		if v6 {
			s.Src, s.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:1::2")
		}
		frames = append(frames, frameOf(t, s))
		keys = append(keys, keyOfSpec(s))
	}
	return frames, keys
}

// So many workers put each frame through the program so often.
const workers, rounds = 4, 3

// runAtOnce puts frames through the program from several threads at the same time, and calls then after each.
func runAtOnce(t *testing.T, k *Tap, frames [][]byte, then func(i int)) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range rounds {
				for i := w; i < len(frames); i += workers {
					if _, err := k.progs[0].Run(runOptions(frames[i])); err != nil {
						t.Error(err)
						return
					}
					then(i)
				}
			}
		})
	}
	wg.Wait()
}

// In a table that is half full every flow finds a place, is found there by either side, and stays.
func TestTableThatIsHalfFullEvictsNothing(t *testing.T) {
	const places = 8192
	for _, v6 := range []bool{false, true} {
		k := need(t, Config{MaxFlows: places, RingSize: 1 << 22, Interval: time.Hour})
		frames, keys := flowFrames(t, places/2, v6)
		for range 2 {
			for _, f := range frames {
				if _, err := k.progs[0].Run(runOptions(f)); err != nil {
					t.Fatal(err)
				}
			}
		}
		c, err := k.Counters()
		if err != nil || c.FlowsMade != places/2 || c.FlowsEvicted != 0 || c.FlowsRefused != 0 {
			t.Errorf("IPv6 %v: %+v, %v", v6, c, err)
		}
		want := map[Key]bool{}
		for _, key := range keys {
			want[key] = true
			if f, err := k.Lookup(key); err != nil || f.Packets != 2 {
				t.Fatalf("%+v: %+v, %v", key, f, err)
			}
		}
		if err := k.Each(func(key Key, _ Flow) bool {
			if !want[key] {
				t.Errorf("%+v is none of ours, or was there before", key)
			}
			delete(want, key)
			return true
		}); err != nil || len(want) != 0 {
			t.Errorf("%d flows are missing, %v", len(want), err)
		}
	}
}

// nextTick waits until the program's clock has gone on.
func nextTick(t *testing.T) {
	t.Helper()
	tick := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &ts); err != nil {
			t.Fatal(err)
		}
		return ts.Nano() >> tickShift
	}
	was := tick()
	testwait.Until(t, "the next tick", func() bool { return tick() > was })
}

// The flow that must go is the one that was seen the longest ago, and what was removed makes room.
func TestFullTableEvictsWhatWasSeenLongestAgo(t *testing.T) {
	k := need(t, Config{MaxFlows: minFlows, RingSize: 1 << 22, Interval: time.Hour})
	frames, keys := flowFrames(t, 4*minFlows, false)
	pass := func(f []byte) {
		if _, err := k.progs[0].Run(runOptions(f)); err != nil {
			t.Fatal(err)
		}
	}
	const alive = 32 // few enough to be no majority of any window
	for i, f := range frames {
		if i >= alive && i%32 == 0 {
			nextTick(t) // so that an old flow is older than a new one
			for _, live := range frames[:alive] {
				pass(live)
			}
		}
		pass(f)
	}
	for _, key := range keys[:alive] {
		if f, err := k.Lookup(key); err != nil || f.Packets < 4*minFlows/32-1 {
			t.Errorf("a flow that was seen all the time: %+v, %v", f, err)
		}
	}
	live, evicted, err := k.Flows()
	if err != nil || live > minFlows || live < minFlows*9/10 || live+evicted != uint64(len(frames)) {
		t.Errorf("%d flows, %d evicted, %v", live, evicted, err)
	}
	if err := k.Forget(keys[0]); err != nil {
		t.Fatal(err)
	}
	pass(frames[0])
	if _, now, err := k.Flows(); err != nil || now != evicted {
		t.Errorf("evicted %d, was %d, though a place was free; %v", now, evicted, err)
	}
}

// Processors that make and evict flows at the same time lose none and mix none up.
func TestTableStandsProcessorsAtTheSameTime(t *testing.T) {
	k := need(t, Config{MaxFlows: minFlows, RingSize: 1 << 16, Interval: time.Hour})
	frames, keys := flowFrames(t, workers*minFlows/2, false)
	runAtOnce(t, k, frames, func(i int) {
		_ = k.SetState(keys[i], Quiet) // it may be gone
	})
	ours := map[Key]bool{}
	for _, key := range keys {
		ours[key] = true
	}
	seen := map[Key]bool{}
	if err := k.Each(func(key Key, f Flow) bool {
		if !ours[key] || seen[key] || f.Packets == 0 || f.Packets > rounds {
			t.Errorf("%+v: %+v; ours %v, met before %v", key, f, ours[key], seen[key])
		}
		seen[key] = true
		return true
	}); err != nil {
		t.Fatal(err)
	}
	live, evicted, err := k.Flows()
	c, err2 := k.Counters()
	if err != nil || err2 != nil || live+evicted != c.FlowsMade || c.Packets != uint64(rounds*len(frames)) {
		t.Errorf("%d flows, %d evicted, %+v, %v %v", live, evicted, c, err, err2)
	}
}

func TestKeyWordsAreTheOtherWayRoundAgain(t *testing.T) {
	for _, tt := range []struct {
		key   Key
		words int
	}{
		{Key{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("192.0.2.255"), DestQP: 0xFFFFFF, SrcPort: 0xFFFF, VLAN: 0xFFF}, 2},
		{Key{Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("fe80::ffff"), DestQP: 0x123456, SrcPort: 49152, VLAN: 1}, 5},
	} {
		var e entry
		if n := copy(e.Key[:], tt.key.words()); n != tt.words {
			t.Errorf("%d words, want %d", n, tt.words)
		}
		table := table{words: tt.words}
		if got := table.key(&e); got != tt.key {
			t.Errorf("got %+v, want %+v", got, tt.key)
		}
	}
	// As the program reads the addresses: as they are in the packet.
	k := Key{Src: netip.MustParseAddr("1.2.3.4"), Dst: netip.MustParseAddr("5.6.7.8")}
	if got := unpair(nil, k.words()[0]); binary.BigEndian.Uint64(got) != 0x0102030405060708 {
		t.Errorf("%x", got)
	}
}

func TestClosedTapHasNoFlows(t *testing.T) {
	k := need(t, Config{MaxFlows: 1024, RingSize: 1 << 16})
	expect(t, k, spec(writeOnly, 1), ReasonNew)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	var p roce.Packet
	if err := roce.ParseEthernet(frameOf(t, spec(writeOnly, 1)), &p); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"SetState": k.SetState(KeyOf(&p), Followed), "Forget": k.Forget(KeyOf(&p)), "Each": k.Each(func(Key, Flow) bool { return true }),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
