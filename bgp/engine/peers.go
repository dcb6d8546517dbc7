package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	api "github.com/osrg/gobgp/v3/api"

	"pncd/bgp/relay"
)

// AddPeer puts the key and the minimum TTL into force first, so that there is no moment in which the
// peer could come in without.
func (e *GoBGP) AddPeer(ctx context.Context, p Peer) error {
	at, err := e.inside.take(p.Address)
	if err != nil {
		return fmt.Errorf("bgp engine: peer %s: %w", p.Address, err)
	}
	e.mu.Lock()
	switch {
	case e.stopped || e.relay == nil:
		err = ErrStopped
	case e.peers[p.Address] != nil:
		err = fmt.Errorf("bgp engine: peer %s exists already", p.Address)
	case p.Passive && !e.relay.Listens(p.Address):
		err = fmt.Errorf("%w: %s is passive", ErrNoListener, p.Address)
	default:
		e.peers[p.Address] = &peerState{cfg: p, inside: at, state: StateIdle, since: time.Now()}
	}
	e.mu.Unlock()
	if err != nil {
		e.inside.release(at)
		return err
	}
	if err := e.addPeer(ctx, p, at); err != nil {
		e.forget(ctx, p, at)
		return fmt.Errorf("bgp engine: peer %s: %w", p.Address, err)
	}
	return nil
}

func (e *GoBGP) addPeer(ctx context.Context, p Peer, at netip.Addr) error {
	if err := e.relay.Add(e.relayPeer(p, at)); err != nil {
		return err
	}
	if err := e.allowExport(ctx, p, at); err != nil {
		return err
	}
	if err := e.srv.AddPeer(ctx, &api.AddPeerRequest{Peer: e.toAPI(p, at)}); err != nil {
		return err
	}
	e.mu.Lock()
	keyless := e.peers[p.Address].keyless
	e.mu.Unlock()
	if keyless {
		// GoBGP only logs it, and would let any process of this host pretend to be the peer.
		return errors.Join(
			fmt.Errorf("%w on GoBGP's listener (is the program built with `godebug multipathtcp=0`?)", ErrMD5),
			e.srv.DeletePeer(ctx, &api.DeletePeerRequest{Address: at.String()}),
		)
	}
	return nil
}

// forget undoes what AddPeer did around GoBGP's peer.
func (e *GoBGP) forget(ctx context.Context, p Peer, at netip.Addr) {
	log := e.cfg.Log.WithField("neighbor", p.Address.String())
	if err := e.denyExport(ctx, p, at); err != nil {
		log.WithError(err).Error("bgp engine: export policy not changed")
	}
	if err := e.setExtended(ctx, at, false); err != nil {
		log.WithError(err).Error("bgp engine: next hop policy not changed")
	}
	if err := e.relay.Remove(p.Address); err != nil && !errors.Is(err, relay.ErrNone) {
		log.WithError(err).Warn("bgp engine: TCP MD5 key or TTL filter left on the listener")
	}
	e.mu.Lock()
	delete(e.peers, p.Address)
	e.mu.Unlock()
	e.inside.release(at)
	if e.stations != nil {
		e.stations.Gone(at) // GoBGP tells no station that a peer was removed
	}
}

// insideOf gives the address by which GoBGP knows a peer.
func (e *GoBGP) insideOf(peer netip.Addr) (netip.Addr, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.peers[peer]; p != nil {
		return p.inside, nil
	}
	return netip.Addr{}, fmt.Errorf("bgp engine: %w: %s", ErrNoPeer, peer)
}

// endTimeout bounds how long RemovePeer waits for a session's end.
const endTimeout = 3 * time.Second

