package daemon

import (
	"maps"
	"sort"
	"sync"
)

// ringStats are the counts of one tap, over every time that it was opened.
type ringStats struct {
	Interface string
	Role      string // roleLearner, roleDetector or roleTopFlows
	Packets   uint64
	Shown     uint64 // of Packets, what was handed to user space: of a ring all
	Drops     uint64
	Freezes   uint64
	Downs     uint64

	// Of detectors only; the first six and Drops add up to Packets, of eBPF programs.
	Ignored     uint64 // marked, and no data
	Malformed   uint64 // marked, and not sound
	Events      uint64 // handed on, of marks that came
	QueueEvents uint64 // handed on, of marks by the virtual queue
	Gated       uint64 // within the gate of their flow's last event
	GateFull    uint64 // no entry could be made for their flow
	Marked      uint64 // by the virtual queue
	MarkFailed  uint64 // it could not mark them

	GateForgotten uint64 // flows, not packets, that made room for others in the gate
}

// What a ring is for, as the parts are named in counters.
const (
	roleLearner  = "learner"
	roleDetector = "detector"
	roleTopFlows = "top-flows"
)

// add sums the counts of two.
func (s ringStats) add(o ringStats) ringStats {
	s.Packets += o.Packets
	s.Shown += o.Shown
	s.Drops += o.Drops
	s.Freezes += o.Freezes
	s.Downs += o.Downs
	s.Ignored += o.Ignored
	s.Malformed += o.Malformed
	s.Events += o.Events
	s.QueueEvents += o.QueueEvents
	s.Gated += o.Gated
	s.GateFull += o.GateFull
	s.Marked += o.Marked
	s.MarkFailed += o.MarkFailed
	s.GateForgotten += o.GateForgotten
	return s
}

// ringBook keeps the counts of rings, so that they never step back when a ring is opened again.
type ringBook struct {
	mu    sync.Mutex
	past  map[string]ringStats   // of closed rings, by role and interface
	live  map[*liveRing]struct{} // while one replaces another, both are there
	named map[string]ringStats   // interface and role, without counts
}

// liveRing is one open ring.
type liveRing struct {
	key  string
	read func() ringStats
}

func newRingBook() *ringBook {
	return &ringBook{past: map[string]ringStats{}, live: map[*liveRing]struct{}{}, named: map[string]ringStats{}}
}

// opened books a ring; the function returned books that it is about to be closed.
func (b *ringBook) opened(iface, role string, read func() ringStats) (closing func()) {
	r := &liveRing{role + ":" + iface, read}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.named[r.key] = ringStats{Interface: iface, Role: role}
	b.live[r] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.past[r.key] = b.past[r.key].add(read())
		delete(b.live, r)
	}
}

// list reads the counts of every ring that was ever open.
func (b *ringBook) list() []ringStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := maps.Clone(b.past)
	for r := range b.live {
		now[r.key] = now[r.key].add(r.read())
	}
	out := make([]ringStats, 0, len(b.named))
	for key, s := range b.named {
		out = append(out, s.add(now[key]))
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Role != out[j].Role {
			return out[i].Role < out[j].Role
		}
		return out[i].Interface < out[j].Interface
	})
	return out
}
