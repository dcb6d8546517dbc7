package engine

import (
	"context"
	"fmt"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
)

// Shutdown ends a session with an Administrative Shutdown that carries a message (RFC 9003), and waits
// for its end as RemovePeer does. The peer stays, and its session down.
func (e *GoBGP) Shutdown(ctx context.Context, addr netip.Addr, message string) error {
	e.mu.Lock()
	p := e.peers[addr]
	e.mu.Unlock()
	if p == nil {
		return fmt.Errorf("bgp engine: %w: %s", ErrNoPeer, addr)
	}
	if err := e.srv.DisablePeer(ctx, &api.DisablePeerRequest{Address: p.inside.String(), Communication: message}); err != nil {
		return fmt.Errorf("bgp engine: peer %s: %w", addr, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if !e.awaitEnd(ctx, p) {
		e.cfg.Log.WithField("neighbor", addr.String()).Warn("bgp engine: the session's end takes long; not waiting for it")
	}
	return nil
}
