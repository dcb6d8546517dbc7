package engine

import "net/netip"

// queue keeps events until they are taken. GoBGP's own queue is unbounded, so it is emptied at once
// into this one, which is bounded by the number of paths: a path event replaces an earlier one of the
// same path, as long as no change of a session lies between them.
type queue struct {
	events    []Event
	index     map[pathKey]int // where a path's event is, since the last event of another kind
	ready     chan struct{}
	coalesced uint64
}

type pathKey struct {
	peer   netip.Addr
	family Family
	rd     RD
	prefix netip.Prefix
	id     uint32
}

func keyOf(ev *Event) pathKey {
	return pathKey{ev.Peer, ev.Family, ev.Path.RD, ev.Path.Prefix, ev.Path.PathID}
}

func newQueue() queue {
	return queue{index: map[pathKey]int{}, ready: make(chan struct{}, 1)}
}

func (q *queue) add(ev Event) {
	if ev.Kind == EventPath {
		k := keyOf(&ev)
		if i, ok := q.index[k]; ok {
			q.events[i] = ev
			q.coalesced++
			return
		}
		q.index[k] = len(q.events)
	} else {
		clear(q.index)
	}
	q.events = append(q.events, ev)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) take() []Event {
	evs := q.events
	q.events = nil
	clear(q.index)
	return evs
}
