package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"pncd/dataplane/host"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/internal/config"
	"pncd/proxyagent/flowmap"
)

// vpnTaps feeds what the taps of all VPNs see to the Source-QP map, each packet in its context, in the order in which
// they passed.
type vpnTaps struct {
	group *tap.Group
	flows *flowmap.Map
}

func newVPNTaps(flows *flowmap.Map, notRoCEv2 *atomic.Uint64) *vpnTaps {
	var p roce.Packet
	o := flowmap.Observation{Packet: &p}
	return &vpnTaps{flows: flows, group: tap.NewGroup(func(f *tap.Frame) {
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
		o.IfIndex, o.Context, o.At = f.IfIndex, f.Context, f.At
		flows.Observe(&o)
	})}
}

// Run implements runner.
func (t *vpnTaps) Run(ctx context.Context) error { return t.group.Run(ctx) }

// Close implements runner; the taps close their rings themselves.
func (t *vpnTaps) Close() error { return nil }

// vpnTap is one ring of a VPN.
type vpnTap struct {
	ring    *tap.Ring
	group   *tap.Group
	closing func()
}

// openTap opens a tap in the VPN, for what comes in there only.
func (t *vpnTaps) openTap(v *vpn, iface string, ringMiB int, book *ringBook) (runner, error) {
	var ring *tap.Ring
	err := host.Inside(v.place.Namespace, func() (err error) {
		ring, err = tap.Open(tap.Config{Interface: iface, Blocks: ringMiB * tapBlocksPerMiB, Context: v.id})
		return err
	})
	if err != nil {
		return nil, err
	}
	closing := book.opened(inContext(v.name, iface), roleLearner, func() ringStats {
		s := ring.Stats()
		return ringStats{Packets: s.Packets, Drops: s.Drops, Freezes: s.Freezes, Downs: s.Downs}
	})
	return &vpnTap{ring, t.group, closing}, nil
}

// Run implements runner.
func (t *vpnTap) Run(ctx context.Context) error { return t.group.Serve(ctx, t.ring) }

// Close implements runner.
func (t *vpnTap) Close() error {
	t.closing()
	return t.ring.Close()
}

// vpnSpecs are the units of a proxy's VPNs: the sockets that CNPs leave by, the taps, and what reads these.
func (d *Daemon) vpnSpecs(c *config.Config, p *parts) (out []unitSpec) {
	taps := 0
	for i := range c.Contexts {
		x := &c.Contexts[i]
		v := d.contexts.of(x)
		if v == nil {
			continue
		}
		served := c.Proxy.ServedIn(x.Name)
		name := "context:" + x.Name
		out = append(out, unitSpec{
			name: name, key: fmt.Sprintf("%s:%d:%v", name, v.id, families(served)),
			open: v.opener(served, d.log.WithField("part", name)),
		})
		for _, iface := range x.Taps {
			taps++
			name := "tap:" + inContext(x.Name, iface)
			open := func() (runner, error) { return p.vpnTaps.openTap(v, iface, c.Proxy.TapRing, d.rings) }
			out = append(out, unitSpec{
				name: name, key: fmt.Sprintf("%s:%d:%d", name, v.id, c.Proxy.TapRing),
				open: p.vpnTaps.doubting(open, d.now), health: linkHealthIn(v.place.Namespace, iface),
			})
		}
	}
	if taps > 0 {
		out = append(out, unitSpec{name: "learner:contexts", key: "learner:contexts", open: p.vpnTaps.doubting(func() (runner, error) { return p.vpnTaps, nil }, d.now)})
	}
	return out
}

// doubting is an opener after which the map's answers are held back until traffic agrees with them again: queue pairs may
// have been reused while nobody looked.
func (t *vpnTaps) doubting(open func() (runner, error), now func() time.Time) func() (runner, error) {
	return func() (runner, error) {
		r, err := open()
		if err == nil {
			t.flows.Doubt(now())
		}
		return r, err
	}
}
