package daemon

import (
	"slices"
	"sync"
)

// linkBook finds what is open on a link. While one replaces another, both are there; the newer one counts.
type linkBook[T comparable] struct {
	mu   sync.Mutex
	open map[string][]T // by link, with its context
}

// opened books one; the function returned takes it out.
func (b *linkBook[T]) opened(link string, v T) (closed func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[string][]T{}
	}
	b.open[link] = append(b.open[link], v)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if i := slices.Index(b.open[link], v); i >= 0 {
			b.open[link] = slices.Delete(b.open[link], i, i+1)
		}
	}
}

// get returns what is open on a link; the zero value for nothing.
func (b *linkBook[T]) get(link string) (v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if all := b.open[link]; len(all) > 0 {
		v = all[len(all)-1]
	}
	return v
}
