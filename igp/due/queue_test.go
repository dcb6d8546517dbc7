package due

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"
)

func TestTheQueueIsAMapSortedByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	start := time.Unix(0, 0)
	q, reference := New(cmp.Compare[int]), map[int]time.Time{}
	now := start
	for range 20_000 {
		id := r.IntN(100)
		switch r.IntN(4) {
		case 0, 1:
			due := now.Add(time.Duration(r.IntN(100)))
			q.Set(id, due)
			reference[id] = due
		case 2:
			q.Drop(id)
			delete(reference, id)
		case 3:
			now = now.Add(time.Duration(r.IntN(10)))
			most := r.IntN(5)
			due := 0
			for _, at := range reference {
				if !at.After(now) {
					due++
				}
			}
			taken := q.Take(now, most)
			if len(taken) != min(due, most) {
				t.Fatalf("%d taken of %d that are due, at most %d", len(taken), due, most)
			}
			for i, id := range taken {
				if reference[id].After(now) || i > 0 && taken[i-1] >= id {
					t.Fatalf("%v taken", taken)
				}
				delete(reference, id)
			}
		}
		var first time.Time
		for _, at := range reference {
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
		if _, in := reference[id]; q.Has(id) != in {
			t.Fatalf("%d is in: %t", id, q.Has(id))
		}
		if q.Next() != first || q.Len() != len(reference) {
			t.Fatalf("next is %v of %d, want %v of %d", q.Next(), q.Len(), first, len(reference))
		}
	}
}
