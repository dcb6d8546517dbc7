package flowmap

import (
	"sync"
	"sync/atomic"
)

// A settled pair in doubt stays settled: a flag holds its answer back, and its next packet makes a link of two streams of
// it, which is in doubt since then. The tap must show that packet, and so it is told to watch the flows of such pairs;
// of some each second, for all at once would be all streams at once.

// gapDetail is the detail of what Doubt holds back.
const gapDetail = "the tap missed traffic"

// questionsPerTick is of how many directions in doubt the tap is told between two Ticks, and so of how many a second a doubt makes
// streams, of some 700 octets. Those that wait longer than idleReset are learned anew.
const questionsPerTick = 1 << 15

// questions are what the tap must be told of settled pairs in doubt: it is told of all that are found in a round through the
// store, from where the last one ended.
type questions struct {
	open    atomic.Bool // the round is not over
	mu      sync.Mutex
	next    settledRef // to look at
	todo    uint32     // directions to look at until the round is over
	left    int        // directions that may be told until the next Tick
	perTick int        // tests ask less
}

// doubtSettled holds the answers of the shard's settled pairs back.
func (sh *shard) doubtSettled(at int64) {
	st := &sh.m.settled
	detail := uint32(0)
	for e, ok := sh.oldestSettled(); ok; {
		if detail == 0 {
			detail = st.detailNumber(gapDetail)
		}
		sh.m.doubtPair(e, at, detail)
		n := st.at(e).newer
		e, ok = settledRef(n-1)<<1, n != 0
	}
}

// doubtPair does so for one. The caller holds its shard's lock. The flag is first: a look-up may find it with the version before.
func (m *Map) doubtPair(e settledRef, at int64, detail uint32) {
	st := &m.settled
	r := st.at(e)
	if r.qps.Or(settledDoubted)&settledDoubted != 0 {
		return
	}
	m.known.Add(-2)
	first := m.version.Add(2) - 1
	r.version.Store(first&(1<<settledVersionBits-1) | 1<<settledVersionBits)
	r.changed.Store(st.tick(at))
	r.extra.Store(r.extra.Load()&(1<<settledDetailShift-1) | detail<<settledDetailShift)
	m.settledChanged(e)
	if !m.watching() {
		return
	}
	for side := range uint8(2) {
		if k, ok := r.key(side); ok {
			entry, _ := st.look(r, side, k, at, m.ageAfter.Load())
			m.tell(entry)
		}
	}
}

// doubtFrom remembers when the settled pairs that are in doubt from now on are so.
func (st *settledStore) doubtFrom(at int64) {
	if st.tick(at) != st.tick(st.doubtAt.Load()) {
		st.doubtAt.Store(at)
	}
}

// doubtedAt is since when a pair is in doubt, to a tick or better and never too late.
func (st *settledStore) doubtedAt(r *settledPair) int64 {
	tick, last := r.changed.Load(), st.doubtAt.Load()
	if st.tick(last) == tick {
		return last
	}
	return st.time(tick)
}

// ask begins a round.
func (st *settledStore) ask() {
	q, all := &st.questions, st.directions()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo, q.left = all, q.perTick
	q.open.Store(all > 0)
}

// askMore lets the round go on.
func (st *settledStore) askMore() {
	q := &st.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left = q.perTick
}

// tellings appends what the tap must be told of pairs in doubt to list, up to its capacity.
func (st *settledStore) tellings(list []Telling) []Telling {
	q := &st.questions
	if !q.open.Load() {
		return list
	}
	all := settledRef(st.directions())
	q.mu.Lock()
	defer q.mu.Unlock()
	for ; q.todo > 0 && q.left > 0 && len(list) < cap(list); q.todo-- {
		if q.next >= all {
			q.next = 0
		}
		if f, ok := st.doubtedFlow(q.next); ok {
			list = append(list, Telling{f, Watched})
			q.left--
		}
		q.next++
	}
	q.open.Store(q.todo > 0)
	return list
}

// directions is how many there were at most, and so where references end.
func (st *settledStore) directions() uint32 {
	st.mu.Lock()
	defer st.mu.Unlock()
	return 2 * st.used
}

// doubtedFlow is the tap's flow of a direction that is in doubt. It needs no lock.
func (st *settledStore) doubtedFlow(e settledRef) (FlowID, bool) {
	r := st.at(e)
	seq := r.seq.Load()
	if seq&1 != 0 || !r.doubted() {
		return FlowID{}, false
	}
	f := r.flowID(e.side())
	return f, r.seq.Load() == seq
}
