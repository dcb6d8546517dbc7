// Package lru is a table of a fixed number of entries in which the least recently used one makes room
// for a new one. It is for state kept per flow, per queue pair or per node on the packet path: its
// memory is bounded whoever fills it. It is not safe for concurrent use.
package lru

// Table maps keys to values. Values live in one array: a pointer to one is valid until the next call
// of Put.
type Table[K comparable, V any] struct {
	index   map[K]int32
	entries []entry[K, V] // entries[0] heads the ring of all entries, most recently used first
	max     int
	evicted uint64
}

type entry[K comparable, V any] struct {
	key        K
	value      V
	prev, next int32
}

// New returns a Table of at most limit entries, at least one. Memory grows with use.
func New[K comparable, V any](limit int) *Table[K, V] {
	return &Table[K, V]{
		index:   make(map[K]int32),
		entries: make([]entry[K, V], 1),
		max:     max(limit, 1),
	}
}

// Get gives the key's value and marks it as used; nil when there is none.
func (t *Table[K, V]) Get(key K) *V {
	i, ok := t.index[key]
	if !ok {
		return nil
	}
	t.unlink(i)
	t.pushFront(i)
	return &t.entries[i].value
}

// Put adds a zero value for a key that Get did not find, in the place of the least recently used one
// when the table is full.
func (t *Table[K, V]) Put(key K) *V {
	var i int32
	if len(t.index) < t.max {
		t.entries = append(t.entries, entry[K, V]{})
		i = int32(len(t.entries) - 1)
	} else {
		i = t.entries[0].prev
		delete(t.index, t.entries[i].key)
		t.unlink(i)
		t.evicted++
	}
	t.entries[i].key = key
	t.entries[i].value = *new(V)
	t.index[key] = i
	t.pushFront(i)
	return &t.entries[i].value
}

// Len is the number of entries.
func (t *Table[K, V]) Len() int { return len(t.index) }

// Evicted is the number of entries that made room for others.
func (t *Table[K, V]) Evicted() uint64 { return t.evicted }

// All calls fn for each entry, most recently used first, until it returns false. It does not mark
// them as used.
func (t *Table[K, V]) All(fn func(K, *V) bool) {
	for i := t.entries[0].next; i != 0; i = t.entries[i].next {
		if !fn(t.entries[i].key, &t.entries[i].value) {
			return
		}
	}
}

func (t *Table[K, V]) unlink(i int32) {
	e := &t.entries[i]
	t.entries[e.prev].next = e.next
	t.entries[e.next].prev = e.prev
}

func (t *Table[K, V]) pushFront(i int32) {
	e := &t.entries[i]
	e.prev, e.next = 0, t.entries[0].next
	t.entries[e.next].prev = i
	t.entries[0].next = i
}
