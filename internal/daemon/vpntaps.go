package daemon

import (
	"context"
	"fmt"
	"sync/atomic"

	"pncd/dataplane/host"
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
	return &vpnTaps{flows: flows, group: tap.NewGroup(shownTo(flows, notRoCEv2))}
}

// Run implements runner.
func (t *vpnTaps) Run(ctx context.Context) error { return t.group.Run(ctx) }

// Close implements runner; the taps close their rings themselves.
func (t *vpnTaps) Close() error { return nil }

// openTap opens a tap in the VPN, for what comes in there only.
func (t *vpnTaps) openTap(v *vpn, iface string, ringMiB int, book *ringBook) (r runner, err error) {
	err = host.Inside(v.place.Namespace, func() (err error) {
		r, err = openRing(inContext(v.name, iface), tap.Config{Interface: iface, Blocks: ringMiB * tapBlocksPerMiB, Context: v.id}, t.group, book)
		return err
	})
	return r, err
}

// vpnSpecs are the units of a proxy's VPNs: the sockets that CNPs leave by, the taps, and what reads these.
func (d *Daemon) vpnSpecs(c *config.Config, p *parts) (out []unitSpec) {
	tapped := false
	for i := range c.Contexts {
		x := &c.Contexts[i]
		out = append(out, d.contextSpecs(c, i, p)...)
		tapped = tapped || len(x.Taps) > 0
	}
	if tapped {
		out = append(out, p.vpnTaps.spec(p.learner.missed))
	}
	return out
}

// contextSpecs are the units of one VPN, the configuration's i-th; none when it is not on this host.
func (d *Daemon) contextSpecs(c *config.Config, i int, p *parts) (out []unitSpec) {
	x, from := &c.Contexts[i], fmt.Sprintf("contexts[%d]", i)
	v := d.contexts.of(x)
	if v == nil {
		return nil
	}
	served, name := c.Proxy.ServedIn(x.Name), "context:"+x.Name
	out = append(out, unitSpec{
		name: name, key: fmt.Sprintf("%s:%d:%v", name, v.id, families(served)), from: from,
		open: v.opener(served, p.kernel.followFormat2, d.log.WithField("part", name)), detail: func() string { return emissionText[config.EmitRaw] },
	})
	for _, iface := range x.Taps {
		name := "tap:" + inContext(x.Name, iface)
		open := func() (runner, error) { return p.vpnTaps.openTap(v, iface, c.Proxy.TapRing, d.rings) }
		out = append(out, unitSpec{
			name: name, key: fmt.Sprintf("%s:%d:%d", name, v.id, c.Proxy.TapRing), from: from + ".taps",
			open: doubtingAtBegin(open, p.learner.missed), health: linkHealthIn(v.place.Namespace, iface),
			detail: func() string { return config.TapRing + ": taps of contexts are packet rings" },
		})
	}
	return out
}

// spec is the unit that reads the taps of all VPNs.
func (t *vpnTaps) spec(missed func()) unitSpec {
	return unitSpec{
		name: "learner:contexts", key: "learner:contexts", open: doubtingAtBegin(func() (runner, error) { return t, nil }, missed),
		detail: func() string { return ringsRead },
	}
}

// doubtingAtBegin is an opener of a runner with whose beginning the map's answers are held back until traffic agrees with them again:
// queue pairs may have been reused while nobody looked.
func doubtingAtBegin(open func() (runner, error), missed func()) func() (runner, error) {
	return func() (runner, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return &doubting{r, missed}, nil
	}
}

// doubting is a runner that makes the map doubt when it begins.
type doubting struct {
	runner
	doubt func()
}

// Begin implements beginner.
func (d *doubting) Begin() { d.doubt() }
