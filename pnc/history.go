package pnc

import "time"

// ring keeps the newest events, at most limit.
type ring struct {
	limit int
	buf   []Event
	next  int // where the oldest is, once the buffer is full
}

func (r *ring) add(e Event) {
	if len(r.buf) < r.limit {
		r.buf = append(r.buf, e)
		return
	}
	r.buf[r.next] = e
	r.next = (r.next + 1) % r.limit
}

// events copies what is kept, oldest first.
func (r *ring) events() []Event {
	out := make([]Event, 0, len(r.buf))
	out = append(out, r.buf[r.next:]...)
	return append(out, r.buf[:r.next]...)
}

// counters are the exact counts behind Counters.
type counters struct {
	kinds        [eventCount]uint64
	disregarded  [disregardCount]uint64
	invalid      uint64
	watchDropped uint64
}

// Counters are exact counts since the table was made.
type Counters struct {
	Learned, Changed, Withdrawn uint64
	Disregarded                 map[DisregardReason]uint64 // every reason is there
	Invalid                     uint64                     // updates refused: bad prefix or source
	WatchDropped                uint64                     // events that watchers were too slow for
}

// Counters gives the exact counts since the table was made.
func (t *Table) Counters() Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Counters{
		Learned:      t.counters.kinds[EventLearned],
		Changed:      t.counters.kinds[EventChanged],
		Withdrawn:    t.counters.kinds[EventWithdrawn],
		Disregarded:  make(map[DisregardReason]uint64, disregardCount),
		Invalid:      t.counters.invalid,
		WatchDropped: t.counters.watchDropped,
	}
	for _, r := range DisregardReasons() {
		c.Disregarded[r] = t.counters.disregarded[r]
	}
	return c
}

// Disregard records that a capability was seen and not believed: Route, Reason and Detail of e. The
// route itself comes with Apply; where several findings belong to one route, each is recorded.
func (t *Table) Disregard(now time.Time, e Event) {
	e.At, e.Kind = now, EventDisregarded
	if e.Reason >= disregardCount {
		e.Reason = DisregardNone
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit(e)
}

// Own records what this node does with its own PNC for a prefix: Kind (EventAnnounced or EventHeldBack),
// Route and Detail of e. It changes no route.
func (t *Table) Own(now time.Time, e Event) {
	if e.Kind != EventAnnounced && e.Kind != EventHeldBack {
		return
	}
	e.At, e.Reason = now, DisregardNone
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit(e)
}

// emit counts and keeps an event and tells the watchers. The caller holds the lock.
func (t *Table) emit(e Event) {
	e.Route.proxy, e.Route.group = noProxy, nil
	t.counters.kinds[e.Kind]++
	if e.Kind == EventDisregarded {
		t.counters.disregarded[e.Reason]++
		t.rejected.add(e)
	} else {
		t.history.add(e)
	}
	for w := range t.watchers {
		w.offer(e)
	}
}

// History gives the events of learned, changed and withdrawn routes and of this node's own that are kept,
// oldest first.
// Disregarded capabilities are kept apart (Rejected): many of them push nothing out of here.
func (t *Table) History() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history.events()
}

// Rejected gives the events of disregarded capabilities that are kept, oldest first.
func (t *Table) Rejected() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rejected.events()
}
