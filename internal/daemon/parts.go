package daemon

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"pncd/internal/config"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/notifier"
	"pncd/proxyagent/translator"
)

// parts are the state machines of the two ends. Each exists while the configuration has its section:
// they keep what they know (learned flows, event and receipt numbers) while the mechanism is off.
type parts struct {
	notifier   *notifier.Notifier
	translator *translator.Translator
	flows      *flowmap.Map
	learner    *learner
	noFlows    chan struct{} // closed when flows is no longer in use
}

// replaced ends the parts that next does not have: they decide nothing any more, and those who follow
// the Source-QP map hear that it is gone.
func (p *parts) replaced(next *parts) {
	if p.notifier != nil && next.notifier != p.notifier {
		p.notifier.SetEnabled(false)
	}
	if p.translator != nil && next.translator != p.translator {
		p.translator.SetEnabled(false)
	}
	if p.flows != nil && next.flows != p.flows {
		close(p.noFlows)
	}
}

// setEnabled switches both ends.
func (p *parts) setEnabled(on bool) {
	if p.notifier != nil {
		p.notifier.SetEnabled(on)
	}
	if p.translator != nil {
		p.translator.SetEnabled(on)
	}
}

// partsFor returns the parts that a configuration wants: those that are there already, and new ones for
// sections that had none. Settings of the ones kept are checked and not yet applied.
func (d *Daemon) partsFor(c *config.Config) (*parts, error) {
	var next parts
	old := d.parts.Load()
	if n := c.CongestionNode; n != nil {
		if err := notifierSettings(n).Validate(); err != nil {
			return nil, err
		}
		if next.notifier = old.notifier; next.notifier == nil {
			var err error
			next.notifier, err = notifier.New(notifierSettings(n), notifier.Deps{
				Resolver: d.table, Sender: &d.sender, Recorder: d.recorder, Random: rand.Uint64,
			})
			if err != nil {
				return nil, err
			}
		}
	}
	if p := c.Proxy; p != nil {
		if err := translatorSettings(p).Validate(); err != nil {
			return nil, err
		}
		if err := mapSettings(p).Validate(); err != nil {
			return nil, err
		}
		next.flows, next.learner, next.translator, next.noFlows = old.flows, old.learner, old.translator, old.noFlows
		if next.flows == nil {
			next.flows, next.noFlows = flowmap.New(mapSettings(p)), make(chan struct{})
			next.learner = newLearner(next.flows, &d.notRoCEv2, d.now)
			var err error
			next.translator, err = translator.New(translatorSettings(p), translator.Deps{
				FlowMap: next.flows, Local: d.tracker, Sender: &d.sender, Recorder: d.recorder, Now: d.now,
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return &next, nil
}

// apply gives the parts their settings, which partsFor has checked.
func (p *parts) apply(c *config.Config) error {
	if p.notifier != nil {
		if err := p.notifier.Reconfigure(notifierSettings(c.CongestionNode)); err != nil {
			return err
		}
	}
	if p.flows != nil {
		if err := p.translator.Reconfigure(translatorSettings(c.Proxy)); err != nil {
			return err
		}
		return p.flows.Reconfigure(mapSettings(c.Proxy))
	}
	return nil
}

// specs lists the units that make up the mechanism by a configuration.
func (d *Daemon) specs(c *config.Config, p *parts) []unitSpec {
	var out []unitSpec
	if c.CongestionNode != nil || c.Proxy != nil {
		out = append(out, unitSpec{name: "sender", key: "sender", open: d.sender.open, health: d.senderHealth(c)})
	}
	if c.CongestionNode != nil {
		for _, name := range c.CongestionNode.Interfaces {
			out = append(out, unitSpec{name: "detector:" + name, key: "detector:" + name, open: func() (runner, error) {
				return openDetector(name, p.notifier, d.now, d.rings)
			}, health: linkHealth(name)})
		}
	}
	if c.Proxy != nil {
		out = append(out, d.proxySpecs(c.Proxy, p)...)
	}
	return out
}

func (d *Daemon) proxySpecs(c *config.Proxy, p *parts) []unitSpec {
	out := []unitSpec{{name: "learner", key: "learner", open: p.learner.open}}
	for _, name := range c.Taps {
		out = append(out, unitSpec{
			name: "tap:" + name, key: fmt.Sprintf("tap:%s:%d", name, c.TapRing), open: p.learner.tapOpener(name, c.TapRing, d.rings),
			health: linkHealth(name),
		})
	}
	for _, a := range []config.Addr{c.IPv4, c.IPv6} {
		if !a.IsValid() {
			continue
		}
		addr := netip.AddrPortFrom(a.Addr, c.Port)
		name := "translator:" + addr.String()
		out = append(out, unitSpec{name: name, key: name, open: func() (runner, error) {
			return openReceiver(addr, p.translator)
		}, health: d.addressHealth(a)})
	}
	return out
}
