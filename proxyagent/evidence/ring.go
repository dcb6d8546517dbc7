package evidence

import (
	"sync"
	"sync/atomic"
)

// ring keeps the newest records. A writer never waits: it gives up on a slot that a reader is just
// copying, or that a writer one lap ahead holds.
type ring struct {
	slots   []slot
	head    atomic.Uint64 // sequence of the newest record
	dropped atomic.Uint64
}

type slot struct {
	mu  sync.Mutex
	rec Record
}

// newRing takes the memory of all records at once, by a write to each: left to the first lap, it costs a page fault and
// a flush of all processors' TLBs every ten records, in the first storm of all times.
func newRing(capacity int) *ring {
	r := &ring{slots: make([]slot, capacity)}
	for i := range r.slots {
		r.slots[i].rec.Sequence = 0
	}
	return r
}

// put gives r the next sequence and keeps it; false when it was dropped.
func (r *ring) put(rec *Record) bool {
	rec.Sequence = r.head.Add(1)
	s := &r.slots[rec.Sequence%uint64(len(r.slots))]
	if !s.mu.TryLock() {
		r.dropped.Add(1)
		return false
	}
	defer s.mu.Unlock()
	if s.rec.Sequence > rec.Sequence { // overtaken by a whole lap
		r.dropped.Add(1)
		return false
	}
	s.rec = *rec
	return true
}

// each calls fn with a copy of the records kept, newest first, until it returns false.
func (r *ring) each(fn func(*Record) bool) {
	head := r.head.Load()
	n := min(head, uint64(len(r.slots)))
	var rec Record
	for seq := head; seq > head-n; seq-- {
		s := &r.slots[seq%uint64(len(r.slots))]
		s.mu.Lock()
		rec = s.rec
		s.mu.Unlock()
		// Another sequence: dropped, not yet written, or overwritten since.
		if rec.Sequence == seq && !fn(&rec) {
			return
		}
	}
}

// overwritten is how many records are no longer kept.
func (r *ring) overwritten() uint64 {
	head, n := r.head.Load(), uint64(len(r.slots))
	if head <= n {
		return 0
	}
	return head - n
}
