package pnc

// Delivery is one event for a watcher.
type Delivery struct {
	Event   Event
	Dropped uint64 // events dropped before this one because the watcher was too slow
}

// Watcher gets the events of a table as they happen, through a bounded buffer.
type Watcher struct {
	C       <-chan Delivery // closed by Close
	History []Event         // with history: what was kept when the watch began, oldest first
}

// Watch starts to watch: a buffer of so many events (0 means 1024), and the history that is kept, if
// wanted. No event is lost or doubled between the two.
func (t *Table) Watch(buffer int, history bool) *Watcher { return &Watcher{} }

// Close ends the watch and closes C. It may be called more than once.
func (w *Watcher) Close() {}

// Dropped is the number of events that this watcher was too slow for.
func (w *Watcher) Dropped() uint64 { return 0 }
