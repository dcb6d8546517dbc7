package flooding

import (
	"container/heap"
	"slices"
	"time"

	"pncd/igp/isis/packet"
)

// queue holds LSPs with the times at which they are to be sent, the earliest first: with 100,000 of them the
// next one is found without a look at the others.
type queue struct {
	list []queued
	at   map[packet.LSPID]int // index in list
}

type queued struct {
	id  packet.LSPID
	due time.Time
}

func newQueue() *queue { return &queue{at: map[packet.LSPID]int{}} }

// set puts an LSP in, or changes its time.
func (q *queue) set(id packet.LSPID, due time.Time) {
	if i, ok := q.at[id]; ok {
		q.list[i].due = due
		heap.Fix(q, i)
		return
	}
	heap.Push(q, queued{id, due})
}

// drop takes an LSP out.
func (q *queue) drop(id packet.LSPID) {
	if i, ok := q.at[id]; ok {
		heap.Remove(q, i)
	}
}

// next is the earliest time; zero: the queue is empty.
func (q *queue) next() time.Time {
	if len(q.list) == 0 {
		return time.Time{}
	}
	return q.list[0].due
}

// take takes out what is due, at most so many, in the order of LSP IDs.
func (q *queue) take(now time.Time, most int) (ids []packet.LSPID) {
	for len(ids) < most && len(q.list) > 0 && !q.list[0].due.After(now) {
		ids = append(ids, heap.Pop(q).(queued).id)
	}
	slices.SortFunc(ids, packet.LSPID.Compare)
	return ids
}

// Len, Less, Swap, Push and Pop are for package heap.
func (q *queue) Len() int { return len(q.list) }

func (q *queue) Less(i, j int) bool {
	a, b := &q.list[i], &q.list[j]
	if c := a.due.Compare(b.due); c != 0 {
		return c < 0
	}
	return a.id.Compare(b.id) < 0
}

func (q *queue) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.at[q.list[i].id], q.at[q.list[j].id] = i, j
}

func (q *queue) Push(x any) {
	v := x.(queued)
	q.at[v.id] = len(q.list)
	q.list = append(q.list, v)
}

func (q *queue) Pop() any {
	last := len(q.list) - 1
	v := q.list[last]
	q.list = q.list[:last]
	delete(q.at, v.id)
	return v
}
