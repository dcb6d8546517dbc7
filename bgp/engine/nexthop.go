package engine

import (
	"context"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
)

// An IPv4 prefix with an IPv6 next hop goes only to peers that offered the capability for it (RFC 8950
// section 4): others would take the UPDATE for malformed. GoBGP offers the capability to everybody and
// doesn't look at what the peer offered, so a policy holds such announcements back from each peer until
// its session is up and the capability was seen.

// extendedPeers is the set of peers that take IPv6 next hops for IPv4 prefixes. It is never empty, as
// exportPeers.
const (
	extendedPeers = "pncd-extended-next-hop-peers"
	stmtExtended  = "pncd-extended-next-hop"
)

func extendedSet(a netip.Addr) *api.DefinedSet {
	s := exportSet(a)
	s.Name = extendedPeers
	return s
}

func extendedStatement() *api.Statement {
	return &api.Statement{
		Name: stmtExtended,
		Conditions: &api.Conditions{
			AfiSafiIn:     []*api.Family{IPv4Unicast.api()},
			NextHopInList: []string{"::/0"},
			NeighborSet:   &api.MatchSet{Type: api.MatchSet_INVERT, Name: extendedPeers},
		},
		Actions: &api.Actions{RouteAction: api.RouteAction_REJECT},
	}
}

// extended reports whether the announcement is only for peers with the capability.
func (a *Announcement) extended() bool {
	return a.Family() == IPv4Unicast && !a.NextHop.Is4()
}

func (e *GoBGP) setExtended(ctx context.Context, peer netip.Addr, on bool) error {
	if on {
		return e.srv.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: extendedSet(peer)})
	}
	return e.srv.DeleteDefinedSet(ctx, &api.DeleteDefinedSetRequest{DefinedSet: extendedSet(peer)})
}

// watchNextHops follows a session: a peer that comes up with the capability gets what was held back, and
// one that went down has to show it anew.
func (e *GoBGP) watchNextHops(from *api.Peer) {
	addr := e.inside.real(from.GetState().GetNeighborAddress())
	e.mu.Lock()
	p := e.peers[addr]
	if p == nil {
		e.mu.Unlock()
		return
	}
	at := p.inside
	up := p.state == StateEstablished
	was := p.extended
	over := !e.started || e.stopped // nothing is announced before the start and after the end
	e.mu.Unlock()
	if over || up && was {
		return
	}
	ctx := context.Background()
	on := up && e.offersExtended(ctx, at)
	if !on && !was && up {
		return
	}
	if err := e.setExtended(ctx, at, on); err != nil {
		e.cfg.Log.WithError(err).WithField("neighbor", addr.String()).Error("bgp engine: next hop policy not changed")
		return
	}
	e.mu.Lock()
	held := false
	if p := e.peers[addr]; p != nil {
		p.extended = on
		for _, a := range e.announced {
			held = held || a.extended()
		}
	}
	e.mu.Unlock()
	if !on || !held {
		return
	}
	err := e.srv.ResetPeer(ctx, &api.ResetPeerRequest{Address: at.String(), Soft: true, Direction: api.ResetPeerRequest_OUT})
	if err != nil {
		e.cfg.Log.WithError(err).WithField("neighbor", addr.String()).Error("bgp engine: announcements with IPv6 next hops not sent")
	}
}

// offersExtended reports whether the peer's OPEN had IPv6 next hops for IPv4 unicast in its extended next
// hop encoding capability (RFC 8950 section 4).
func (e *GoBGP) offersExtended(ctx context.Context, at netip.Addr) (yes bool) {
	err := e.srv.ListPeer(ctx, &api.ListPeerRequest{Address: at.String()}, func(p *api.Peer) {
		for _, c := range p.GetState().GetRemoteCap() {
			var m api.ExtendedNexthopCapability
			if !c.MessageIs(&m) || c.UnmarshalTo(&m) != nil {
				continue
			}
			for _, t := range m.GetTuples() {
				yes = yes || fromAPIFamily(t.GetNlriFamily()) == IPv4Unicast && t.GetNexthopFamily().GetAfi() == api.Family_AFI_IP6
			}
		}
	})
	return yes && err == nil
}
