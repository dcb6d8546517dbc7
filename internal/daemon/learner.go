package daemon

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/tap"
	"pncd/dataplane/tap/kernel"
	"pncd/proxyagent/flowmap"
)

// learner feeds what all taps see to the Source-QP map, in the order in which it passed: the rules
// withdraw an answer that comes before its question.
type learner struct {
	flows *flowmap.Map
	now   func() time.Time
	log   logrus.FieldLogger
	probe func() kernel.Support
	pins  pinStore
	// detached is told that somebody else took a program off an interface; it is attached again.
	detached func(program, iface string)
	group    *tap.Group // of the rings
	rings    feeder
	feeding  atomic.Pointer[feeder]
	untold   atomic.Uint64 // tellings that the program could not be told
	downs    uint64        // of the tapped links, when tick looked last

	mu      sync.Mutex
	choices map[string]tapChoice  // by proxy.tap
	kernels map[string]*kernelTap // those that are open, by the key of their unit
	past    programCounts         // of those that are closed
}

// feeder is a source of packets. While one replaces another, both run; one of them feeds the map.
type feeder struct {
	since atomic.Int64 // what was seen before, the other has shown; unix nanoseconds
}

// take makes f the one that feeds the map, which nobody did, or another; its answers wait for traffic.
func (l *learner) take(f *feeder) {
	if old := l.feeding.Load(); old != nil && old != f {
		f.since.Store(l.now().UnixNano())
	}
	l.feeding.Store(f)
	l.missed()
}

// feeds says whether a packet of f is for the map.
func (l *learner) feeds(f *feeder, at time.Time) bool {
	return l.feeding.Load() == f && at.UnixNano() >= f.since.Load()
}

// decide says what a proxy.tap comes to. It asks the kernel, and loads a program to try: nothing is asked while the
// mechanism is off. A program that can be had is not asked for again; one that can't is, with the next enabling or reload: the cause may have
// been mended.
func (l *learner) decide(want string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.choices[want]; !ok || c.err != nil || !c.program {
		l.choices[want] = chooseTap(want, l.probe)
	}
}

// choice is what decide has found; the zero one before.
func (l *learner) choice(want string) tapChoice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.choices[want]
}

func newLearner(flows *flowmap.Map, notRoCEv2 *atomic.Uint64, now func() time.Time, log logrus.FieldLogger) *learner {
	show := shownTo(flows, notRoCEv2)
	l := &learner{flows: flows, now: now, log: log, pins: pinStore{root: kernel.DefaultPins, log: log}, probe: kernel.Probe, choices: map[string]tapChoice{}, kernels: map[string]*kernelTap{}}
	l.group = tap.NewGroup(func(f *tap.Frame) {
		if l.feeds(&l.rings, f.At) {
			show(f)
		}
	})
	return l
}

// missed holds the map's answers back until traffic agrees with them again: queue pairs may have been
// reused while nobody looked. A next process must not believe what is kept of them either, and a program is told of some at
// a time.
func (l *learner) missed() {
	l.flows.Doubt(l.now())
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.kernels {
		if k.adopted { // else it is an earlier process's
			k.dropPairs()
		}
	}
}

// opener opens the learner's unit. What feeds the map meanwhile goes on: the unit takes over when it begins.
func (l *learner) opener(s tapSettings) func() (runner, error) {
	return func() (runner, error) {
		l.mu.Lock()
		first := len(l.kernels) == 0
		l.mu.Unlock()
		if first {
			filter := s.program && s.mode == kernel.Clsact
			if alone := removeLeft(l.pins.root, s.program && !filter, l.log); filter && !alone {
				return nil, errFilterOfAnother
			}
		}
		if s.program {
			return l.openKernel(s)
		}
		return l, nil
	}
}

// tick does what is due each second: entries age, and a link that was down has hidden traffic that went
// another way.
func (l *learner) tick(rings []ringStats, age time.Duration) {
	var downs uint64
	for _, r := range rings {
		if r.Role == roleLearner {
			downs += r.Downs
		}
	}
	if downs != l.downs {
		l.downs = downs
		l.missed()
	}
	l.flows.Tick(l.now())
	l.sweep(age)
}

// Begin implements beginner.
func (l *learner) Begin() {
	l.flows.SetTap(nil)
	l.take(&l.rings)
}

// Run implements runner.
func (l *learner) Run(ctx context.Context) error { return l.group.Run(ctx) }

// Close implements runner; the taps close their rings themselves.
func (l *learner) Close() error { return nil }

// tapOpener opens a tap for a unit; when it does so again, the tap has failed and missed traffic meanwhile.
func (l *learner) tapOpener(iface string, s tapSettings, book *ringBook) func() (runner, error) {
	again := false
	open := func() (runner, error) {
		return openRing(iface, tap.Config{Interface: iface, Blocks: s.ringMiB * tapBlocksPerMiB, Tunnels: s.tunnels}, l.group, book)
	}
	if s.program {
		open = func() (runner, error) { return l.openProgramTap(iface, s, book) }
	}
	return func() (runner, error) {
		t, err := open()
		if err == nil && again {
			l.missed()
		}
		again = true
		return t, err
	}
}
