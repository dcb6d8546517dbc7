package daemon

import (
	"sort"
	"sync"
)

// ringStats are the counts of one packet ring, over every time that it was opened.
type ringStats struct {
	Interface string
	Role      string // learner or detector
	Packets   uint64
	Drops     uint64
	Freezes   uint64
	Downs     uint64
}

// add sums the counts of two.
func (s ringStats) add(o ringStats) ringStats {
	s.Packets += o.Packets
	s.Drops += o.Drops
	s.Freezes += o.Freezes
	s.Downs += o.Downs
	return s
}

// ringBook keeps the counts of rings, so that they never step back when a ring is opened again.
type ringBook struct {
	mu    sync.Mutex
	past  map[string]ringStats // of closed rings, by role and interface
	live  map[string]func() ringStats
	named map[string]ringStats // interface and role, without counts
}

func newRingBook() *ringBook {
	return &ringBook{past: map[string]ringStats{}, live: map[string]func() ringStats{}, named: map[string]ringStats{}}
}

// opened books a ring; the function returned books that it is about to be closed.
func (b *ringBook) opened(iface, role string, read func() ringStats) (closing func()) {
	key := role + ":" + iface
	b.mu.Lock()
	defer b.mu.Unlock()
	b.named[key] = ringStats{Interface: iface, Role: role}
	b.live[key] = read
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.past[key] = b.past[key].add(read())
		delete(b.live, key)
	}
}

// list reads the counts of every ring that was ever open.
func (b *ringBook) list() []ringStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]ringStats, 0, len(b.named))
	for key, s := range b.named {
		s = s.add(b.past[key])
		if read := b.live[key]; read != nil {
			s = s.add(read())
		}
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Role != out[j].Role {
			return out[i].Role < out[j].Role
		}
		return out[i].Interface < out[j].Interface
	})
	return out
}
