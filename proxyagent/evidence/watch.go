package evidence

import (
	"context"
	"slices"
	"sync/atomic"
)

// Watcher gives records as they are made. One goroutine may call Next; Close may be called by any,
// more than once.
type Watcher struct {
	recorder *Recorder
	filter   Filter
	queue    chan Record
	dropped  atomic.Uint64 // since the last record given

	history []Record
	seen    map[uint64]struct{} // sequences given from history: they may come again from the queue
	closed  chan struct{}
	done    atomic.Bool
}

// Watch returns a Watcher of the records that match, from now on; with history it first gives those
// that the ring holds. The caller closes it. Records that arrive while its queue of DefaultWatchQueue
// is full are dropped and counted.
func (r *Recorder) Watch(f Filter, history bool) *Watcher {
	w := &Watcher{
		recorder: r, filter: f,
		queue:  make(chan Record, DefaultWatchQueue),
		closed: make(chan struct{}),
	}
	r.mu.Lock()
	next := append(slices.Clone(*r.watchers.Load()), w)
	r.watchers.Store(&next)
	r.mu.Unlock()
	if history {
		// Only now, so that nothing falls between history and queue.
		w.history = r.List(f, len(r.ring.slots))
		w.seen = make(map[uint64]struct{}, len(w.history))
		for i := range w.history {
			w.seen[w.history[i].Sequence] = struct{}{}
		}
	}
	return w
}

// offer hands over a record or counts it as dropped; it never waits.
func (w *Watcher) offer(rec *Record) {
	if !w.filter.Match(rec) {
		return
	}
	select {
	case w.queue <- *rec:
	default:
		w.dropped.Add(1)
	}
}

// Next waits for the next record. It also gives the number of matching records dropped since the one
// before because this reader was too slow. It fails with the context's error, or with ErrClosed.
func (w *Watcher) Next(ctx context.Context) (rec Record, dropped uint64, err error) {
	if len(w.history) > 0 {
		rec, w.history = w.history[0], w.history[1:]
		return rec, 0, nil
	}
	for {
		select {
		case <-ctx.Done():
			return Record{}, 0, ctx.Err()
		case <-w.closed:
			return Record{}, 0, ErrClosed
		case rec = <-w.queue:
			if _, again := w.seen[rec.Sequence]; again {
				delete(w.seen, rec.Sequence)
				continue
			}
			return rec, w.dropped.Swap(0), nil
		}
	}
}

// Close ends the watch and a Next that waits.
func (w *Watcher) Close() {
	if w.done.Swap(true) {
		return
	}
	close(w.closed)
	r := w.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(*r.watchers.Load()), func(x *Watcher) bool { return x == w })
	r.watchers.Store(&next)
}
