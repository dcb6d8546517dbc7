package engine

import (
	"net/netip"
	"slices"
)

// queue keeps events until they are taken. GoBGP's own queue is unbounded, so it is emptied at once
// into this one, which doesn't grow with time, however long nobody takes: of each path it keeps the
// last event, of each session what still counts. A path's later event takes the place of an earlier
// one; where a change of the session or End-of-RIB of the same neighbour lies between them, it goes
// behind that. A session that came or went without a graceful restart makes everything before it void.
type queue struct {
	events    []Event // Kind zero: void
	given     []Event // what take gave last, to be used again
	void      int
	peers     map[netip.Addr]*queuePeer
	last      *queuePeer // that of the last event: most come in rows
	ready     chan struct{}
	coalesced uint64
}

// queuePeer is what there is of one neighbour.
type queuePeer struct {
	addr    netip.Addr
	index   map[pathKey]int // where a path's event is
	barrier int             // behind the last event that paths must not get in front of
	eor     map[Family]bool // an End-of-RIB is there, and no state after it
}

const (
	keepIndex  = 1 << 14 // up to how many paths an index is kept for the next time
	keepEvents = 1 << 13 // and the memory of how many events
	keepPeers  = 1 << 8  // and of how many neighbours
)

// pathKey says which path of a neighbour. It has no pointer, as there may be many.
type pathKey struct {
	addr   [16]byte // of the prefix
	rd     RD
	id     uint32
	bits   uint8
	family Family
	v6     bool // of the prefix; families that are not known have both
}

func keyOf(ev *Event) pathKey {
	a := ev.Path.Prefix.Addr()
	return pathKey{a.As16(), ev.Path.RD, ev.Path.PathID, uint8(ev.Path.Prefix.Bits()), ev.Family, a.Is6()}
}

func newQueue() queue {
	return queue{peers: map[netip.Addr]*queuePeer{}, ready: make(chan struct{}, 1)}
}

func (q *queue) peer(a netip.Addr) *queuePeer {
	if q.last != nil && q.last.addr == a {
		return q.last
	}
	p := q.peers[a]
	if p == nil {
		p = &queuePeer{addr: a, index: map[pathKey]int{}, eor: map[Family]bool{}}
		q.peers[a] = p
	}
	q.last = p
	return p
}

func (q *queue) add(ev *Event) {
	p := q.peer(ev.Peer)
	switch ev.Kind {
	case EventPath:
		k := keyOf(ev)
		if i, ok := p.index[k]; ok {
			q.coalesced++
			if i >= p.barrier {
				q.events[i] = *ev
				return
			}
			q.drop(i)
		}
		p.index[k] = len(q.events)
	case EventEndOfRIB:
		// Only a change of the session makes paths stale, so a second one says nothing.
		if p.eor[ev.Family] {
			q.coalesced++
			return
		}
		p.eor[ev.Family] = true
		p.barrier = len(q.events) + 1
	default:
		if !ev.Keep {
			q.forget(p)
		}
		clear(p.eor)
		p.barrier = len(q.events) + 1
	}
	q.events = append(q.events, *ev)
	q.compact()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) len() int { return len(q.events) - q.void }

// drop makes an event void.
func (q *queue) drop(i int) {
	q.events[i] = Event{}
	q.void++
}

// forget drops every event of a peer.
func (q *queue) forget(p *queuePeer) {
	for i := range q.events {
		ev := &q.events[i]
		if ev.Kind == 0 || ev.Peer != p.addr {
			continue
		}
		if ev.Kind == EventPath {
			q.coalesced++
		}
		q.drop(i)
	}
	p.clear()
}

func (p *queuePeer) clear() {
	if len(p.index) > keepIndex {
		p.index = map[pathKey]int{} // a cleared map keeps its memory: 100 MiB after a full table
	} else {
		clear(p.index)
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
	for _, p := range q.peers {
		for k, i := range p.index {
			p.index[k] = at[i]
		}
		p.barrier = at[p.barrier]
	}
	q.events, q.void = kept, 0
}

// take gives what is there, which is valid until it is called again.
func (q *queue) take() []Event {
	evs := q.events
	if q.void > 0 {
		evs = slices.DeleteFunc(evs, func(ev Event) bool { return ev.Kind == 0 })
	}
	clear(q.given) // what it points to is used no more
	q.events, q.void, q.given = q.given[:0], 0, nil
	if cap(evs) <= keepEvents {
		q.given = evs
	}
	if len(q.peers) > keepPeers {
		q.peers, q.last = map[netip.Addr]*queuePeer{}, nil
	}
	for _, p := range q.peers {
		p.clear()
		p.barrier = 0
		clear(p.eor)
	}
	return evs
}
