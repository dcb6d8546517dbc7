package bgp

import (
	"context"
	"fmt"
	"net/netip"

	"pncd/bgp/engine"
)

// What Refresh answers when it can't be done.
var (
	ErrNoNeighbor = engine.ErrNoPeer
	ErrDown       = engine.ErrDown
	ErrNoRefresh  = engine.ErrNoRefresh
)

// Refresh asks a neighbour for its routes again (in, RFC 2918), or sends it our announcements again (out), and
// gives the families concerned. The session stays. Errors wrap ErrNoNeighbor, ErrDown, ErrNoRefresh or
// ErrNotRunning.
func (s *Speaker) Refresh(ctx context.Context, neighbor netip.Addr, in, out bool) ([]Family, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return nil, ErrNotRunning
	}
	families, err := s.eng.Refresh(ctx, neighbor, in, out)
	if err != nil {
		return nil, fmt.Errorf("bgp: refresh of %s: %w", neighbor, err)
	}
	return families, nil
}
