package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"

	"pncd/bgp/guard"
	"pncd/bgp/relay"
)

// OwnRestart is how this node's own restarts are told to peers (RFC 4724 section 4.1). GoBGP knows of none: see
// package relay, which sets the bits and holds End-of-RIB back.
type OwnRestart struct {
	Time      time.Duration // how long one may take; zero: no peer is asked to keep anything
	Restarted bool          // this start is one
}

// relay is what the relay has to know.
func (o OwnRestart) relay(now time.Time) relay.OwnRestart {
	out := relay.OwnRestart{Asked: o.Time > 0}
	if out.Asked && o.Restarted {
		out.Until = now.Add(o.Time)
	}
	return out
}

// EndOfRIB sends everything again to the peers that wait for the end of it.
func (e *GoBGP) EndOfRIB(ctx context.Context) error {
	e.mu.Lock()
	if e.stopped || e.relay == nil {
		e.mu.Unlock()
		return ErrStopped
	}
	e.complete = true
	inside := map[netip.Addr]netip.Addr{}
	for a, p := range e.peers {
		inside[a] = p.inside
	}
	e.mu.Unlock()
	e.relay.Complete()
	var errs []error
	for a, at := range inside {
		if e.relay.Early(a) {
			errs = append(errs, e.resend(ctx, at))
		}
	}
	return errors.Join(errs...)
}

// watchRestart sends everything again to a peer whose session is older than the end of the restart and came up
// after it.
func (e *GoBGP) watchRestart(from *api.Peer) {
	addr := e.inside.real(from.GetState().GetNeighborAddress())
	e.mu.Lock()
	p := e.peers[addr]
	due := p != nil && p.state == StateEstablished && e.complete && !e.stopped
	var at netip.Addr
	if due {
		at = p.inside
	}
	e.mu.Unlock()
	if !due || !e.relay.Early(addr) {
		return
	}
	if err := e.resend(context.Background(), at); err != nil {
		e.cfg.Log.WithError(err).WithField("neighbor", addr.String()).Error("bgp engine: End-of-RIB not sent")
	}
}

// resend has GoBGP send all announcements again, and End-of-RIB.
func (e *GoBGP) resend(ctx context.Context, at netip.Addr) error {
	return e.srv.ResetPeer(ctx, &api.ResetPeerRequest{Address: at.String(), Soft: true, Direction: api.ResetPeerRequest_OUT})
}

// Refresh asks for a peer's routes again, or sends it the announcements again. GoBGP has no ROUTE-REFRESH to send:
// its soft reset in reads what it has once more.
func (e *GoBGP) Refresh(ctx context.Context, addr netip.Addr, in, out bool) ([]Family, error) {
	at, err := e.insideOf(addr)
	if err != nil {
		return nil, err
	}
	families, err := e.establishedFamilies(ctx, addr)
	if err != nil {
		return nil, err
	}
	if in {
		var fs []guard.Family
		for _, f := range families {
			a := f.api()
			fs = append(fs, guard.Family{AFI: uint16(a.Afi), SAFI: uint8(a.Safi)})
		}
		if err := e.relay.Refresh(addr, fs); err != nil {
			return nil, fmt.Errorf("bgp engine: %w", err)
		}
	}
	if out {
		if err := e.resend(ctx, at); err != nil {
			return nil, fmt.Errorf("bgp engine: peer %s: %w", addr, err)
		}
	}
	return families, nil
}

// establishedFamilies gives the families of a session.
func (e *GoBGP) establishedFamilies(ctx context.Context, addr netip.Addr) ([]Family, error) {
	all, err := e.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Address == addr && s.State == StateEstablished {
			return s.Families, nil
		}
	}
	return nil, fmt.Errorf("bgp engine: %w", ErrDown)
}
