package pnc

import "time"

// ring keeps the newest things, at most limit.
type ring[T any] struct {
	limit int
	buf   []T
	next  int // where the oldest is, once the buffer is full
}

func (r *ring[T]) add(e T) {
	if len(r.buf) < r.limit {
		r.buf = append(r.buf, e)
		return
	}
	r.buf[r.next] = e
	r.next = (r.next + 1) % r.limit
}

// all copies what is kept, oldest first.
func (r *ring[T]) all() []T {
	out := make([]T, 0, len(r.buf))
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
	e.At, e.Kind, e.Route.proxy = now, EventDisregarded, noProxy
	if e.Reason >= disregardCount {
		e.Reason = DisregardNone
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emitRejected(e)
}

// Own records what this node does with its own PNC for a prefix: Kind (EventAnnounced or EventHeldBack),
// Route and Detail of e. It changes no route.
func (t *Table) Own(now time.Time, e Event) {
	if e.Kind != EventAnnounced && e.Kind != EventHeldBack {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit(event{at: now, kind: e.Kind, route: NewEntry(e.Route), detail: e.Detail})
}

// emitRejected counts and keeps that a capability was disregarded and tells the watchers. The caller
// holds the lock.
func (t *Table) emitRejected(e Event) {
	t.counters.kinds[EventDisregarded]++
	t.counters.disregarded[e.Reason]++
	t.rejected.add(e)
	for w := range t.watchers {
		w.offer(e)
	}
}

// emit counts and keeps an event and tells the watchers. The caller holds the lock.
func (t *Table) emit(e event) {
	if e.kind == EventDisregarded {
		t.emitRejected(e.public())
		return
	}
	t.counters.kinds[e.kind]++
	t.history.add(e)
	if len(t.watchers) == 0 {
		return
	}
	p := e.public()
	for w := range t.watchers {
		w.offer(p)
	}
}

// event is an Event of a stored route.
type event struct {
	at     time.Time
	kind   EventKind
	reason DisregardReason
	route  *Entry
	detail string
}

func (e *event) public() Event {
	r := e.route.Route()
	r.proxy = noProxy
	return Event{At: e.at, Kind: e.kind, Route: r, Reason: e.reason, Detail: e.detail}
}

// past gives the events of the history, oldest first. The caller holds the lock.
func (t *Table) past() []Event {
	out := make([]Event, 0, len(t.history.buf))
	for _, e := range t.history.all() {
		out = append(out, e.public())
	}
	return out
}

// History gives the events of learned, changed and withdrawn routes and of this node's own that are kept,
// oldest first.
// Disregarded capabilities are kept apart (Rejected): many of them push nothing out of here.
func (t *Table) History() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.past()
}

// Rejected gives the events of disregarded capabilities that are kept, oldest first.
func (t *Table) Rejected() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rejected.all()
}
