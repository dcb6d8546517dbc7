package engine

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	api "github.com/osrg/gobgp/v3/api"
)

// AddPeer puts the key and the minimum TTL into force first, so that there is no moment in which the
// peer could come in without.
func (e *GoBGP) AddPeer(ctx context.Context, p Peer) error {
	e.mu.Lock()
	if e.stopped || !e.started {
		e.mu.Unlock()
		return ErrStopped
	}
	if e.peers[p.Address] != nil {
		e.mu.Unlock()
		return fmt.Errorf("bgp engine: peer %s exists already", p.Address)
	}
	if p.Passive && !e.lis.hasFamily(p.Address) {
		e.mu.Unlock()
		return fmt.Errorf("%w: %s is passive", ErrNoListener, p.Address)
	}
	e.peers[p.Address] = &peerState{cfg: p, state: StateIdle, since: time.Now()}
	err := e.secure(p)
	e.mu.Unlock()

	if err == nil {
		err = e.allowExport(ctx, p)
	}
	if err == nil {
		err = e.srv.AddPeer(ctx, &api.AddPeerRequest{Peer: e.toAPI(p)})
	}
	if err != nil {
		e.forget(ctx, p)
		return fmt.Errorf("bgp engine: peer %s: %w", p.Address, err)
	}
	return nil
}

// secure needs e.mu.
func (e *GoBGP) secure(p Peer) error {
	if err := probe(p); err != nil {
		return err
	}
	if p.Password != "" {
		if err := e.lis.setKey(p.Address, p.Password); err != nil {
			return err
		}
	}
	return e.lis.setMinTTL(e.minTTLs())
}

func (e *GoBGP) minTTLs() map[netip.Addr]uint8 {
	m := map[netip.Addr]uint8{}
	for a, p := range e.peers {
		if p.cfg.TTLMin != 0 {
			m[a] = p.cfg.TTLMin
		}
	}
	return m
}

// forget undoes what AddPeer did around GoBGP's peer. GoBGP itself leaves the key on the listener
// when a peer is deleted, which would keep a later session without a key from coming up.
func (e *GoBGP) forget(ctx context.Context, p Peer) {
	if err := e.denyExport(ctx, p); err != nil {
		e.cfg.Log.WithError(err).WithField("neighbor", p.Address).Error("bgp engine: export policy not changed")
	}
	if err := e.setExtended(ctx, p.Address, false); err != nil {
		e.cfg.Log.WithError(err).WithField("neighbor", p.Address).Error("bgp engine: next hop policy not changed")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.peers, p.Address)
	if p.Password != "" {
		if err := e.lis.setKey(p.Address, ""); err != nil {
			e.cfg.Log.WithError(err).WithField("neighbor", p.Address).Warn("bgp engine: TCP MD5 key left on the listener")
		}
	}
	if err := e.lis.setMinTTL(e.minTTLs()); err != nil {
		e.cfg.Log.WithError(err).Warn("bgp engine: TTL filter not updated")
	}
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
	if err := e.srv.DeletePeer(ctx, &api.DeletePeerRequest{Address: addr.String()}); err != nil {
		return fmt.Errorf("bgp engine: peer %s: %w", addr, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if !e.awaitEnd(ctx, p) {
		e.cfg.Log.WithField("neighbor", addr.String()).Warn("bgp engine: the session's end takes long; not waiting for it")
	}
	e.forget(context.WithoutCancel(ctx), p.cfg)
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

func (e *GoBGP) toAPI(p Peer) *api.Peer {
	out := &api.Peer{
		Conf: &api.PeerConf{
			NeighborAddress: p.Address.String(),
			PeerAsn:         p.PeerAS,
			LocalAsn:        p.LocalAS,
			AuthPassword:    p.Password,
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
		Transport: &api.Transport{PassiveMode: p.Passive, RemotePort: uint32(p.Port)},
		GracefulRestart: &api.GracefulRestart{
			Enabled: p.Restart, HelperOnly: true, RestartTime: uint32(seconds(p.HoldTime)),
			LonglivedEnabled: p.Restart && p.LongLived,
		},
	}
	if p.LocalAddress.IsValid() {
		out.Transport.LocalAddress = p.LocalAddress.String()
	}
	if p.TTLMin != 0 {
		out.TtlSecurity = &api.TtlSecurity{Enabled: true, TtlMin: uint32(p.TTLMin)}
	}
	if p.Multihop != 0 {
		out.EbgpMultihop = &api.EbgpMultihop{Enabled: true, MultihopTtl: uint32(p.Multihop)}
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
		addr, err := netip.ParseAddr(p.GetState().GetNeighborAddress())
		if err != nil {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if mine := e.peers[addr]; mine != nil {
			st := mine.status(p)
			st.Advertised = e.advertised(mine, st)
			out = append(out, st)
		}
	})
	slices.SortFunc(out, func(a, b PeerStatus) int { return a.Address.Compare(b.Address) })
	return out, err
}

func (p *peerState) status(from *api.Peer) PeerStatus {
	s := PeerStatus{
		Address: p.cfg.Address, PeerAS: p.cfg.PeerAS, LocalAS: p.cfg.LocalAS,
		State: p.state, Since: p.since, LastError: p.lastError, Flaps: p.flaps, Restart: p.restart,
		SentUpdates: from.GetState().GetMessages().GetSent().GetUpdate(),
	}
	for _, f := range from.GetAfiSafis() {
		s.Received += f.GetState().GetReceived()
	}
	if p.state != StateEstablished {
		return s
	}
	s.RouterID, _ = netip.ParseAddr(from.GetState().GetRouterId())
	s.LocalAddress, _ = netip.ParseAddr(from.GetTransport().GetLocalAddress())
	s.HoldTime = time.Duration(from.GetTimers().GetState().GetNegotiatedHoldTime()) * time.Second
	s.Families = negotiated(p.cfg.Families, from)
	return s
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
