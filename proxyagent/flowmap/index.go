package flowmap

import "time"

// psnIndex remembers the latest ackable requests of one direction of an address pair by PSN (rule 1). It
// is a ring with hash chains through it: an entry is forgotten by being overwritten.
type psnIndex struct {
	ring  []indexed
	heads []uint32 // by PSN: sequence number + 1 of the newest entry of a chain; 0 when there is none
	ports []uint32 // the same by PSN and UDP source port
	next  uint32   // sequence number of the next entry; its place in the ring is next modulo its length
	size  uint32   // entries in the ring

	shift   uint8  // only one PSN in 2^shift is indexed and votes
	changed uint32 // next when shift last changed
}

type indexed struct {
	stream *stream
	at     int64
	key    uint32 // the PSN, and the low 8 bits of the stream's epoch above it
	prev   uint32 // sequence number + 1 of the next older entry of the chain by PSN
	prevP  uint32 // and of that by PSN and port
}

const (
	indexStart   = 8
	indexPerFlow = 64  // entries a request stream may claim of the ring
	indexFew     = 512 // entries that few streams may have
	indexMax     = 1 << 16
	shiftMax     = 8
	// indexCover is how far back a full ring should reach: the longest round trips in a provider's network.
	indexCover = int64(25 * time.Millisecond)
	chainSteps = 64 // bounds the walk under traffic made to collide
)

func indexKey(psn uint32, epoch uint8) uint32 { return psn | uint32(epoch)<<24 }

func chainOf(psn uint32, n int) uint32 { return (psn * 0x9E3779B1) >> 8 & uint32(n-1) }

func portChainOf(psn uint32, port uint16, n int) uint32 {
	return ((psn^uint32(port)<<13)*0x9E3779B1 ^ uint32(port)) >> 7 & uint32(n-1)
}

// add remembers that s sent an ackable request with this PSN. The ring grows while it would forget
// entries younger than bound, up to its share of memory for the streams there are.
func (x *psnIndex) add(s *stream, psn uint32, at, bound int64, streams int) {
	if !x.samples(psn) {
		return
	}
	if len(x.ring) == 0 {
		x.resize(indexStart)
	} else if x.size == uint32(len(x.ring)) {
		x.fit(at-x.ring[x.next&uint32(len(x.ring)-1)].at, bound, streams)
	}
	x.push(indexed{stream: s, at: at, key: indexKey(psn, s.epoch)})
}

// fit fits a full ring to its traffic, when the entry that is about to be forgotten has this age. A ring that
// may not grow and forgets requests before their responses come back takes fewer PSNs instead, the same
// ones of all streams: then both requests and votes are a fair sample.
func (x *psnIndex) fit(age, bound int64, streams int) {
	n := len(x.ring)
	if age < bound && n < indexMax && n < max(indexFew, indexPerFlow*streams) {
		x.resize(2 * n)
		return
	}
	if x.next-x.changed < uint32(n) {
		return // it does not show the effect of the last change yet
	}
	cover := min(bound, indexCover)
	switch {
	case age < cover && x.shift < shiftMax:
		x.shift++
		x.changed = x.next
	case age > 8*cover && x.shift > 0:
		x.shift--
		x.changed = x.next
	}
}

// samples says whether this PSN is among those indexed, and so may vote.
func (x *psnIndex) samples(psn uint32) bool {
	return psn*0x85EBCA6B>>24&(1<<x.shift-1) == 0
}

func (x *psnIndex) push(e indexed) {
	n := uint32(len(x.ring))
	head := &x.heads[chainOf(e.key&psnMask, int(n))]
	headP := &x.ports[portChainOf(e.key&psnMask, e.stream.port, int(n))]
	e.prev, e.prevP = *head, *headP
	x.ring[x.next&(n-1)] = e
	x.next++
	*head, *headP = x.next, x.next
	if x.size < n {
		x.size++
	}
}

func (x *psnIndex) resize(n int) {
	old := *x
	*x = psnIndex{ring: make([]indexed, n), heads: make([]uint32, n), ports: make([]uint32, n), shift: old.shift}
	for i := uint32(0); i < old.size; i++ {
		x.push(old.ring[(old.next-old.size+i)&uint32(len(old.ring)-1)])
	}
}

// find returns in found[:n], newest first, the streams that sent this PSN within bound before at (or, because
// rings of several interfaces deliver out of order, at most the tap's reordering after it). Where more
// streams did than rule 1 considers, those with the given port follow in found[n:m].
func (x *psnIndex) find(psn uint32, port uint16, at, bound int64, found *matches) (n, m int) {
	full := false
	x.walk(psn, func(e *indexed) bool {
		lag := at - e.at
		if lag > bound || lag < -tapReordering || found.has(n, e.stream) {
			return true
		}
		if n == maxPerPSN {
			full = true
			return false
		}
		found[n] = match{e.stream, lag}
		n++
		return true
	})
	m = n
	if !full {
		return n, m
	}
	seq := x.ports[portChainOf(psn, port, len(x.ports))]
	for steps := 0; x.holds(seq) && steps < chainSteps && m < len(found); steps++ {
		e := &x.ring[(seq-1)&uint32(len(x.ring)-1)]
		seq = e.prevP
		lag := at - e.at
		if e.is(psn) && e.stream.port == port && lag <= bound && lag >= -tapReordering && !found.has(m, e.stream) {
			found[m] = match{e.stream, lag}
			m++
		}
	}
	return n, m
}

// matches has room for what rule 1 considers, and for a few more with the right port.
type matches [maxPerPSN + samePortSlots]match

func (f *matches) has(n int, s *stream) bool {
	for i := range n {
		if f[i].stream == s {
			return true
		}
	}
	return false
}

// lagOf returns how long before at the stream sent this PSN, when that is known and within bound.
func (x *psnIndex) lagOf(s *stream, psn uint32, at, bound int64) (lag int64, ok bool) {
	x.walk(psn, func(e *indexed) bool {
		if e.stream != s {
			return true
		}
		lag = at - e.at
		ok = lag >= 0 && lag <= bound
		return false
	})
	return lag, ok
}

type match struct {
	stream *stream
	lag    int64
}

// walk visits the entries with this PSN whose stream still is what it was, newest first.
func (x *psnIndex) walk(psn uint32, visit func(*indexed) bool) {
	n := len(x.ring)
	if n == 0 {
		return
	}
	seq := x.heads[chainOf(psn, n)]
	for steps := 0; x.holds(seq) && steps < chainSteps; steps++ {
		e := &x.ring[(seq-1)&uint32(n-1)]
		seq = e.prev
		if e.is(psn) && !visit(e) {
			return
		}
	}
}

// holds says whether the entry that a chain names was not overwritten yet.
func (x *psnIndex) holds(seq uint32) bool { return seq != 0 && x.next-(seq-1) <= x.size }

// is says whether the entry has this PSN, and its stream still is what it was.
func (e *indexed) is(psn uint32) bool {
	return e.key&psnMask == psn && uint8(e.key>>24) == e.stream.epoch && !e.stream.gone
}