// RemovePeer ends a session. When it was established, it waits until GoBGP has reported its end, so
// that nothing of this session can be taken for the next one with the same address. GoBGP has
// forgotten the peer by then, so a session whose end takes longer is no error.
func (e *GoBGP) RemovePeer(ctx context.Context, addr netip.Addr) error {
	e.mu.Lock()
	p := e.peers[addr]
	e.mu.Unlock()
	if p == nil {
		return fmt.Errorf("bgp engine: %w: %s", ErrNoPeer, addr)
	}
	if err := e.srv.DeletePeer(ctx, &api.DeletePeerRequest{Address: p.inside.String()}); err != nil {
		return fmt.Errorf("bgp engine: peer %s: %w", addr, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if !e.awaitEnd(ctx, p) {
		e.cfg.Log.WithField("neighbor", addr.String()).Warn("bgp engine: the session's end takes long; not waiting for it")
	}
	e.forget(context.WithoutCancel(ctx), p.cfg, p.inside)
	return nil
}

// awaitEnd waits until a session is down.
func (e *GoBGP) awaitEnd(ctx context.Context, p *peerState) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		e.mu.Lock()
		down := p.state != StateEstablished
		e.mu.Unlock()
		if down {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// toAPI is the peer as GoBGP has it: it waits for the relay, on loopback. TTLs are the relay's.
func (e *GoBGP) toAPI(p Peer, at netip.Addr) *api.Peer {
	out := &api.Peer{
		Conf: &api.PeerConf{
			NeighborAddress: at.String(),
			PeerAsn:         p.PeerAS,
			LocalAsn:        p.LocalAS,
			AuthPassword:    e.inside.key,
			Description:     p.Description,
			AdminDown:       p.Shutdown != "",
			// Paths that hold our own AS come in, and package bgp refuses them: GoBGP would keep
			// the path that they replace without saying that it is gone.
			AllowOwnAsn: 255,
			// A router's path that passed our AS before is still the router's path.
			AllowAspathLoopLocal: true,
		},
		// GoBGP passes ORIGINATOR_ID and CLUSTER_LIST on to route reflector clients only, and
		// announcements that follow a router's path need them. Nothing else comes with it: what
		// GoBGP would reflect to clients never gets into its table.
		RouteReflector: &api.RouteReflector{RouteReflectorClient: p.PeerAS == p.LocalAS},
		Timers: &api.Timers{Config: &api.TimersConfig{
			ConnectRetry:      seconds(p.ConnectRetry),
			HoldTime:          seconds(p.HoldTime),
			KeepaliveInterval: seconds(p.Keepalive),
		}},
		Transport: &api.Transport{PassiveMode: true},
		GracefulRestart: &api.GracefulRestart{
			Enabled: p.Restart, HelperOnly: e.cfg.Own.Time == 0, RestartTime: uint32(seconds(p.HoldTime)),
			LonglivedEnabled: p.Restart && p.LongLived,
		},
	}
	if e.cfg.Own.Time > 0 {
		out.GracefulRestart.RestartTime = uint32(seconds(e.cfg.Own.Time))
	}
	for _, f := range p.Families {
		out.AfiSafis = append(out.AfiSafis, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: f.api(), Enabled: true},
			PrefixLimits:      &api.PrefixLimit{Family: f.api(), MaxPrefixes: p.MaxPrefixes},
			AddPaths:          &api.AddPaths{Config: &api.AddPathsConfig{Receive: p.AddPath}},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: p.Restart}},
		})
	}
	return out
}

func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }

func (f Family) api() *api.Family {
	out := &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
	if f == IPv6Unicast || f == IPv6VPN {
		out.Afi = api.Family_AFI_IP6
	}
	if f.VPN() {
		out.Safi = api.Family_SAFI_MPLS_VPN
	}
	return out
}

func fromAPIFamily(f *api.Family) Family {
	for _, known := range []Family{IPv4Unicast, IPv6Unicast, IPv4VPN, IPv6VPN} {
		if a := known.api(); a.Afi == f.GetAfi() && a.Safi == f.GetSafi() {
			return known
		}
	}
	return 0
}

