package daemon

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pncd/internal/config"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/readiness"
)

// conditions says what is wrong with each prefix now. While the mechanism is off nothing is asked. The
// caller holds senders.mu.
func (d *Daemon) conditions(now time.Time, cfg *config.Config) []readiness.Input {
	s := d.senders
	in := make([]readiness.Input, 0, len(s.own))
	for k := range s.own {
		in = append(in, readiness.Input{Key: k})
	}
	d.observe()
	if cfg.Proxy != nil && d.enabled.Load() {
		node := d.nodeConditions(now, cfg)
		for i := range in {
			in[i].Failed = d.prefixConditions(now, cfg.Proxy, node, in[i].Key)
		}
	}
	return in
}

// observe lets traffic, routes and CNPs be noted for the prefixes: routes in the default context only.
func (d *Daemon) observe() {
	s := d.senders
	prefixes := map[string][]netip.Prefix{} // by context
	var followed []flowmap.Prefix
	for k := range s.own {
		if id, here := d.contexts.number(k.Context); here {
			prefixes[k.Context] = append(prefixes[k.Context], k.Prefix)
			followed = append(followed, flowmap.Prefix{Context: id, Prefix: k.Prefix})
		}
	}
	if flows := d.parts.Load().flows; flows != nil {
		flows.Follow(followed)
	}
	d.sender.count(prefixes[""])
	for _, v := range d.contexts.inUse() {
		v.count(prefixes[v.name])
	}
	hosts := make(map[netip.Prefix]netip.Addr, len(prefixes[""]))
	for _, p := range prefixes[""] {
		hosts[p] = d.hostOf(p)
	}
	s.paths.follow(hosts)
	maps.DeleteFunc(s.cnps, func(k readiness.Key, _ *readiness.Meter) bool { _, there := s.own[k]; return !there })
}

// traffic tells when a prefix's traffic was seen last; false when nothing sees it.
func (d *Daemon) traffic(k readiness.Key) (flowmap.Traffic, bool) {
	flows := d.parts.Load().flows
	id, here := d.contexts.number(k.Context)
	if flows == nil || !here {
		return flowmap.Traffic{}, false
	}
	return flows.Traffic(flowmap.Prefix{Context: id, Prefix: k.Prefix})
}

// hostOf names an address of a prefix to which the route is looked up: of a host that sent lately, else
// the first that is not this node's own. Invalid: all are.
func (d *Daemon) hostOf(p netip.Prefix) netip.Addr {
	if t, ok := d.traffic(readiness.Key{Prefix: p}); ok && t.Host.IsValid() {
		return t.Host
	}
	for _, a := range firstHosts(p) {
		if !d.tracker.IsLocal(a) {
			return a
		}
	}
	return netip.Addr{}
}

// firstHosts gives up to two addresses that hosts of a prefix can have. The first address of an IPv4 prefix
// names the network, but in a /31 and a /32 (RFC 3021).
func firstHosts(p netip.Prefix) []netip.Addr {
	a := p.Addr()
	switch p.Addr().BitLen() - p.Bits() {
	case 0:
		return []netip.Addr{a}
	case 1:
		return []netip.Addr{a, a.Next()}
	}
	return []netip.Addr{a.Next(), a.Next().Next()}
}

// nodeFailures are the conditions that prefixes share.
type nodeFailures struct {
	contexts  map[string]contextFailures   // those of the prefixes, by name
	receivers map[string]readiness.Failure // by name; each prefix needs that of its proxy's address and its format
	full      []readiness.Failure
}

// contextFailures are those that the prefixes of a context share.
type contextFailures struct {
	sockets, taps, loss []readiness.Failure
	tapped              bool // its traffic is seen
}

func (d *Daemon) nodeConditions(now time.Time, cfg *config.Config) nodeFailures {
	p, units := d.parts.Load(), d.units.byName()
	out := nodeFailures{contexts: map[string]contextFailures{}, receivers: map[string]readiness.Failure{}, full: d.mapLoss(now, cfg.Proxy)}
	loss := d.tapLoss(now, cfg)
	for k := range d.senders.own {
		if _, done := out.contexts[k.Context]; done {
			continue
		}
		f := contextFailures{loss: loss[k.Context]}
		needed := d.needed(cfg, k.Context, p)
		if len(needed) == 0 {
			f.sockets = []readiness.Failure{{Reason: readiness.SocketDown, Detail: "context " + k.Context + " has no place on this host, by which CNPs could leave"}}
		}
		for _, spec := range needed {
			why := units.wrong(spec)
			tap, isTap := strings.CutPrefix(spec.name, "tap:")
			f.tapped = f.tapped || isTap
			switch {
			case why == "":
			case isTap:
				f.taps = append(f.taps, readiness.Failure{Reason: readiness.TapDown, Detail: tap + ": " + why})
			default:
				f.sockets = append(f.sockets, readiness.Failure{Reason: readiness.SocketDown, Detail: spec.name + ": " + why})
			}
		}
		for _, list := range [][]readiness.Failure{f.sockets, f.taps} {
			slices.SortFunc(list, func(a, b readiness.Failure) int { return strings.Compare(a.Detail, b.Detail) })
		}
		out.contexts[k.Context] = f
	}
	for _, spec := range d.receiverSpecs(cfg.Proxy, p) {
		if why := units.wrong(spec); why != "" {
			out.receivers[spec.name] = readiness.Failure{Reason: readiness.SocketDown, Detail: spec.name + ": " + why}
		}
	}
	return out
}

