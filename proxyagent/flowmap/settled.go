package flowmap

import (
	"sync"
	"sync/atomic"
	"time"
)

// A pair that is decided, and that a tap follows, is kept as a settled pair: a record of both directions in a few
// words, instead of two streams with all that deciding needs. A packet that may end its answer makes it a link
// of two streams again.
//
// settledPair is one of them, 64 octets. Look-ups read it without a lock: seq is odd while it is free or filled, and what was
// read counts when seq has not changed meanwhile. By side, as always, is by the side that packets go to.
type settledPair struct {
	pair    atomic.Pointer[addrPair]
	qps     atomic.Uint64    // Destination QPs by side, 24 bits each, Source, flags, and votes
	meta    atomic.Uint64    // P_Keys and UDP source ports by side, 16 bits each
	seen    [2]atomic.Uint32 // by side, in ticks
	learned atomic.Uint32    // in ticks
	changed atomic.Uint32    // in ticks
	version atomic.Uint64    // of side 0, and by how much that of side 1 is higher
	extra   atomic.Uint32    // VLANs that the tap saw, 12 bits each by side, and the number of the detail
	seq     atomic.Uint32

	older, newer uint32 // in the shard's list, as its number + 1; newer: the next free one. Guarded by the shard's lock
}

// The layout of a settledPair's words.
const (
	settledQPBits      = 24
	settledSourceShift = 48 // of the Source, 3 bits
	settledRevoked     = 1 << 51
	settledSeen        = 1 << 52 // and the next bit: data of the side was seen
	settledDoubted     = 1 << 54
	settledVotesShift  = 55
	settledVotesMax    = 1<<9 - 1 // so many or more
	settledVersionBits = 40
	settledVLANBits    = 12
	settledDetailShift = 24
)

// settledTick is the precision of a settled pair's times, in nanoseconds: 32 bits of them are nine years.
const settledTick = 1 << 26

func (r *settledPair) qp(side uint8) uint32 {
	return uint32(r.qps.Load()>>(settledQPBits*side)) & qpMask
}

func (r *settledPair) pkey(side uint8) uint16 { return uint16(r.meta.Load() >> (16 * side)) }
func (r *settledPair) port(side uint8) uint16 { return uint16(r.meta.Load() >> (32 + 16*side)) }

func (r *settledPair) tapVLAN(side uint8) uint16 {
	return uint16(r.extra.Load()>>(settledVLANBits*side)) & vlanMask
}

func (r *settledPair) votes() uint32  { return uint32(r.qps.Load() >> settledVotesShift) }
func (r *settledPair) source() Source { return Source(r.qps.Load() >> settledSourceShift & 7) }
func (r *settledPair) revoked() bool  { return r.qps.Load()&settledRevoked != 0 }
func (r *settledPair) doubted() bool  { return r.qps.Load()&settledDoubted != 0 }

func (r *settledPair) versionOf(side uint8) uint64 {
	v := r.version.Load()
	return v&(1<<settledVersionBits-1) + uint64(side)*(v>>settledVersionBits)
}

// settledStore holds the settled pairs of a map, in slabs that never move, and finds them by receiver and QP.
type settledStore struct {
	epoch atomic.Int64 // unix nanoseconds of tick 0, a month before the first pair was learned
	count atomic.Int64 // pairs
	slabs atomic.Pointer[[]*settledSlab]
	index [shardCount]settledIndex

	doubtAt   atomic.Int64 // of the last Doubt, the first in its tick; unix nanoseconds
	questions questions

	mu      sync.Mutex // guards what follows
	free    uint32     // the first free pair, as its number + 1
	used    uint32     // pairs in the slabs that were ever used
	details atomic.Pointer[[]string]
}

// settledSlabLen makes slabs of 32 KiB, which the heap gives whole pages: each pair is a cache line.
const settledSlabLen = 512

type settledSlab [settledSlabLen]settledPair

// settledRef names one direction of a settled pair: its number and the side that packets go to.
type settledRef uint32

func (e settledRef) side() uint8 { return uint8(e & 1) }

func (st *settledStore) at(e settledRef) *settledPair {
	n := uint32(e >> 1)
	return &(*st.slabs.Load())[n/settledSlabLen][n%settledSlabLen]
}

// take returns a free pair, whose seq is odd, for one learned at a time; false when there are as many as references
// can name.
func (st *settledStore) take(learned int64) (settledRef, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.epoch.Load() == 0 {
		st.epoch.Store(learned - int64(30*24*time.Hour))
	}
	if st.free != 0 {
		e := settledRef(st.free-1) << 1
		st.free = st.at(e).newer
		return e, true
	}
	if st.used >= settledMax {
		return 0, false
	}
	var slabs []*settledSlab
	if p := st.slabs.Load(); p != nil {
		slabs = *p
	}
	if int(st.used) == settledSlabLen*len(slabs) {
		slab := new(settledSlab)
		for i := range slab {
			slab[i].seq.Store(1)
		}
		grown := append(slabs[:len(slabs):len(slabs)], slab)
		st.slabs.Store(&grown)
	}
	st.used++
	return settledRef(st.used-1) << 1, true
}

// give takes a pair back, whose seq the caller has made odd.
func (st *settledStore) give(e settledRef) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.at(e)
	r.newer = st.free
	st.free = uint32(e>>1) + 1
}

func (st *settledStore) tick(at int64) uint32 {
	return uint32(max(at-st.epoch.Load(), 0) / settledTick)
}
func (st *settledStore) time(tick uint32) int64 { return st.epoch.Load() + int64(tick)*settledTick }

// detailNumber is the number of one of the few texts that settled pairs have. 0 is none of them.
func (st *settledStore) detailNumber(text string) uint32 {
	st.mu.Lock()
	defer st.mu.Unlock()
	var list []string
	if p := st.details.Load(); p != nil {
		list = *p
	}
	for i, s := range list {
		if s == text {
			return uint32(i) + 1
		}
	}
	if len(list) == 255 {
		return 0
	}
	grown := append(list[:len(list):len(list)], text)
	st.details.Store(&grown)
	return uint32(len(grown))
}

func (st *settledStore) detail(n uint32) string {
	if n == 0 {
		return "settled"
	}
	return (*st.details.Load())[n-1]
}

// seenAt is when a packet of either direction was last seen, to a tick.
func (st *settledStore) seenAt(r *settledPair) int64 {
	return st.time(max(r.seen[0].Load(), r.seen[1].Load()))
}

// is says whether the direction e is that of a flow, and the pair settled at all. It needs no lock.
func (r *settledPair) is(side uint8, k *flowKey) bool {
	if !r.goesTo(side, k.receiver, k.context, k.destQP) {
		return false
	}
	p := r.pair.Load()
	return p != nil && *p.key.side(1 - side) == k.sender
}

// goesTo says whether packets to a side of the pair go to this QP.
func (r *settledPair) goesTo(side uint8, receiver [16]byte, context, qp uint32) bool {
	p := r.pair.Load()
	return p != nil && r.qp(side) == qp && p.key.context == context && *p.key.side(side) == receiver
}

// key is a direction's key; false when the pair is free.
func (r *settledPair) key(side uint8) (Key, bool) {
	seq := r.seq.Load()
	p := r.pair.Load()
	if seq&1 != 0 || p == nil {
		return Key{}, false
	}
	k := Key{Context: p.key.context, Sender: p.addr[1-side], Receiver: p.addr[side], DestQP: r.qp(side)}
	return k, r.seq.Load() == seq
}
