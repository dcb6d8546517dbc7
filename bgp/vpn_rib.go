package bgp

import (
	"bytes"
	"iter"
	"slices"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

// vpnPath is what a path of a VPN family has besides.
type vpnPath struct {
	rd      engine.RD
	name    string // rd as text
	targets []engine.RouteTarget
	context *inbound // the policy of the context that it went into
}

// vpnVRF is a context that imports VPN routes. As in a router's VRF, the paths of a prefix compete
// whatever their RD (RFC 4364 section 4.3).
type vpnVRF struct {
	vrf
	imports []engine.RouteTarget
	in      inbound
}

func (v *vpnVRF) wants(targets []engine.RouteTarget) bool {
	return slices.ContainsFunc(targets, func(t engine.RouteTarget) bool { return slices.Contains(v.imports, t) })
}

// vrfs gives each context's routes with the context's name.
func (r *rib) vrfs() iter.Seq2[string, *vrf] {
	return func(yield func(string, *vrf) bool) {
		if !yield(r.policy.context, &r.vrf) {
			return
		}
		for name, v := range r.contexts {
			if !yield(name, &v.vrf) {
				return
			}
		}
	}
}

// vpnPath takes in one announcement or withdrawal of a VPN route: into every context that imports one
// of its route targets and whose policy takes it, out of all others. A route that no context imports is counted
// and not kept, nor is its PNC judged. Each context judges by its own policy, so each has its own verdict.
func (r *rib) vpnPath(p *ribPeer, f engine.Family, from *engine.Path) {
	identity := &attributes{peer: p, nhcPath: nhcPath{vpn: &vpnPath{rd: from.RD}}}
	var a attributes
	x := path{id: from.PathID}
	if !from.Withdrawn {
		a = newAttributes(p, from)
		x.longLived = a.llgrStale
		if from.Stale && !x.replayed(p, f) {
			return // it has left already
		}
	}
	matched := false
	gone := from.Withdrawn || r.policy.looped(from, &p.peerInfo)
	permitted := gone || p.permits(from.Prefix)
	for name, v := range r.contexts {
		if gone || !permitted || !v.wants(from.Targets) {
			r.remove(name, &v.vrf, from, identity)
			continue
		}
		matched = true
		if !v.in.prefixes.Permits(from.Prefix) {
			p.refused++
			r.remove(name, &v.vrf, from, identity)
			continue
		}
		own, ownA := x, a // each context has its own best path
		ownA.vpn = &vpnPath{rd: from.RD, name: from.RD.String(), targets: from.Targets, context: &v.in}
		ownA.untagged = a.untagged || !v.in.tagged(from.Communities)
		r.judge(name, from.Prefix, &own, &ownA)
		if !p.accept {
			r.remove(name, &v.vrf, from, identity)
			continue
		}
		v.put(from.Prefix, &own)
	}
	if !gone && permitted && !matched {
		r.unmatched++
	}
}

// importing takes over the configured contexts. Paths that are not imported any more leave. It reports
// whether a context imports what it did not before, or has another policy: then the VPN paths have to be seen
// again.
func (r *rib) importing(contexts []ContextConfig) (out learned, again bool) {
	for name, v := range r.contexts {
		if i := slices.IndexFunc(contexts, func(c ContextConfig) bool { return c.Name == name }); i < 0 {
			r.dropFrom(name, &v.vrf, func(*path) bool { return true })
			delete(r.contexts, name)
		}
	}
	for _, c := range contexts {
		v := r.contexts[c.Name]
		if v == nil {
			v = &vpnVRF{vrf: newVRF()}
			r.contexts[c.Name] = v
		}
		for _, t := range c.Import {
			again = again || !slices.Contains(v.imports, t)
		}
		v.imports = slices.Clone(c.Import)
		again = again || !v.in.equal(c.inbound())
		v.in = c.inbound()
		r.seen.forget()
		r.dropFrom(c.Name, &v.vrf, func(x *path) bool { return !v.wants(x.vpn.targets) })
	}
	return r.flush(), again
}

// rd is the route distinguisher as text; empty outside VPNs.
func (p *nhcPath) rd() string {
	if p.vpn == nil {
		return ""
	}
	return p.vpn.name
}

func (p *nhcPath) safi() uint8 {
	if p.vpn == nil {
		return nhc.SAFIUnicast
	}
	return nhc.SAFIVPN
}

// family is the address family that the path came in.
func (p *nhcPath) family() engine.Family {
	switch {
	case p.vpn == nil && p.v6:
		return engine.IPv6Unicast
	case p.vpn == nil:
		return engine.IPv4Unicast
	case p.v6:
		return engine.IPv6VPN
	}
	return engine.IPv4VPN
}

func compareRD(x, y *path) int {
	if x.vpn == nil || y.vpn == nil {
		return 0 // never one alone within a context
	}
	return bytes.Compare(x.vpn.rd[:], y.vpn.rd[:])
}

// vpnPrefixes counts the prefixes of all contexts that import.
func (r *rib) vpnPrefixes() (n int) {
	for _, v := range r.contexts {
		n += v.prefixes.len()
	}
	return n
}
