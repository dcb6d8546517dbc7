package pnc

import "slices"

// DefaultWatchBuffer is the number of events that a watcher may be behind.
const DefaultWatchBuffer = 1024

// Delivery is one event for a watcher.
type Delivery struct {
	Event   Event
	Dropped uint64 // events dropped before this one because the watcher was too slow
}

// Watcher gets the events of a table as they happen, through a bounded buffer. The table never waits
// for it: what doesn't fit is dropped and counted.
type Watcher struct {
	C       <-chan Delivery // closed by Close
	History []Event         // with history: what was kept when the watch began, oldest first

	t       *Table
	c       chan Delivery
	missed  uint64 // since the last delivery; guarded by t.mu
	dropped uint64 // in all; guarded by t.mu
	closed  bool   // guarded by t.mu
}

// Watch starts to watch: a buffer of so many events (0 means DefaultWatchBuffer), and the history
// that is kept, if wanted, rejected ones included. No event is lost or doubled between the two. The
// watcher must be closed.
func (t *Table) Watch(buffer int, history bool) *Watcher {
	if buffer <= 0 {
		buffer = DefaultWatchBuffer
	}
	c := make(chan Delivery, buffer)
	w := &Watcher{C: c, c: c, t: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if history {
		w.History = append(t.past(), t.rejected.all()...)
		slices.SortStableFunc(w.History, func(a, b Event) int { return a.At.Compare(b.At) })
	}
	t.watchers[w] = struct{}{}
	return w
}

// offer hands over an event or counts it as dropped. The caller holds t.mu.
func (w *Watcher) offer(e Event) {
	select {
	case w.c <- Delivery{Event: e, Dropped: w.missed}:
		w.missed = 0
	default:
		w.missed++
		w.dropped++
		w.t.counters.watchDropped++
	}
}

// Close ends the watch and closes C. It may be called more than once.
func (w *Watcher) Close() {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	delete(w.t.watchers, w)
	close(w.c)
}

// Dropped is the number of events that this watcher was too slow for.
func (w *Watcher) Dropped() uint64 {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	return w.dropped
}
