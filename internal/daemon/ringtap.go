package daemon

import (
	"context"
	"errors"
	"sync/atomic"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/proxyagent/flowmap"
)

// tapBlocksPerMiB is how many of the ring's blocks make a MiB, the unit of the configuration.
const tapBlocksPerMiB = (1 << 20) / tap.DefaultBlockSize

// shownTo gives what shows the Source-QP map the frames of a group of rings, each in its ring's context.
func shownTo(flows *flowmap.Map, notRoCEv2 *atomic.Uint64) func(*tap.Frame) {
	var p roce.Packet
	o := flowmap.Observation{Packet: &p}
	return func(f *tap.Frame) {
		if err := roce.AllTunnels.ParseThrough(f.Data, &p); err != nil { // of them, the ring admits what is configured
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
		o.IfIndex, o.Context, o.At = f.IfIndex, f.Context, f.At
		flows.Observe(&o)
	}
}

// ringTap is one ring that a group reads.
type ringTap struct {
	ring    *tap.Ring
	group   *tap.Group
	closing func()
}

// openRing opens a tap in the network namespace of the thread, booked under a name.
func openRing(name string, c tap.Config, group *tap.Group, book *ringBook) (runner, error) {
	ring, err := tap.Open(c)
	if err != nil {
		return nil, err
	}
	closing := book.opened(name, roleLearner, func() ringStats {
		s := ring.Stats()
		return ringStats{Packets: s.Packets, Shown: s.Packets, Drops: s.Drops, Freezes: s.Freezes, Downs: s.Downs}
	})
	return &ringTap{ring, group, closing}, nil
}

// Run implements runner.
func (t *ringTap) Run(ctx context.Context) error { return t.group.Serve(ctx, t.ring) }

// Close implements runner.
func (t *ringTap) Close() error {
	t.closing()
	return t.ring.Close()
}
