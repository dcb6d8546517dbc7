package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pncd/dataplane/bpf/bpftest"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

// openPins takes the pins of a namespace for the time of the test.
func openPins(t testing.TB, ns *taptest.NS, root string) *Pins {
	t.Helper()
	var p *Pins
	err := ns.Do(func() (err error) {
		p, err = OpenPins(root)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return p
}

// kill leaves a tap and its pins as the end of the process would: nothing is detached or removed, all files are closed.
func kill(t *testing.T, k *Tap) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	for a := range k.attached {
		a.watch.close()
		err = errors.Join(err, a.hook.(*linkHook).Link.Close())
	}
	clear(k.attached)
	k.dir = "" // what is in it stays
	err = errors.Join(err, k.pins.lock.Close())
	if err != nil {
		t.Fatal(err)
	}
}

var pinnedModes = []Mode{TCX, XDP}

func TestProgramAndMapsOutliveTheProcessAndAreTakenOver(t *testing.T) {
	for _, mode := range pinnedModes {
		t.Run(mode.String(), func(t *testing.T) {
			a, b := taptest.Pair(t)
			if err := taptest.Veth(a, "wa", b, "wb"); err != nil {
				t.Fatal(err)
			}
			in, root := taptest.NeedInjector(t, b, "vb"), taptest.BPFFS(t)
			c := Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour, Pins: openPins(t, a, root)}
			first := need(t, c)
			at, gone := attach(t, first, a, "va"), attach(t, first, a, "wa")
			made, second := idsOf(t, first, at), idsOf(t, first, gone)
			if yes, _ := first.TakenOver(); yes || at.adopted {
				t.Fatal("something was there before")
			}
			if err := in.Send(frameOf(t, spec(writeOnly, 1))); err != nil {
				t.Fatal(err)
			}
			key := keyOfSpec(spec(writeOnly, 1))
			follow(t, first, key, Pair{SourceQP: 0x123456, Source: 2})
			collect(t, first).stop(t, first)
			kill(t, first)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			// The program goes on: one packet fits, the other does not and waits in the ring buffer.
			if err := in.Send(frameOf(t, spec(writeOnly, 2)), frameOf(t, spec(writeOnly, 90_000))); err != nil {
				t.Fatal(err)
			}

			c.Pins = openPins(t, a, root)
			next := need(t, c)
			again := attach(t, next, a, "va")
			all, err := next.Settle()
			if yes, lost := next.TakenOver(); !yes || lost || !again.adopted || !all || err != nil {
				t.Errorf("taken over %v, lost %v, adopted %v, all %v, %v", yes, lost, again.adopted, all, err)
			}
			if now := idsOf(t, next, again); !slices.Equal(now.Links, made.Links) {
				t.Errorf("another link: %v, was %v", now.Links, made.Links)
			}
			testwait.UntilRight(t, (&bpftest.IDs{Programs: second.Programs, Links: second.Links}).Left)
			if f, err := next.Lookup(key); err != nil || f.Packets != 3 || f.State != Watched {
				t.Errorf("%+v, %v", f, err)
			}
			if got := pairsOf(t, next); len(got) != 0 {
				t.Errorf("kept of a flow that is not followed: %+v", got)
			}
			ran := collect(t, next)
			testwait.Until(t, "what was handed up meanwhile", func() bool {
				ran.mu.Lock()
				defer ran.mu.Unlock()
				return len(ran.events) == 1 && ran.events[0].Reason == ReasonStep
			})
			if err := in.Send(frameOf(t, spec(writeOnly, 90_001))); err != nil {
				t.Fatal(err)
			}
			if n, _, err := again.Counters(); err != nil || n.Packets != 1 {
				t.Errorf("%d packets since, %v", n.Packets, err)
			}
			if live, evicted, err := next.Flows(); err != nil || live != 1 || evicted != 0 {
				t.Errorf("%d flows, %d evicted, %v", live, evicted, err)
			}
			if err := errors.Join(next.Close(), c.Pins.Close()); err != nil {
				t.Error(err)
			}
			if err := <-ran.done; !errors.Is(err, ErrClosed) {
				t.Errorf("Run: %v", err)
			}
			testwait.UntilRight(t, made.Left)
			if all, err := os.ReadDir(root); err != nil || len(all) != 0 {
				t.Errorf("left in the filesystem: %v, %v", all, err)
			}
		})
	}
}

func TestAnotherVersionIsReplaced(t *testing.T) {
	for _, mode := range pinnedModes {
		t.Run(mode.String(), func(t *testing.T) {
			a, _ := taptest.Pair(t)
			root := taptest.BPFFS(t)
			c := Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16, Pins: openPins(t, a, root)}
			first := need(t, c)
			made := idsOf(t, first, attach(t, first, a, "va"))
			kill(t, first)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			c.MaxFlows, c.Pins = 2048, openPins(t, a, root)
			next := need(t, c)
			if got := c.Pins.Replaced(); len(got) != 1 || c.Pins.Replaced() != nil {
				t.Errorf("replaced %v", got)
			}
			testwait.UntilRight(t, made.Left)
			at := attach(t, next, a, "va")
			if all, err := next.Settle(); all || err != nil || at.adopted {
				t.Errorf("adopted: %v %v %v", all, at.adopted, err)
			}
			// Two of one process stand beside each other, as when it is given other sizes.
			if mode == TCX {
				c.MaxFlows = 4096
				beside := need(t, c)
				attach(t, beside, a, "va")
				if got := c.Pins.Replaced(); got != nil || at.Check() != nil {
					t.Errorf("replaced %v, %v", got, at.Check())
				}
			}
		})
	}
}

func TestWhatIsHalfPinnedIsMadeAnew(t *testing.T) {
	a, b := taptest.Pair(t)
	root := taptest.BPFFS(t)
	c := Config{MaxFlows: 1024, RingSize: 1 << 16, Pins: openPins(t, a, root)}
	first := need(t, c)
	made := idsOf(t, first, attach(t, first, a, "va"))
	if err := os.Remove(filepath.Join(first.dir, "pairs")); err != nil {
		t.Fatal(err)
	}
	kill(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c.Pins = openPins(t, a, root)
	second := need(t, c)
	testwait.UntilRight(t, made.Left)
	if yes, _ := second.TakenOver(); yes {
		t.Error("half of it was taken over")
	}
	attach(t, second, a, "va")
	kill(t, second)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	// An interface that went: its link is no one's.
	if err := b.Delete("vb"); err != nil {
		t.Fatal(err)
	}
	c.Pins = openPins(t, a, root)
	third := need(t, c)
	if yes, _ := third.TakenOver(); !yes || len(third.before.links) != 0 {
		t.Errorf("taken over %v, links %v", yes, third.before.links)
	}
}

func TestPinsSayWhyTheyCannotBe(t *testing.T) {
	a, b := taptest.Pair(t)
	if err := a.Do(func() error { _, err := OpenPins(t.TempDir() + "/pncd"); return err }); !errors.Is(err, ErrNoBPFFS) {
		t.Errorf("another filesystem: %v", err)
	}
	if err := a.Do(func() error { _, err := OpenPins("/nonexistent/pncd"); return err }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	root := taptest.BPFFS(t)
	p := openPins(t, a, root)
	if err := a.Do(func() error { _, err := OpenPins(root); return err }); !errors.Is(err, ErrPinsHeld) {
		t.Errorf("held: %v", err)
	}
	if other := openPins(t, b, root); other.Dir() == p.Dir() {
		t.Error("two namespaces have one folder")
	}
}
