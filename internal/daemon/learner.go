package daemon

import (
	"context"
	"sync/atomic"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/proxyagent/flowmap"
)

// tapBlocksPerMiB is how many of the ring's blocks make a MiB, the unit of the configuration.
const tapBlocksPerMiB = (1 << 20) / tap.DefaultBlockSize

// learner feeds the packets that one tap sees to the Source-QP map.
type learner struct {
	ring      *tap.Ring
	flows     *flowmap.Map
	notRoCEv2 *atomic.Uint64 // packets to UDP 4791 that don't parse, over all taps
	closing   func()
}

func openLearner(iface string, ringMiB int, flows *flowmap.Map, notRoCEv2 *atomic.Uint64, book *ringBook) (runner, error) {
	ring, err := tap.Open(tap.Config{Interface: iface, Blocks: ringMiB * tapBlocksPerMiB})
	if err != nil {
		return nil, err
	}
	l := &learner{ring: ring, flows: flows, notRoCEv2: notRoCEv2}
	l.closing = book.opened(iface, "learner", func() ringStats {
		s := ring.Stats()
		return ringStats{Packets: s.Packets, Drops: s.Drops, Freezes: s.Freezes, Downs: s.Downs}
	})
	return l, nil
}

// Run implements runner.
func (l *learner) Run(ctx context.Context) error {
	var p roce.Packet
	o := flowmap.Observation{Packet: &p}
	return l.ring.Run(ctx, func(f *tap.Frame) {
		if err := roce.ParseEthernet(f.Data, &p); err != nil {
			l.notRoCEv2.Add(1)
			return
		}
		if f.HasVLAN {
			p.VLAN = f.VLAN() // the kernel took the outer tag off
		}
		o.IfIndex, o.At = f.IfIndex, f.At
		l.flows.Observe(&o)
	})
}

// Close implements runner.
func (l *learner) Close() error {
	l.closing()
	return l.ring.Close()
}
