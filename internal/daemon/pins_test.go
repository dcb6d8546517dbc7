package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/vishvananda/netlink"

	"pncd/dataplane/tap/kernel"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/config"
	"pncd/internal/testwait"
	"pncd/proxyagent/flowmap"
)

const leftFlows = 4096

// leaveTap has a tap on va of which the kernel keeps what it keeps of a process that was killed, and the process too: who
// looks finds no difference, as nobody holds the pins.
func leaveTap(t *testing.T, mode kernel.Mode, ns *taptest.NS, root string) {
	t.Helper()
	var k *kernel.Tap
	err := ns.Do(func() error {
		pins, err := kernel.OpenPins(root)
		if err != nil {
			return err
		}
		k, err = kernel.Open(kernel.Config{Mode: mode, MaxFlows: leftFlows, RingSize: ringOctets(4), Interval: sampleInterval, Pins: pins})
		if err == nil {
			_, err = k.Attach("va")
		}
		return errors.Join(err, pins.Close())
	})
	if errors.Is(err, kernel.ErrPermission) || errors.Is(err, kernel.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
}

// leftOf says what is left in the kernel of taps on va; empty when nothing is.
func leftOf(t *testing.T, ns *taptest.NS, root string) string {
	t.Helper()
	var out []string
	err := ns.Do(func() error {
		l, err := netlink.LinkByName("va")
		if err != nil {
			return err
		}
		if x := l.Attrs().Xdp; x != nil && x.Attached {
			out = append(out, "XDP")
		}
		all, err := netlink.QdiscList(l)
		for _, q := range all {
			if q.Type() == "clsact" {
				out = append(out, "clsact")
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(root + "/*/*")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(out, folders...), ", ")
}

// openLearner opens the learner alone, with a choice of tap.
func openLearner(t *testing.T, ns *taptest.NS, root string, c tapChoice) *test.Hook {
	t.Helper()
	log, hook := test.NewNullLogger()
	l := newLearner(flowmap.New(flowmap.Config{}), new(atomic.Uint64), time.Now, log)
	l.pins.root = root
	if err := ns.Do(func() error {
		r, err := l.opener(tapSettings{tapChoice: c, ringMiB: 4, flows: leftFlows})()
		if err == nil {
			t.Cleanup(func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return hook
}

// runIn starts and stops a daemon in a namespace.
func runIn(t *testing.T, ns *taptest.NS, root, yaml string) *test.Hook {
	t.Helper()
	r := &running{t: t, port: freePort(t)}
	path := filepath.Join(t.TempDir(), "pncd.yaml")
	r.write(path, yaml)
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	hook := test.NewLocal(log)
	if r.Daemon, err = New(cfg, path, log); err != nil {
		t.Fatal(err)
	}
	r.pins = root
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ns.Do(func() error { return r.Run(ctx, nil) }) }()
	testwait.Until(t, "the API answers", func() bool {
		c, err := net.Dial("unix", filepath.Join(filepath.Dir(path), "pncd.sock"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return hook
}

const withoutProxy = `
node: test
api: {listen: "unix://%DIR%/pncd.sock"}
static: [{prefix: 198.51.100.0/24, proxy: 192.0.2.1}]
congestion_node: {interfaces: [lo], source_ipv4: 127.0.0.1, detect: {mode: ring}}
`

func TestWhatAKilledRunsTapLeftGoesAtTheNextStart(t *testing.T) {
	next := map[string]func(*testing.T, *taptest.NS, string) *test.Hook{
		"disabled": func(t *testing.T, ns *taptest.NS, root string) *test.Hook { return runIn(t, ns, root, template) },
		"without a proxy": func(t *testing.T, ns *taptest.NS, root string) *test.Hook {
			return runIn(t, ns, root, withoutProxy+"enabled: true\n")
		},
		"ring": func(t *testing.T, ns *taptest.NS, root string) *test.Hook {
			return openLearner(t, ns, root, tapChoice{})
		},
		"clsact": func(t *testing.T, ns *taptest.NS, root string) *test.Hook {
			return openLearner(t, ns, root, tapChoice{program: true, mode: kernel.Clsact})
		},
	}
	for _, mode := range []kernel.Mode{kernel.TCX, kernel.XDP, kernel.Clsact} {
		for name, start := range next {
			t.Run(fmt.Sprint(mode, "/", name), func(t *testing.T) {
				a, _ := taptest.Pair(t)
				root := taptest.BPFFS(t)
				leaveTap(t, mode, a, root)
				if leftOf(t, a, root) == "" {
					t.Fatal("nothing is left")
				}
				hook := start(t, a, root)
				if got := leftOf(t, a, root); got != "" {
					t.Errorf("still there: %s", got)
				}
				told := false
				for _, e := range hook.AllEntries() {
					told = told || e.Level == logrus.InfoLevel && strings.Contains(fmt.Sprint(e.Data["removed"]), "va")
				}
				if !told {
					t.Error("the log does not tell")
				}
			})
		}
	}
}

// A start that takes the program over removes the filter of one before it, and only that.
func TestWhatAStartTakesOverStays(t *testing.T) {
	a, _ := taptest.Pair(t)
	root := taptest.BPFFS(t)
	leaveTap(t, kernel.TCX, a, root)
	want := leftOf(t, a, root)
	leaveTap(t, kernel.Clsact, a, root)
	openLearner(t, a, root, tapChoice{program: true, mode: kernel.TCX})
	if got := leftOf(t, a, root); got != want || want == "" {
		t.Errorf("%s, was %s", got, want)
	}
}

// Two filters can't be on an interface, and the first one's pncd is alive.
func TestAFilterIsNotReplacedWhileItsProcessLives(t *testing.T) {
	a, _ := taptest.Pair(t)
	root := taptest.BPFFS(t)
	filter := tapChoice{program: true, mode: kernel.Clsact}
	openLearner(t, a, root, filter)
	l := quietLearner()
	l.pins.root = root
	err := a.Do(func() error {
		_, err := l.opener(tapSettings{tapChoice: filter, ringMiB: 4, flows: leftFlows})()
		return err
	})
	if !errors.Is(err, kernel.ErrPinsHeld) {
		t.Errorf("got %v", err)
	}
}

// An interface has room for one XDP program: an earlier run's tap goes before the translator comes.
func TestTheKernelTranslatorFindsNoTapOfAKilledRun(t *testing.T) {
	k := newInKernel(t)
	root := taptest.BPFFS(t)
	k.parts.Load().learner.pins.root = root
	leaveTap(t, kernel.XDP, k.ns, root)
	for _, s := range k.specs(k.config.Load(), k.parts.Load()) {
		if s.name == "learner" || s.name == "translate:va" {
			k.unit(s.name)
		}
	}
	k.setEnabled(true)
	k.notify()
}
