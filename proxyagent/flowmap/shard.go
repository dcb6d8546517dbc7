package flowmap

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"pncd/dataplane/roce"
)

// shard holds the address pairs that hash to it. Both directions of a pair are in one shard, so one lock
// covers a packet.
type shard struct {
	m  *Map
	mu sync.Mutex
	id uint8    // its place in the map
	_  [39]byte // keeps the locks of neighbours apart

	streams                      map[streamKey]*stream
	pairs                        map[pairKey]*addrPair
	pending                      exchangeList
	lru                          lruList
	spare                        *candidate // one dropped candidate, to be used again
	due                          []*stream  // what the tap must be told of; each once
	toSettle                     []*link    // what may be settled; each once
	peak                         int        // streams at most since the last shrink
	settledOldest, settledNewest uint32     // list of the settled pairs, by number + 1
	c                            Counters
	stale                        atomic.Int64 // when the least recently seen stream or settled pair was listed; 0 without any
}

// newPair makes the pair of two addresses.
func (sh *shard) newPair(key pairKey, src, dst netip.Addr) *addrPair {
	p := &addrPair{key: key}
	p.addr[0], p.addr[1] = src, dst
	if src.As16() != key.low {
		p.addr[0], p.addr[1] = dst, src
	}
	sh.pairs[key] = p
	if key.vlan != 0 {
		sh.m.tagged.Store(true)
	}
	return p
}

// unref drops one of the things that keep a pair.
func (sh *shard) unref(p *addrPair) {
	if p.refs--; p.refs == 0 {
		delete(sh.pairs, p.key)
	}
}

// streamTo finds or makes the stream of p to a QP on a side.
func (sh *shard) streamTo(p *addrPair, side uint8, qp uint32, t roce.Transport, at int64) *stream {
	k := p.key.streamKey(side, qp)
	if s := sh.streamAt(&k); s != nil {
		if s.transport != t {
			sh.changeTransport(s, t, at)
		}
		return s
	}
	s := &stream{pair: p, qp: qp, side: side, vlan: p.key.vlan, pos: -1, transport: t, lastAt: at}
	s.lastSeen.Store(at)
	p.refs++
	sh.streams[k] = s
	sh.peak = max(sh.peak, len(sh.streams))
	sh.lru.push(s, at)
	sh.noteStale()
	if supported(t) {
		sh.publish(s, StateUndecided, SourceNone, nil, at, "")
	} else {
		sh.publish(s, StateUnsupported, SourceNone, nil, at, t.String())
	}
	sh.m.addStream(s, k.flow)
	return s
}

// changeTransport begins a stream anew when its QP turns out to be of another transport.
func (sh *shard) changeTransport(s *stream, t roce.Transport, at int64) {
	if s.link != nil {
		sh.contradict(s.link, at, "the QP changed its transport")
	}
	s.pair.leave(s)
	sh.reset(s)
	s.transport, s.closedAt = t, 0
	if supported(t) {
		sh.publish(s, StateUndecided, SourceNone, nil, at, "the QP changed its transport")
	} else {
		sh.publish(s, StateUnsupported, SourceNone, nil, at, t.String())
	}
}

// supported says whether the Source QP of a transport's flows can be learned.
func supported(t roce.Transport) bool {
	return t == roce.TransportRC || t == roce.TransportUC || t == roce.TransportUD
}

// remove takes a stream out of the map, as state says.
func (sh *shard) remove(s *stream, state State, at int64) {
	sh.dropCandidates(s)
	s.pair.leave(s)
	s.gone = true
	sh.lru.remove(s)
	sh.noteStale()
	k := s.pair.key.streamKey(s.side, s.qp)
	delete(sh.streams, k)
	sh.m.removeStream(s, k.flow)
	sh.m.leaveTuple(s)
	if state == StateEvicted {
		sh.c.Evicted++
		sh.publish(s, StateEvicted, SourceNone, nil, at, "the map is full")
	}
	sh.unref(s.pair)
}
