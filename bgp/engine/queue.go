package engine

import "net/netip"

// queue keeps events until they are taken. GoBGP's own queue is unbounded, so it is emptied at once
// into this one, which doesn't grow with time, however long nobody takes: of each path it keeps the
// last event, of each session what still counts. A path's later event takes the place of an earlier
// one; where a change of the session or End-of-RIB of the same neighbour lies between them, it goes
// behind that. A session that came or went without a graceful restart makes everything before it void.
type queue struct {
	events    []Event // Kind zero: void
	void      int
	index     map[pathKey]int // where a path's event is
	barrier   map[netip.Addr]int
	eor       map[eorKey]bool // an End-of-RIB is there, and no state after it
	ready     chan struct{}
	coalesced uint64
}

// keepIndex is up to how many paths the index is kept for the next time.
const keepIndex = 1 << 14

type pathKey struct {
	peer   netip.Addr
	family Family
	rd     RD
	prefix netip.Prefix
	id     uint32
}

type eorKey struct {
	peer   netip.Addr
	family Family
}

func keyOf(ev *Event) pathKey {
	return pathKey{ev.Peer, ev.Family, ev.Path.RD, ev.Path.Prefix, ev.Path.PathID}
}

func newQueue() queue {
	return queue{
		index: map[pathKey]int{}, barrier: map[netip.Addr]int{}, eor: map[eorKey]bool{},
		ready: make(chan struct{}, 1),
	}
}

func (q *queue) add(ev Event) {
	switch ev.Kind {
	case EventPath:
		k := keyOf(&ev)
		if i, ok := q.index[k]; ok {
			q.coalesced++
			if i >= q.barrier[ev.Peer] {
				q.events[i] = ev
				return
			}
			q.drop(i)
		}
		q.index[k] = len(q.events)
	case EventEndOfRIB:
		// Only a change of the session makes paths stale, so a second one says nothing.
		k := eorKey{ev.Peer, ev.Family}
		if q.eor[k] {
			q.coalesced++
			return
		}
		q.eor[k] = true
		q.barrier[ev.Peer] = len(q.events) + 1
	default:
		if !ev.Keep {
			q.forget(ev.Peer)
		}
		for f := range q.eor {
			if f.peer == ev.Peer {
				delete(q.eor, f)
			}
		}
		q.barrier[ev.Peer] = len(q.events) + 1
	}
	q.events = append(q.events, ev)
	q.compact()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// drop makes an event void.
func (q *queue) drop(i int) {
	q.events[i] = Event{}
	q.void++
}

// forget drops every event of a peer.
func (q *queue) forget(peer netip.Addr) {
	for i := range q.events {
		ev := &q.events[i]
		if ev.Kind == 0 || ev.Peer != peer {
			continue
		}
		if ev.Kind == EventPath {
			delete(q.index, keyOf(ev))
			q.coalesced++
		}
		q.drop(i)
	}
}

// compact removes void events when they are most of all.
func (q *queue) compact() {
	if q.void < 1024 || q.void < len(q.events)/2 {
		return
	}
	at := make([]int, len(q.events)+1) // where each went
	kept := make([]Event, 0, len(q.events)-q.void)
	for i, ev := range q.events {
		at[i] = len(kept)
		if ev.Kind != 0 {
			kept = append(kept, ev)
		}
	}
	at[len(q.events)] = len(kept)
	for k, i := range q.index {
		q.index[k] = at[i]
	}
	for p, i := range q.barrier {
		q.barrier[p] = at[i]
	}
	q.events, q.void = kept, 0
}

func (q *queue) take() []Event {
	evs := q.events
	if q.void > 0 {
		evs = evs[:0]
		for _, ev := range q.events {
			if ev.Kind != 0 {
				evs = append(evs, ev)
			}
		}
	}
	q.events, q.void = nil, 0
	if len(q.index) > keepIndex {
		q.index = map[pathKey]int{} // a cleared map keeps its memory: 100 MiB after a full table
	} else {
		clear(q.index)
	}
	clear(q.barrier)
	clear(q.eor)
	return evs
}
