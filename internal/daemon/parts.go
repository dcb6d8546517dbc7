package daemon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/host"
	"pncd/internal/config"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/notifier"
	"pncd/proxyagent/nrpmap"
	"pncd/proxyagent/translator"
)

// parts are the state machines of the two ends. Each exists while the configuration has its section:
// they keep what they know (learned flows, event and receipt numbers) while the mechanism is off.
type parts struct {
	notifier   *notifier.Notifier
	translator *translator.Translator
	flows      *flowmap.Map
	nrps       *nrpmap.Map
	vpnTaps    *vpnTaps
	learner    *learner
	kernel     *kernelTranslator
	noFlows    chan struct{} // closed when flows is no longer in use
}

// replaced ends the parts that next does not have: they decide nothing any more, and those who follow
// the Source-QP map hear that it is gone.
func (p *parts) replaced(next *parts) {
	if p.notifier != nil && next.notifier != p.notifier {
		p.notifier.SetEnabled(false)
	}
	if p.translator != nil && next.translator != p.translator {
		p.kernel.setEnabled(false)
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
		p.kernel.setEnabled(on)
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
		settings := d.translation(c)
		if err := settings.Validate(); err != nil {
			return nil, err
		}
		if err := mapSettings(p).Validate(); err != nil {
			return nil, err
		}
		next.flows, next.learner, next.translator, next.noFlows, next.nrps, next.vpnTaps = old.flows, old.learner, old.translator, old.noFlows, old.nrps, old.vpnTaps
		next.kernel = old.kernel
		if next.flows == nil {
			list, limit := nrpSettings(p)
			next.nrps = nrpmap.New(limit)
			if err := next.nrps.Configure(list, limit, d.now()); err != nil {
				return nil, fmt.Errorf("proxy.nrp: %w", err)
			}
			next.flows, next.noFlows = flowmap.New(mapSettings(p)), make(chan struct{})
			next.vpnTaps = newVPNTaps(next.flows, &d.notRoCEv2)
			next.learner = newLearner(next.flows, &d.notRoCEv2, d.now, d.log.WithField("part", "learner"))
			next.learner.detached = func(program, iface string) {
				d.hostChanged(pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_PROGRAM, program+" of "+iface, "taken off the interface", nil)
			}
			next.kernel = &kernelTranslator{
				flows: next.flows, recorder: d.recorder, now: d.now, log: d.log.WithField("part", "translate"),
			}
			next.kernel.settings.Store(kernelTranslatorSettings(p))
			var err error
			next.translator, err = translator.New(settings, translator.Deps{
				FlowMap: kernelFlows{next.flows, next.kernel}, NRPs: next.nrps, Local: d.tracker, Sender: &d.sender, Recorder: d.recorder, Now: d.now,
			})
			if err != nil {
				return nil, err
			}
			next.kernel.user = next.translator
			next.nrps.OnChange(next.kernel.followFormat2)
		}
		if err := next.nrps.Check(nrpSettings(p)); err != nil {
			return nil, fmt.Errorf("proxy.nrp: %w", err)
		}
	}
	return &next, nil
}

// apply gives the parts their settings, which partsFor has checked; contexts are the translator's.
func (p *parts) apply(c *config.Config, contexts []translator.Context, now time.Time) error {
	if p.notifier != nil {
		if err := p.notifier.Reconfigure(notifierSettings(c.CongestionNode)); err != nil {
			return err
		}
	}
	if p.flows != nil {
		settings := translatorSettings(c.Proxy)
		settings.Contexts = contexts
		list, limit := nrpSettings(c.Proxy)
		return errors.Join(
			p.kernel.suspend(),
			p.translator.Reconfigure(settings),
			p.nrps.Configure(list, limit, now),
			p.flows.Reconfigure(mapSettings(c.Proxy)),
			p.kernel.configure(c.Proxy),
		)
	}
	return nil
}

// decide asks what the kernel offers, when specs is to depend on it.
func (p *parts) decide(c *config.Config) {
	if p.learner != nil {
		p.learner.decide(c.Proxy.Tap)
	}
}

