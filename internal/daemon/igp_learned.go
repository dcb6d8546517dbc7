package daemon

import (
	"net/netip"
	"slices"

	"pncd/igp"
	"pncd/pnc"
)

// learned gives what brings to the table what a protocol knows: every prefix, for one without the P flag can hide a
// shorter one with it.
func (d *Daemon) learned(p protocol) func([]igp.Learned) {
	return func(list []igp.Learned) {
		now := d.now()
		accept := prefixes(p.policy(d.config.Load()).accept)
		updates := make([]pnc.Update, 0, len(list))
		var rejected []pnc.Event
		for _, l := range list {
			u := pnc.Update{Withdraw: l.Gone, Route: pnc.Route{
				Prefix: l.Prefix, Source: p.source, Originator: l.Originator, Peer: l.Originator,
				PathID: uint32(l.Level) | l.Area, // a protocol has one of them
				Metric: l.Cost,
			}}
			if l.P {
				r := &u.Route
				r.Proxy = l.Proxy
				detail := ""
				if r.Disregarded, detail = p.judge(l.Proxy, accept); r.Disregarded != pnc.DisregardNone {
					rejected = append(rejected, pnc.Event{Kind: pnc.EventDisregarded, Route: *r, Reason: r.Disregarded, Detail: detail})
				}
			}
			updates = append(updates, u)
		}
		d.table.Apply(now, updates...)
		for _, e := range rejected {
			d.table.Disregard(now, e)
		}
	}
}

// judge says why the proxy that a P flag names is not believed.
func (p protocol) judge(proxy netip.Addr, accept []netip.Prefix) (pnc.DisregardReason, string) {
	if !proxy.IsValid() {
		return pnc.DisregardInvalidProxyAddress, "the originator says no address: neither that of the source router nor a TE router ID"
	}
	if err := pnc.CheckProxy(proxy); err != nil {
		return pnc.DisregardInvalidProxyAddress, err.Error()
	}
	if len(accept) > 0 && !slices.ContainsFunc(accept, func(p netip.Prefix) bool { return p.Contains(proxy) }) {
		return pnc.DisregardProxyNotAccepted, p.name + ".accept_proxies has no prefix with " + proxy.String()
	}
	return pnc.DisregardNone, ""
}
