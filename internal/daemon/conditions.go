package daemon

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pncd/internal/config"
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
	if p := cfg.Proxy; p != nil && d.enabled.Load() {
		node := d.nodeConditions(now, p)
		for i := range in {
			in[i].Failed = d.prefixConditions(now, p, node, in[i].Key)
		}
	}
	return in
}

// observe lets traffic, routes and CNPs be noted for the prefixes outside of VPNs: this proxy translates
// only there.
func (d *Daemon) observe() {
	s := d.senders
	prefixes := make([]netip.Prefix, 0, len(s.own))
	for k := range s.own {
		if k.Context == "" {
			prefixes = append(prefixes, k.Prefix)
		}
	}
	if flows := d.parts.Load().flows; flows != nil {
		flows.Follow(prefixes)
	}
	d.sender.count(prefixes)
	hosts := make(map[netip.Prefix]netip.Addr, len(prefixes))
	for _, p := range prefixes {
		hosts[p] = d.hostOf(p)
	}
	s.paths.follow(hosts)
	maps.DeleteFunc(s.cnps, func(p netip.Prefix, _ *readiness.Meter) bool { _, there := hosts[p]; return !there })
}

// hostOf names an address of a prefix to which the route is looked up: of a host that sent lately, else
// the first that is not this node's own. Invalid: all are.
func (d *Daemon) hostOf(p netip.Prefix) netip.Addr {
	if flows := d.parts.Load().flows; flows != nil {
		if t, ok := flows.Traffic(p); ok && t.Host.IsValid() {
			return t.Host
		}
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

// nodeFailures are the conditions that all prefixes share, but those of the receivers: each prefix is
// announced with one proxy's address, and needs that one.
type nodeFailures struct {
	sockets, taps, loss, full []readiness.Failure
	receivers                 map[netip.Addr]readiness.Failure
}

func (d *Daemon) nodeConditions(now time.Time, p *config.Proxy) nodeFailures {
	out := nodeFailures{receivers: map[netip.Addr]readiness.Failure{}}
	for name, why := range d.failedUnits(p) {
		switch kind, rest, _ := strings.Cut(name, ":"); kind {
		case "tap":
			out.taps = append(out.taps, readiness.Failure{Reason: readiness.TapDown, Detail: rest + ": " + why})
		case "translator":
			if at, err := netip.ParseAddrPort(rest); err == nil {
				out.receivers[at.Addr()] = readiness.Failure{Reason: readiness.SocketDown, Detail: name + ": " + why}
			}
		default:
			out.sockets = append(out.sockets, readiness.Failure{Reason: readiness.SocketDown, Detail: name + ": " + why})
		}
	}
	for _, list := range [][]readiness.Failure{out.sockets, out.taps} {
		slices.SortFunc(list, func(a, b readiness.Failure) int { return strings.Compare(a.Detail, b.Detail) })
	}
	out.loss, out.full = d.tapLoss(now, p), d.mapLoss(now, p)
	return out
}

// failedUnits names the units of the proxy that don't run, or run in vain, and why.
func (d *Daemon) failedUnits(p *config.Proxy) map[string]string {
	running := map[string]unitStatus{}
	for _, u := range d.units.statuses() {
		running[u.name] = u
	}
	out := map[string]string{}
	look := func(name string, health func() error) {
		u, there := running[name]
		switch {
		case !there:
			out[name] = "does not run"
		case u.state == unitFailed:
			out[name] = u.err.Error()
		case health != nil:
			if err := health(); err != nil {
				out[name] = err.Error()
			}
		}
	}
	look("sender", nil) // its health is about the congestion node's addresses
	for _, spec := range d.proxySpecs(p, d.parts.Load()) {
		look(spec.name, spec.health)
	}
	return out
}

func (d *Daemon) tapLoss(now time.Time, p *config.Proxy) (out []readiness.Failure) {
	r, meters := &p.Readiness, d.senders.taps
	for _, ring := range d.rings.list() {
		if ring.Role != roleLearner || !slices.Contains(p.Taps, ring.Interface) {
			continue
		}
		m := meters[ring.Interface]
		if m == nil {
			m = new(readiness.Meter)
			meters[ring.Interface] = m
		}
		if good, lost := m.Add(now, r.Window.Duration, ring.Shown, ring.Drops); readiness.Exceeds(good, lost, r.LossMax) {
			out = append(out, readiness.Failure{Reason: readiness.TapLoss, Detail: fmt.Sprintf("%s: lost %d of %d packets within %s", ring.Interface, lost, good+lost, r.Window)})
		}
	}
	maps.DeleteFunc(meters, func(name string, _ *readiness.Meter) bool { return !slices.Contains(p.Taps, name) })
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
	out := slices.Clone(node.sockets)
	if f, failed := node.receivers[d.senders.own[k]]; failed {
		out = append(out, f)
	}
	out = append(append(append(out, node.taps...), node.loss...), node.full...)
	if k.Context != "" {
		return out
	}
	if why := d.senders.paths.wrong(k.Prefix); why != "" {
		out = append(out, readiness.Failure{Reason: readiness.NoRoute, Detail: why})
	}
	out = append(out, d.sendErrors(now, p, k.Prefix)...)
	if flows := d.parts.Load().flows; flows != nil {
		t, _ := flows.Traffic(k.Prefix)
		out = append(out, readiness.Traffic(now, p.Readiness.TrafficWithin.Duration, t.From, t.Towards)...)
	}
	return out
}

func (d *Daemon) sendErrors(now time.Time, p *config.Proxy, prefix netip.Prefix) []readiness.Failure {
	r, meters := &p.Readiness, d.senders.cnps
	m := meters[prefix]
	if m == nil {
		m = new(readiness.Meter)
		meters[prefix] = m
	}
	sent, failed := d.sender.counted(prefix)
	if sent, failed = m.Add(now, r.Window.Duration, sent, failed); !readiness.Exceeds(sent, failed, r.LossMax) {
		return nil
	}
	return []readiness.Failure{{Reason: readiness.SendErrors, Detail: fmt.Sprintf("%d of %d CNPs could not be sent within %s", failed, sent+failed, r.Window)}}
}
