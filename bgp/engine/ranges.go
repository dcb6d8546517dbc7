package engine

import (
	"fmt"
	"net/netip"

	"pncd/bgp/relay"
)

// Range holds the addresses of peers that come by themselves.
type Range = relay.Range

// knocksHeld bounds who waits for AddPeer or Refuse. The relay lets no more in.
const knocksHeld = 256

// SetRanges says from where strangers may come, in place of what was said before.
func (e *GoBGP) SetRanges(list []Range) error {
	e.mu.Lock()
	r := e.relay
	e.mu.Unlock()
	if r == nil {
		return ErrStopped
	}
	for _, x := range list {
		if !r.Listens(x.Prefix.Addr()) {
			return fmt.Errorf("bgp engine: range %s: %w", x.Prefix, ErrNoListener)
		}
	}
	if err := r.SetRanges(list); err != nil {
		return fmt.Errorf("bgp engine: ranges: %w", err)
	}
	return nil
}

// Knocks gives who has come from a range and waits for AddPeer or Refuse.
func (e *GoBGP) Knocks() <-chan netip.Addr { return e.knocks }

// Refuse sends one of them away.
func (e *GoBGP) Refuse(a netip.Addr) { e.relay.Refuse(a) }

func (e *GoBGP) knock(a netip.Addr) bool {
	select {
	case e.knocks <- a:
		return true
	default:
		return false
	}
}
