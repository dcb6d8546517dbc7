package bgp

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pncd/bgp/engine"
	"pncd/internal/testwait"
)

// The life of a neighbour of a range, by the clock.
func TestANeighbourOfARangeIsForgottenWhenNothingOfItStays(t *testing.T) {
	var ahead atomic.Int64
	clock := func() time.Time { return time.Unix(1_000_000, ahead.Load()) }
	pass := func(d time.Duration) { ahead.Add(int64(d)) }
	p, err := peer1.Prefix(peer1.BitLen() - 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := sound()
	cfg.RouterID, cfg.Neighbors, cfg.Originate = addr("203.0.113.9"), nil, nil
	cfg.Ranges = []RangeConfig{{Prefix: p, Neighbor: NeighborConfig{PeerAS: 65000, GracefulRestart: true}}}
	r := runAt(t, cfg, clock)
	there := func() bool { return r.Ranges()[0].Neighbors == 1 }
	routes := func() int { return r.Counters().Paths }
	come := func() {
		t.Helper()
		r.f.knocks <- peer1
		testwait.Until(t, "it is taken", there)
	}
	asked := func(what string) bool { return slices.Contains(r.f.log(), what+" "+peer1.String()) }

	come()
	pass(dynamicWait)
	testwait.Until(t, "one without a session is forgotten", func() bool { return !there() && asked("remove") })

	come()
	r.f.report(up(nothing, false), pathEvent(t, peer1, 1, nil))
	testwait.Until(t, "its path", func() bool { return routes() == 1 })
	pass(dynamicWait)
	r.f.report(state(peer1, engine.StateIdle, false))
	testwait.Until(t, "the end of its session is its own", func() bool { return !there() && routes() == 0 })

	come()
	r.f.report(up(preserved, false), pathEvent(t, peer1, 1, nil))
	testwait.Until(t, "its path", func() bool { return routes() == 1 })
	r.f.report(lost)
	testwait.Until(t, "its path as stale", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.rib.peers[peer1] != nil && r.rib.peers[peer1].stale == 1
	})
	pass(preserved.Time - time.Second)
	r.tick()
	r.reap(t.Context())
	if !there() || routes() != 1 {
		t.Error("it restarts, and was forgotten within its restart time")
	}
	pass(2 * time.Second)
	testwait.Until(t, "the restart time's end", func() bool { return !there() && routes() == 0 })
}