// needed lists the units that the senders of a context need, but for the receivers; none when it has no place here.
func (d *Daemon) needed(cfg *config.Config, context string, p *parts) []unitSpec {
	if context == "" {
		// The health of the sockets is about the congestion node's addresses.
		return append(d.proxySpecs(cfg.Proxy, p), unitSpec{name: "sender"})
	}
	for i := range cfg.Contexts {
		x := &cfg.Contexts[i]
		if x.Name != context {
			continue
		}
		out := d.contextSpecs(cfg, i, p)
		if len(x.Taps) > 0 {
			out = append(out, p.vpnTaps.spec(p.learner.missed))
		}
		return out
	}
	return nil
}

// tapLoss tells which taps lose packets, by the context that they are in.
func (d *Daemon) tapLoss(now time.Time, cfg *config.Config) map[string][]readiness.Failure {
	r, meters := &cfg.Proxy.Readiness, d.senders.taps
	contexts := map[string]string{} // by the name of the ring
	for _, name := range cfg.Proxy.Taps {
		contexts[name] = ""
	}
	for i := range cfg.Contexts {
		for _, name := range cfg.Contexts[i].Taps {
			contexts[inContext(cfg.Contexts[i].Name, name)] = cfg.Contexts[i].Name
		}
	}
	out := map[string][]readiness.Failure{}
	for _, ring := range d.rings.list() {
		context, tapped := contexts[ring.Interface]
		if ring.Role != roleLearner || !tapped {
			continue
		}
		m := meters[ring.Interface]
		if m == nil {
			m = new(readiness.Meter)
			meters[ring.Interface] = m
		}
		if good, lost := m.Add(now, r.Window.Duration, ring.Shown, ring.Drops); readiness.Exceeds(good, lost, r.LossMax) {
			out[context] = append(out[context], readiness.Failure{Reason: readiness.TapLoss, Detail: fmt.Sprintf("%s: lost %d of %d packets within %s", ring.Interface, lost, good+lost, r.Window)})
		}
	}
	maps.DeleteFunc(meters, func(name string, _ *readiness.Meter) bool { _, tapped := contexts[name]; return !tapped })
	return out
}

// mapLoss holds evictions against the map's bound.
func (d *Daemon) mapLoss(now time.Time, p *config.Proxy) []readiness.Failure {
	flows := d.parts.Load().flows
	if flows == nil {
		return nil
	}
	r, bound := &p.Readiness, uint64(p.Map.Entries)
	_, lost := d.senders.evicted.Add(now, r.Window.Duration, 0, flows.Counters().Evicted)
	if !readiness.Exceeds(bound-min(lost, bound), lost, r.LossMax) {
		return nil
	}
	return []readiness.Failure{{Reason: readiness.MapFull, Detail: fmt.Sprintf("the map of %d entries lost %d to others within %s", bound, lost, r.Window)}}
}

// prefixConditions says what is wrong with a prefix, in the order of the reasons.
func (d *Daemon) prefixConditions(now time.Time, p *config.Proxy, node nodeFailures, k readiness.Key) []readiness.Failure {
	shared := node.contexts[k.Context]
	out := append(slices.Clone(shared.sockets), d.receiverFailure(p, node, k)...)
	out = append(append(append(out, shared.taps...), shared.loss...), node.full...)
	if k.Context == "" {
		if why := d.senders.paths.wrong(k.Prefix); why != "" {
			out = append(out, readiness.Failure{Reason: readiness.NoRoute, Detail: why})
		}
	}
	out = append(out, d.sendErrors(now, p, k)...)
	if t, _ := d.traffic(k); shared.tapped {
		out = append(out, readiness.Traffic(now, p.Readiness.TrafficWithin.Duration, t.From, t.Towards)...)
	}
	return out
}

// receiverFailure looks at the socket for notifications about a prefix: those about a VPN come in format 2.
func (d *Daemon) receiverFailure(p *config.Proxy, node nodeFailures, k readiness.Key) []readiness.Failure {
	port := p.Port
	if k.Context != "" {
		port = p.PortFormat2
		if p.NRP == nil {
			return []readiness.Failure{{Reason: readiness.SocketDown, Detail: "notifications of format 2 are not listened to: there is no proxy.nrp section"}}
		}
	}
	if f, failed := node.receivers[receiverName(d.senders.own[k], port)]; failed {
		return []readiness.Failure{f}
	}
	return nil
}

func (d *Daemon) sendErrors(now time.Time, p *config.Proxy, k readiness.Key) []readiness.Failure {
	r, meters := &p.Readiness, d.senders.cnps
	m := meters[k]
	if m == nil {
		m = new(readiness.Meter)
		meters[k] = m
	}
	sent, failed := d.counted(k)
	if sent, failed = m.Add(now, r.Window.Duration, sent, failed); !readiness.Exceeds(sent, failed, r.LossMax) {
		return nil
	}
	return []readiness.Failure{{Reason: readiness.SendErrors, Detail: fmt.Sprintf("%d of %d CNPs could not be sent within %s", failed, sent+failed, r.Window)}}
}

// counted reads how many CNPs to a prefix were sent, and how many could not be.
func (d *Daemon) counted(k readiness.Key) (sent, failed uint64) {
	if k.Context == "" {
		return d.sender.counted(k.Prefix)
	}
	if v := d.contexts.named(k.Context); v != nil {
		return v.counted(k.Prefix)
	}
	return 0, 0
}
