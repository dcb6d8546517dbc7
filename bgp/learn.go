package bgp

import (
	"fmt"
	"net/netip"
	"slices"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
	"pncd/pnc"
)

// learning is what decides whether a PNC is believed.
type learning struct {
	context  string
	code     uint16
	accept   []netip.Prefix // proxies
	from     []netip.Prefix // originators
	routerID netip.Addr
}

func learnPolicy(c Config) learning {
	return learning{context: c.Context, code: c.PNCCode, accept: c.AcceptProxies, from: c.AcceptFrom, routerID: c.RouterID}
}

func (l learning) equal(o learning) bool {
	return l.context == o.context && l.code == o.code && l.routerID == o.routerID && slices.Equal(l.accept, o.accept) && slices.Equal(l.from, o.from)
}

// verdict is what the NHC attribute of a path says, and how far it is believed.
type verdict struct {
	proxy    netip.Addr          // as the PNC carries it, also when it is not believed
	reason   pnc.DisregardReason // why there is no believed PNC; none when there is, or nothing was seen
	partial  bool
	problems []problem // everything that is counted and reported, in order
}

// problem is one thing that was disregarded.
type problem struct {
	reason pnc.DisregardReason
	detail string
	silent bool // counted only: the attribute carries no PNC
}

func (v verdict) believed() bool { return v.proxy.IsValid() && v.reason == pnc.DisregardNone }

// judge applies the receiver's rules to a path's NHC attribute. It never affects the path itself:
// whatever is wrong, the route stays (attribute discard, RFC 7606).
func (l learning) judge(p *nhcPath, peer *peerInfo) verdict {
	if !p.hasNHC {
		return verdict{}
	}
	attr, err := nhc.ParseValue(p.nhcFlags, p.nhc)
	v := verdict{partial: attr.Partial()}
	if err != nil {
		return v.reject(pnc.DisregardMalformedAttribute, fmt.Sprintf("%v: value %x", err, p.nhc), false)
	}
	cap := attr.PNC(l.code)
	v.proxy = cap.Proxy
	if peer.in.border {
		return v.reject(pnc.DisregardEBGPNotAllowed, fmt.Sprintf("%s is at the border of the domain", peer.name), !cap.Present)
	}
	if !peer.accept {
		return v.reject(pnc.DisregardEBGPNotAllowed, fmt.Sprintf("%s is an EBGP neighbour that is not believed", peer.name), !cap.Present)
	}
	route := nhc.Route{AFI: p.afi(), SAFI: p.safi(), NextHop: p.nextHop, BGPID: p.peerID}
	if err := attr.Match(route); err != nil {
		return v.reject(pnc.DisregardNextHopMismatch, err.Error(), !cap.Present)
	}
	for _, err := range attr.Malformed() {
		v.problems = append(v.problems, problem{reason: pnc.DisregardMalformedTLV, detail: err.Error()})
		if !cap.Proxy.IsValid() {
			v.reason = pnc.DisregardMalformedTLV
		}
	}
	if n := cap.UnknownLength; n > 0 {
		v.problems = append(v.problems, problem{reason: pnc.DisregardUnknownLength,
			detail: fmt.Sprintf("%d PNC TLVs of neither 4 nor 16 octets, the first %x", n, cap.Unknown)})
		if !cap.Proxy.IsValid() {
			v.reason = pnc.DisregardUnknownLength
		}
	}
	if cap.Different > 0 {
		v.problems = append(v.problems, problem{reason: pnc.DisregardDuplicatePNC,
			detail: fmt.Sprintf("%d later PNC TLVs differ; the first, %s, is used", cap.Different, cap.Proxy)})
	}
	if !cap.Proxy.IsValid() {
		return v
	}
	if err := pnc.CheckProxy(cap.Proxy); err != nil {
		return v.reject(pnc.DisregardInvalidProxyAddress, err.Error(), false)
	}
	if p.untagged {
		return v.reject(pnc.DisregardCommunityMissing, fmt.Sprintf("%s is believed with a community of the policy only", peer.name), false)
	}
	var within inbound
	if p.vpn != nil && p.vpn.context != nil {
		within = *p.vpn.context
	}
	if !allowed(cap.Proxy, l.accept, peer.in.proxies, within.proxies) {
		return v.reject(pnc.DisregardProxyNotAccepted, fmt.Sprintf("%s is in none of the accepted prefixes", cap.Proxy), false)
	}
	if from := netip.AddrFrom4(p.from); !allowed(from, l.from, peer.in.from, within.from) {
		return v.reject(pnc.DisregardOriginatorNotAccepted, fmt.Sprintf("no PNC is accepted from %s, the route's originator", from), false)
	}
	return v
}

func (v verdict) reject(r pnc.DisregardReason, detail string, silent bool) verdict {
	v.reason = r
	v.problems = append(v.problems, problem{reason: r, detail: detail, silent: silent})
	return v
}

// external takes away from a path what only means something within an AS, and is to be ignored when it comes
// from another: LOCAL_PREF (RFC 4271 section 5.1.5), ORIGINATOR_ID and CLUSTER_LIST (RFC 7606 sections 7.9, 7.10).
func external(p *engine.Path) {
	p.LocalPref = engine.DefaultLocalPref
	p.OriginatorID = netip.Addr{}
	p.ClusterList = nil
}

// looped reports whether a path has been here before, so that it must be ignored: our AS is in its
// AS_PATH more often than allowed (RFC 4271 section 9.1.2), we originated it, or our cluster is in
// its CLUSTER_LIST (RFC 4456 section 8), which also holds for copies that we announced.
func (l learning) looped(p *engine.Path, peer *peerInfo) bool {
	return p.OwnAS > peer.ownAS || p.OriginatorID == l.routerID || slices.Contains(p.ClusterList, l.routerID)
}