// specs lists the units that make up the mechanism by a configuration.
func (d *Daemon) specs(c *config.Config, p *parts) []unitSpec {
	var out []unitSpec
	if c.CongestionNode != nil || c.Proxy != nil {
		how := emission(c)
		out = append(out, unitSpec{name: "sender", key: "sender:" + how, open: d.sender.opener(how, d.log.WithField("part", "sender")), health: d.senderHealth(c), detail: func() string { return emissionText[how] }})
	}
	if n := c.CongestionNode; n != nil {
		out = append(out, d.detectorSpecs(c, p)...)
		out = append(out, d.samplerSpecs(c)...)
		out = append(out, d.qdiscSpecs(c, p.notifier)...)
		out = append(out, d.reportSpecs(c, p.notifier)...)
	}
	if c.Proxy != nil {
		out = append(out, d.proxySpecs(c.Proxy, p)...)
		out = append(out, d.receiverSpecs(c.Proxy, p)...)
		out = append(out, d.vpnSpecs(c, p)...)
	}
	return out
}

// detectorSpecs are the detectors of all links, each opened in the network namespace of its context.
func (d *Daemon) detectorSpecs(c *config.Config, p *parts) (out []unitSpec) {
	for _, s := range detectorsOf(c) {
		out = append(out, unitSpec{name: "detector:" + s.link(), key: s.key(), from: s.from(), open: func() (r runner, err error) {
			err = host.Inside(s.namespace, func() error {
				r, err = openDetector(s, d.probe, p.notifier, d.now, d.rings)
				return err
			})
			return r, err
		}, health: linkHealthIn(s.namespace, s.iface)})
	}
	return out
}

// proxySpecs are the units of the proxy in the default context, but for its sockets.
func (d *Daemon) proxySpecs(c *config.Proxy, p *parts) []unitSpec {
	s := d.tapSettings(c, p.learner)
	out := []unitSpec{{name: "learner", key: s.learnerKey(), from: "proxy.tap", open: p.learner.opener(s), detail: p.learner.detail(&s)}}
	for _, name := range c.Taps {
		out = append(out, unitSpec{
			name: "tap:" + name, key: s.tapKey(name), from: "proxy.taps", open: p.learner.tapOpener(name, s, d.rings), health: linkHealth(name), detail: s.detail,
		})
	}
	if c.Translate == config.TranslateKernel {
		out = append(out, unitSpec{name: "translate", key: "translate", from: "proxy.translate", open: p.kernel.openProgram, detail: p.kernel.detail})
		for _, name := range c.TranslateInterfaces {
			out = append(out, unitSpec{name: "translate:" + name, key: "translate:" + name, from: "proxy.translate_interfaces", open: func() (runner, error) {
				return p.kernel.openPort(name)
			}, health: linkHealth(name)})
		}
	}
	return out
}

// receiverSpecs are the sockets for notifications.
func (d *Daemon) receiverSpecs(c *config.Proxy, p *parts) (out []unitSpec) {
	for _, a := range ownAddresses(c) {
		out = append(out, d.receiverSpec(a, c.Port, p.translator))
		if c.NRP != nil {
			out = append(out, d.receiverSpec(a, c.PortFormat2, p.translator.Format2()))
		}
	}
	return out
}

// receiverName names the unit of a socket.
func receiverName(a netip.Addr, port uint16) string {
	return "translator:" + netip.AddrPortFrom(a, port).String()
}

// receiverSpec is the socket for the notifications of one format.
func (d *Daemon) receiverSpec(a netip.Addr, port uint16, h translator.Handler) unitSpec {
	name, from := receiverName(a, port), "proxy.ipv4"
	if !a.Is4() {
		from = "proxy.ipv6"
	}
	return unitSpec{name: name, key: name, from: from, open: func() (runner, error) { return openReceiver(netip.AddrPortFrom(a, port), h) }, health: d.addressHealth(config.Addr{Addr: a})}
}
