package daemon

import "sync"

// contextBook numbers the contexts for the Source-QP map. A number is never given to another context, so that no flow
// of one is ever taken for a flow of another.
type contextBook struct {
	mu    sync.Mutex
	ids   map[string]uint32 // by name
	names map[uint32]string
}

func newContextBook() *contextBook {
	return &contextBook{ids: map[string]uint32{"": 0}, names: map[uint32]string{0: ""}}
}

// number gives the number of a context; false for one that the map never had.
func (b *contextBook) number(name string) (uint32, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.ids[name]
	return id, ok
}

// name gives the name of the context with a number.
func (b *contextBook) name(id uint32) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names[id]
}
