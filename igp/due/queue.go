// Package due holds keys with the times at which something is to be done about them, the earliest first: with
// 100,000 of them the next one is found without a look at the others.
//
// It is pure, with the time passed in, and not safe for concurrent use.
package due

import (
	"container/heap"
	"slices"
	"time"
)

// Queue is keys with times. Of keys with the same time the lower one is first.
type Queue[K comparable] struct{ keys tree[K] }

// New makes an empty queue of keys that have this order.
func New[K comparable](compare func(a, b K) int) *Queue[K] {
	return &Queue[K]{tree[K]{compare: compare, at: map[K]int{}}}
}

// Set puts a key in, or changes its time.
func (q *Queue[K]) Set(k K, due time.Time) {
	if i, ok := q.keys.at[k]; ok {
		q.keys.list[i].due = due
		heap.Fix(&q.keys, i)
		return
	}
	heap.Push(&q.keys, entry[K]{k, due})
}

// Drop takes a key out.
func (q *Queue[K]) Drop(k K) {
	if i, ok := q.keys.at[k]; ok {
		heap.Remove(&q.keys, i)
	}
}

// Has reports whether a key is in.
func (q *Queue[K]) Has(k K) bool {
	_, ok := q.keys.at[k]
	return ok
}

// Len is the number of keys.
func (q *Queue[K]) Len() int { return q.keys.Len() }

// Next is the earliest time; zero: the queue is empty.
func (q *Queue[K]) Next() time.Time {
	if q.Len() == 0 {
		return time.Time{}
	}
	return q.keys.list[0].due
}

// Take takes out what is due, at most so many, in the order of the keys.
func (q *Queue[K]) Take(now time.Time, most int) (list []K) {
	for len(list) < most && q.Len() > 0 && !q.Next().After(now) {
		list = append(list, heap.Pop(&q.keys).(entry[K]).key)
	}
	slices.SortFunc(list, q.keys.compare)
	return list
}
