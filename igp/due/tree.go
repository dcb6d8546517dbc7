package due

import "time"

// tree is what package heap keeps in order.
type tree[K comparable] struct {
	compare func(a, b K) int
	list    []entry[K]
	at      map[K]int // index in list
}

type entry[K comparable] struct {
	key K
	due time.Time
}

func (t *tree[K]) Len() int { return len(t.list) }

func (t *tree[K]) Less(i, j int) bool {
	a, b := &t.list[i], &t.list[j]
	if c := a.due.Compare(b.due); c != 0 {
		return c < 0
	}
	return t.compare(a.key, b.key) < 0
}

func (t *tree[K]) Swap(i, j int) {
	t.list[i], t.list[j] = t.list[j], t.list[i]
	t.at[t.list[i].key], t.at[t.list[j].key] = i, j
}

func (t *tree[K]) Push(x any) {
	e := x.(entry[K])
	t.at[e.key] = len(t.list)
	t.list = append(t.list, e)
}

func (t *tree[K]) Pop() any {
	last := len(t.list) - 1
	e := t.list[last]
	t.list = t.list[:last]
	delete(t.at, e.key)
	return e
}
