package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pncd/dataplane/bpf/bpftest"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

// left removes what is left in a namespace, with these capabilities; all without.
func left(t *testing.T, ns *taptest.NS, root string, keepPins bool, caps ...uint) (removed []string, err error) {
	t.Helper()
	if e := ns.Do(func() error {
		if caps != nil {
			if err := taptest.SetCapabilities(caps...); err != nil {
				return err
			}
		}
		removed, err = RemoveLeft(root, keepPins)
		return nil
	}); e != nil {
		t.Fatal(e)
	}
	return removed, err
}

// killed is a tap on va of a process that was killed.
func killed(t *testing.T, mode Mode, ns *taptest.NS, root string) (*bpftest.IDs, Config) {
	t.Helper()
	c := Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16}
	if mode == Clsact {
		k := need(t, c)
		at := attach(t, k, ns, "va")
		at.watch.close()
		made := idsOf(t, k, at)
		clear(k.attached)
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		return made, c
	}
	c.Pins = openPins(t, ns, root)
	k := need(t, c)
	made := idsOf(t, k, attach(t, k, ns, "va"))
	kill(t, k)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	return made, c
}

func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	for _, mode := range []Mode{TCX, XDP, Clsact} {
		t.Run(mode.String(), func(t *testing.T) {
			a, _ := taptest.Pair(t)
			root := taptest.BPFFS(t)
			made, _ := killed(t, mode, a, root)
			if made.Left() == "" {
				t.Fatal("nothing is left")
			}
			next := need(t, Config{Mode: XDP, MaxFlows: 1024, RingSize: 1 << 16})
			var removed []string
			err := a.Do(func() (err error) {
				if removed, err = RemoveLeft(root, false); err == nil {
					_, err = next.Attach("va") // at once: XDP has room for one
				}
				return err
			})
			if err != nil || len(removed) != 1 || !strings.Contains(removed[0], " va") {
				t.Errorf("removed %q, %v", removed, err)
			}
			testwait.UntilRight(t, made.Left)
			if qdisc, filters := clsact(t, a, "va"); qdisc || len(filters) > 0 {
				t.Errorf("qdisc %v, filters %v", qdisc, filters)
			}
			if all, _ := os.ReadDir(root); len(all) > 0 {
				t.Errorf("in the filesystem: %v", all)
			}
			if removed, err := left(t, a, root, false); removed != nil || err != nil {
				t.Errorf("again: %q, %v", removed, err)
			}
		})
	}
}

func TestWhatIsToBeTakenOverStays(t *testing.T) {
	a, _ := taptest.Pair(t)
	root := taptest.BPFFS(t)
	_, c := killed(t, TCX, a, root)
	killed(t, Clsact, a, root)
	if removed, err := left(t, a, root, true); err != nil || !slices.Equal(removed, []string{"filter pncd of va"}) {
		t.Errorf("removed %q, %v", removed, err)
	}
	c.Pins = openPins(t, a, root)
	next := need(t, c)
	if yes, _ := next.TakenOver(); !yes || !attach(t, next, a, "va").adopted {
		t.Error("nothing was taken over")
	}
}

func TestAnotherProcessKeepsWhatItHas(t *testing.T) {
	for _, mode := range []Mode{TCX, Clsact} {
		t.Run(mode.String(), func(t *testing.T) {
			a, _ := taptest.Pair(t)
			root := taptest.BPFFS(t)
			k := need(t, Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16, Pins: openPins(t, a, root)})
			at := attach(t, k, a, "va")
			removed, err := left(t, a, root, false)
			if removed != nil || !errors.Is(err, ErrPinsHeld) || at.Check() != nil {
				t.Errorf("removed %q, %v; %v", removed, err, at.Check())
			}
		})
	}
}

func TestWhatCannotBeRemovedIsNamedWithTheCapability(t *testing.T) {
	a, _ := taptest.Pair(t)
	root := taptest.BPFFS(t)
	killed(t, Clsact, a, root)
	removed, err := left(t, a, root, false, unix.CAP_NET_RAW)
	if removed != nil || err == nil || !strings.Contains(err.Error(), "filter pncd of va is left: CAP_NET_ADMIN is missing") {
		t.Errorf("removed %q, %v", removed, err)
	}
	if _, err := left(t, a, root, false); err != nil {
		t.Fatal(err)
	}
	killed(t, TCX, a, root)
	all, err := os.ReadDir(root)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	dir := filepath.Join(root, all[0].Name())
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	removed, err = left(t, a, root, false, unix.CAP_NET_ADMIN)
	if removed != nil || err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "CAP_DAC_OVERRIDE") {
		t.Errorf("removed %q, %v", removed, err)
	}
	if removed, err := left(t, a, root, false); len(removed) != 1 || err != nil {
		t.Errorf("removed %q, %v", removed, err)
	}
}
