package flowmap

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Change is one change of an entry.
type Change struct {
	Entry   Entry  // the entry after the change
	Dropped uint64 // changes dropped before this one because the reader was too slow
}

// Watch is one subscription to changes.
type Watch struct {
	m       *Map
	mu      sync.Mutex
	ch      chan Change
	dropped uint64
	closed  bool
}

type watchers struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*Watch] // never changed in place
}

// Watch subscribes to the changes from now on. At most buffer of them (at least one) wait for the reader;
// more are dropped and counted. The caller must Close it.
func (m *Map) Watch(buffer int) *Watch {
	w := &Watch{m: m, ch: make(chan Change, max(buffer, 1))}
	m.watchers.change(func(l []*Watch) []*Watch { return append(slices.Clone(l), w) })
	return w
}

// C is the channel of changes. Close closes it.
func (w *Watch) C() <-chan Change { return w.ch }

// Close ends the subscription. It may be called more than once.
func (w *Watch) Close() {
	w.m.watchers.change(func(l []*Watch) []*Watch {
		return slices.DeleteFunc(slices.Clone(l), func(x *Watch) bool { return x == w })
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.ch)
	}
}

func (ws *watchers) change(f func([]*Watch) []*Watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var old []*Watch
	if p := ws.list.Load(); p != nil {
		old = *p
	}
	list := f(old)
	ws.list.Store(&list)
}

// watching says whether anyone watches, so that the packet path builds no entry for no one.
func (m *Map) watching() bool {
	p := m.watchers.list.Load()
	return p != nil && len(*p) > 0
}

// tell hands a change to each watcher without waiting for any.
func (m *Map) tell(e Entry) {
	for _, w := range *m.watchers.list.Load() {
		w.offer(e)
	}
}

func (w *Watch) offer(e Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	select {
	case w.ch <- Change{Entry: e, Dropped: w.dropped}:
		w.dropped = 0
	default:
		w.dropped++
	}
}
