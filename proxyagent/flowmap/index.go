package flowmap

// psnIndex remembers the latest ackable requests of one direction of an address pair by PSN (rule 1). It
// is a ring with hash chains through it: an entry is forgotten by being overwritten.
type psnIndex struct {
	ring  []indexed
	heads []uint32 // sequence number + 1 of the newest entry of a chain; 0 when there is none
	next  uint32   // sequence number of the next entry; its place in the ring is next modulo its length
	size  uint32   // entries in the ring
}

type indexed struct {
	stream *stream
	at     int64
	key    uint32 // the PSN, and the low 8 bits of the stream's epoch above it
	prev   uint32 // sequence number + 1 of the next older entry of the chain
}

const (
	indexStart   = 8
	indexPerFlow = 64 // entries a request stream may claim of the ring
	indexMax     = 1 << 16
	chainSteps   = 64 // bounds the walk under traffic made to collide
)

func indexKey(psn uint32, epoch uint8) uint32 { return psn | uint32(epoch)<<24 }

func chainOf(psn uint32, n int) uint32 { return (psn * 0x9E3779B1) >> 8 & uint32(n-1) }

// add remembers that s sent an ackable request with this PSN. The ring grows while it would forget
// entries younger than bound, up to its share of memory for the streams there are.
func (x *psnIndex) add(s *stream, psn uint32, at, bound int64, streams int) {
	if n := len(x.ring); n == 0 {
		x.resize(indexStart)
	} else if x.size == uint32(n) && n < indexMax && n < indexPerFlow*streams {
		if oldest := &x.ring[x.next&uint32(n-1)]; at-oldest.at < bound {
			x.resize(2 * n)
		}
	}
	x.push(indexed{stream: s, at: at, key: indexKey(psn, s.epoch)})
}

func (x *psnIndex) push(e indexed) {
	n := uint32(len(x.ring))
	head := &x.heads[chainOf(e.key&psnMask, int(n))]
	e.prev = *head
	x.ring[x.next&(n-1)] = e
	x.next++
	*head = x.next
	if x.size < n {
		x.size++
	}
}

func (x *psnIndex) resize(n int) {
	old := *x
	*x = psnIndex{ring: make([]indexed, n), heads: make([]uint32, n)}
	for i := uint32(0); i < old.size; i++ {
		x.push(old.ring[(old.next-old.size+i)&uint32(len(old.ring)-1)])
	}
}

// find returns, newest first, the streams that sent this PSN within bound before at (or, because rings
// of several interfaces deliver out of order, at most the tap's reordering after it).
func (x *psnIndex) find(psn uint32, at, bound int64, found *[maxPerPSN]match) int {
	n := 0
	x.walk(psn, func(e *indexed) bool {
		lag := at - e.at
		if lag > bound || lag < -tapReordering {
			return true
		}
		for i := range n {
			if found[i].stream == e.stream {
				return true
			}
		}
		found[n] = match{e.stream, lag}
		n++
		return n < maxPerPSN
	})
	return n
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
	for steps := 0; seq != 0 && x.next-(seq-1) <= x.size && steps < chainSteps; steps++ {
		e := &x.ring[(seq-1)&uint32(n-1)]
		if e.key&psnMask == psn && uint8(e.key>>24) == e.stream.epoch && !e.stream.gone {
			if !visit(e) {
				return
			}
		}
		seq = e.prev
	}
}
