package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"pncd/bgp/guard"
	"pncd/bgp/relay"
)

// loopback is where GoBGP listens, for the relay only.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// startInside has GoBGP listen on a port of loopback that is free. GoBGP can't be told to take any, so
// one is looked for, and another when somebody else was faster.
func (e *GoBGP) startInside(ctx context.Context) (netip.AddrPort, error) {
	const tries = 10
	var errs []error
	for range tries {
		at, err := freePort()
		if err == nil {
			err = e.srv.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
				Asn: e.cfg.AS, RouterId: e.cfg.RouterID.String(),
				ListenPort: int32(at.Port()), ListenAddresses: []string{at.Addr().String()},
			}})
		}
		switch {
		case err == nil:
			return at, nil
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return netip.AddrPort{}, fmt.Errorf("%w on %s: %w (the loopback interface must be up: ip link set lo up)", ErrListen, loopback, err)
		case !errors.Is(err, syscall.EADDRINUSE):
			return netip.AddrPort{}, fmt.Errorf("%w on %s: %w", ErrListen, loopback, err)
		}
		errs = append(errs, err)
	}
	return netip.AddrPort{}, fmt.Errorf("%w on %s: %w", ErrListen, loopback, errors.Join(errs...))
}

func freePort() (netip.AddrPort, error) {
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	if err != nil {
		return netip.AddrPort{}, err
	}
	at := netip.AddrPortFrom(loopback, uint16(l.Addr().(*net.TCPAddr).Port))
	return at, l.Close()
}

// startRelay begins to listen for peers.
func (e *GoBGP) startRelay(ctx context.Context, at netip.AddrPort) error {
	cfg := relay.Config{
		RouterID: e.cfg.RouterID, Speaker: at, Key: e.inside.key, Decoder: decoder, Note: e.noteRelay, Knock: e.knock, Log: e.cfg.Log,
		Own: e.cfg.Own.relay(time.Now()), Busy: e.watching.Load,
	}
	if e.cfg.ListenPort > 0 {
		for _, a := range e.cfg.ListenAddresses {
			cfg.Listen = append(cfg.Listen, netip.AddrPortFrom(a, uint16(e.cfg.ListenPort)))
		}
	}
	r, err := relay.Start(ctx, cfg)
	if err != nil {
		return fmt.Errorf("%w (is another BGP daemon running, or the capability CAP_NET_BIND_SERVICE missing?)", err)
	}
	e.mu.Lock()
	e.relay = r
	e.mu.Unlock()
	return nil
}

// relayPeer is a peer as the relay wants it.
func (e *GoBGP) relayPeer(p Peer, at netip.Addr) relay.Peer {
	out := relay.Peer{
		Address: p.Address, Port: p.Port, LocalAddress: p.LocalAddress, Passive: p.Passive, Dynamic: p.Dynamic, Password: p.Password,
		TTLMin: p.TTLMin, ConnectRetry: p.ConnectRetry, HoldTime: p.HoldTime, LocalAS: p.LocalAS, Restart: p.Restart,
		Inside: at, Guard: guard.Config{EBGP: p.PeerAS != p.LocalAS},
	}
	switch {
	case p.TTLMin != 0:
		out.TTL = 255 // RFC 5082 section 3
	case p.Multihop != 0:
		out.TTL = p.Multihop
	case p.PeerAS != p.LocalAS:
		out.TTL = 1
	}
	for _, f := range p.Families {
		a := f.api()
		out.Guard.Families = append(out.Guard.Families, guard.Family{AFI: uint16(a.Afi), SAFI: uint8(a.Safi)})
	}
	return out
}

// watchRelay tells the relay what GoBGP is at with a peer.
func (e *GoBGP) watchRelay(r *api.WatchEventResponse) {
	s := r.GetPeer().GetPeer().GetState()
	addr := e.inside.real(s.GetNeighborAddress())
	if !addr.IsValid() || r.GetPeer().GetType() == api.WatchEventResponse_PeerEvent_END_OF_INIT {
		return
	}
	state := relay.Down
	switch State(s.GetSessionState()) {
	case StateActive:
		state = relay.Active
	case StateOpenSent, StateOpenConfirm:
		state = relay.Opening
	case StateEstablished:
		state = relay.Established
	}
	e.relay.Tell(addr, state, s.GetAdminState() != api.PeerState_UP)
}

// noteRelay keeps what the relay says as a peer's last error.
func (e *GoBGP) noteRelay(addr netip.Addr, n relay.Note) {
	text := n.Text
	switch {
	case n.Fault != nil:
		text = fmt.Sprintf("sent notification: %s: %s", bgp.NewNotificationErrorCode(n.Fault.Code, n.Fault.Subcode), n.Fault.Reason)
	case n.Received != nil:
		text = receivedNotification(n.Received)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[addr]
	if p == nil {
		return
	}
	log := e.cfg.Log.WithField("neighbor", addr.String())
	if text == p.lastError {
		log.Debug("bgp: " + text) // again: it is tried every few seconds
	} else {
		log.Info("bgp: " + text)
	}
	if !p.final {
		p.lastError, p.noted = text, true
		p.faulty = n.Fault != nil
	}
}

// receivedNotification puts a NOTIFICATION in words, with the message of an administrative shutdown or
// reset (RFC 9003).
func receivedNotification(msg []byte) string {
	body := msg[guard.HeaderLen:]
	text := "received notification: " + bgp.NewNotificationErrorCode(body[0], body[1]).String()
	if data := body[2:]; body[0] == bgp.BGP_ERROR_CEASE && len(data) > 1 && int(data[0]) <= len(data)-1 &&
		(body[1] == bgp.BGP_ERROR_SUB_ADMINISTRATIVE_SHUTDOWN || body[1] == bgp.BGP_ERROR_SUB_ADMINISTRATIVE_RESET) {
		text += fmt.Sprintf(": %q", data[1:1+int(data[0])])
	}
	return text
}
