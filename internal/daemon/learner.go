package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/proxyagent/flowmap"
)

// tapBlocksPerMiB is how many of the ring's blocks make a MiB, the unit of the configuration.
const tapBlocksPerMiB = (1 << 20) / tap.DefaultBlockSize

// learner feeds what all taps see to the Source-QP map, in the order in which it passed: the rules
// withdraw an answer that comes before its question.
type learner struct {
	group *tap.Group
	flows *flowmap.Map
	now   func() time.Time
	downs uint64 // of the tapped links, when tick looked last
}

func newLearner(flows *flowmap.Map, notRoCEv2 *atomic.Uint64, now func() time.Time) *learner {
	var p roce.Packet
	o := flowmap.Observation{Packet: &p}
	return &learner{flows: flows, now: now, group: tap.NewGroup(func(f *tap.Frame) {
		if err := roce.ParseEthernet(f.Data, &p); err != nil {
			if errors.Is(err, roce.ErrRoCEv1) {
				flows.CountRoCEv1(1)
			} else {
				notRoCEv2.Add(1)
			}
			return
		}
		if f.HasVLAN {
			p.VLAN = f.VLAN() // the kernel took the outer tag off
		}
		o.IfIndex, o.At = f.IfIndex, f.At
		flows.Observe(&o)
	})}
}

// missed holds the map's answers back until traffic agrees with them again: queue pairs may have been
// reused while nobody looked.
func (l *learner) missed() { l.flows.Doubt(l.now()) }

// open is called when the mechanism is enabled, and again when reading has failed.
func (l *learner) open() (runner, error) {
	l.missed()
	return l, nil
}

// tick does what is due each second: entries age, and a link that was down has hidden traffic that went
// another way.
func (l *learner) tick(rings []ringStats) {
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
}

// Run implements runner.
func (l *learner) Run(ctx context.Context) error { return l.group.Run(ctx) }

// Close implements runner; the taps close their rings themselves.
func (l *learner) Close() error { return nil }

// learnerTap is one ring that the learner reads.
type learnerTap struct {
	ring    *tap.Ring
	group   *tap.Group
	closing func()
}

// tapOpener opens a tap for a unit; when it does so again, the tap has failed and missed traffic meanwhile.
func (l *learner) tapOpener(iface string, ringMiB int, book *ringBook) func() (runner, error) {
	again := false
	return func() (runner, error) {
		t, err := l.openTap(iface, ringMiB, book)
		if err == nil && again {
			l.missed()
		}
		again = true
		return t, err
	}
}

func (l *learner) openTap(iface string, ringMiB int, book *ringBook) (runner, error) {
	ring, err := tap.Open(tap.Config{Interface: iface, Blocks: ringMiB * tapBlocksPerMiB})
	if err != nil {
		return nil, err
	}
	closing := book.opened(iface, roleLearner, func() ringStats {
		s := ring.Stats()
		return ringStats{Packets: s.Packets, Drops: s.Drops, Freezes: s.Freezes, Downs: s.Downs}
	})
	return &learnerTap{ring, l.group, closing}, nil
}

// Run implements runner.
func (t *learnerTap) Run(ctx context.Context) error { return t.group.Serve(ctx, t.ring) }

// Close implements runner.
func (t *learnerTap) Close() error {
	t.closing()
	return t.ring.Close()
}