// Status reads the state of all peers, sorted by address.
func (e *GoBGP) Status(ctx context.Context) ([]PeerStatus, error) {
	var out []PeerStatus
	err := e.srv.ListPeer(ctx, &api.ListPeerRequest{}, func(p *api.Peer) {
		addr := e.inside.real(p.GetState().GetNeighborAddress())
		outside := e.relay.Stats(addr)
		e.mu.Lock()
		defer e.mu.Unlock()
		if mine := e.peers[addr]; mine != nil {
			st := mine.status(p, outside)
			st.Advertised = e.advertised(mine, st)
			out = append(out, st)
		}
	})
	slices.SortFunc(out, func(a, b PeerStatus) int { return a.Address.Compare(b.Address) })
	return out, err
}

func (p *peerState) status(from *api.Peer, outside relay.Stats) PeerStatus {
	s := PeerStatus{
		Address: p.cfg.Address, PeerAS: p.cfg.PeerAS, LocalAS: p.cfg.LocalAS,
		State: p.state, Since: p.since, LastError: p.lastError, Flaps: p.flaps, Restart: p.restart,
		SentUpdates: from.GetState().GetMessages().GetSent().GetUpdate(),
		Messages:    messages(from.GetState().GetMessages()),
		Findings:    outside.Findings, Faults: outside.Faults,
	}
	if outside.Remote.IsValid() {
		s.LocalAddress, s.LocalPort, s.RemotePort = outside.Local.Addr(), outside.Local.Port(), outside.Remote.Port()
	} else if p.state == StateOpenSent {
		s.State = StateActive // GoBGP's end of a connection that nobody has
	}
	for _, f := range from.GetAfiSafis() {
		s.Received += f.GetState().GetReceived()
	}
	if p.state != StateEstablished {
		return s
	}
	s.RouterID, _ = netip.ParseAddr(from.GetState().GetRouterId())
	s.HoldTime = time.Duration(from.GetTimers().GetState().GetNegotiatedHoldTime()) * time.Second
	s.Families = negotiated(p.cfg.Families, from)
	return s
}

func messages(m *api.Messages) Messages {
	count := func(m *api.Message) MessageCounts {
		return MessageCounts{
			Opens: m.GetOpen(), Updates: m.GetUpdate(), Notifications: m.GetNotification(),
			Keepalives: m.GetKeepalive(), Refreshes: m.GetRefresh(),
		}
	}
	return Messages{Sent: count(m.GetSent()), Received: count(m.GetReceived())}
}

// advertised counts the announcements that go to a peer. GoBGP's own number is filtered anew for each
// question, and takes End-of-RIB for a path. It needs e.mu.
func (e *GoBGP) advertised(p *peerState, s PeerStatus) (n uint64) {
	if !p.cfg.Export || s.State != StateEstablished {
		return 0
	}
	for _, a := range e.announced {
		if slices.Contains(s.Families, a.Family()) && a.NotTo != s.RouterID && (p.extended || !a.extended()) &&
			p.cfg.ExportPrefixes.Permits(a.Prefix) {
			n++
		}
	}
	return n
}

// negotiated gives the families of ours that the peer offered too. A peer that offers none at all
// speaks IPv4 unicast (RFC 4760 section 8).
func negotiated(ours []Family, from *api.Peer) []Family {
	var theirs []Family
	multiprotocol := false
	for _, c := range from.GetState().GetRemoteCap() {
		var m api.MultiProtocolCapability
		if c.MessageIs(&m) && c.UnmarshalTo(&m) == nil {
			multiprotocol = true
			theirs = append(theirs, fromAPIFamily(m.GetFamily()))
		}
	}
	if !multiprotocol {
		theirs = []Family{IPv4Unicast}
	}
	var both []Family
	for _, f := range ours {
		if slices.Contains(theirs, f) {
			both = append(both, f)
		}
	}
	return both
}
