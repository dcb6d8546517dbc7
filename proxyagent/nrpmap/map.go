package nrpmap

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Map holds the entries. All methods may be called from several goroutines; Lookup never waits.
type Map struct {
	current atomic.Pointer[Snapshot]

	mu       sync.Mutex // held by writers
	max      int
	onChange func()
}

// Snapshot is the map at one version. It never changes.
type Snapshot struct {
	version uint64
	entries map[Key]Entry
}

// New makes an empty map of at most limit entries.
func New(limit int) *Map {
	m := &Map{max: limit}
	m.current.Store(&Snapshot{})
	return m
}

// OnChange sets a function that is called after each change of the map, before the method that made it returns. It is for who keeps
// copies of entries. f may call Lookup and Snapshot, and no other method. nil ends the calls.
func (m *Map) OnChange(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onChange = f
}

// store makes a snapshot the current one. The caller holds the lock.
func (m *Map) store(next *Snapshot) {
	changed := next.version != m.current.Load().version
	m.current.Store(next)
	if changed && m.onChange != nil {
		m.onChange()
	}
}

// Snapshot gives the map as it is now, without waiting.
func (m *Map) Snapshot() *Snapshot { return m.current.Load() }

// Lookup finds the entry for a notification: that of NRP, sender and receiver, which gives the Source QP, else
// that of the NRP alone, which gives the VPN. It neither waits nor allocates.
func (m *Map) Lookup(nrp uint32, sender, receiver netip.Addr) (Entry, bool) {
	s := m.current.Load()
	if e, ok := s.entries[Key{nrp, sender, receiver}]; ok {
		return e, true
	}
	e, ok := s.entries[Key{NRP: nrp}]
	return e, ok
}

// Version is the number of changes since the map was made.
func (s *Snapshot) Version() uint64 { return s.version }

// Len is the number of entries.
func (s *Snapshot) Len() int { return len(s.entries) }

// Entries lists the entries, sorted by NRP Selector ID, sender and receiver; that of a VPN comes first.
func (s *Snapshot) Entries() []Entry {
	return slices.SortedFunc(maps.Values(s.entries), func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.NRP, b.NRP), a.Sender.Compare(b.Sender), a.Receiver.Compare(b.Receiver))
	})
}

// Set adds or changes entries for the API, all or none, and returns them. An entry that says already what is
// asked keeps its version. Errors: a *FieldError, ErrConfigured or ErrFull, with the entry's place and key.
func (m *Map) Set(list []Mapping, now time.Time) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.begin()
	out := make([]Entry, 0, len(list))
	for i := range list {
		if err := list[i].validate(i); err != nil {
			return nil, err
		}
		if next.entries[list[i].Key].Configured {
			return nil, fmt.Errorf("mappings[%d]: %s: %w", i, list[i].Key, ErrConfigured)
		}
		out = append(out, next.put(list[i], false, now))
	}
	return out, m.commit(next)
}

// Delete removes an entry of the API. Errors: ErrConfigured and ErrNotFound, with the key.
func (m *Map) Delete(k Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.begin()
	switch e, ok := next.entries[k]; {
	case !ok:
		return fmt.Errorf("%s: %w", k, ErrNotFound)
	case e.Configured:
		return fmt.Errorf("%s: %w", k, ErrConfigured)
	}
	next.remove(k)
	return m.commit(next)
}

// Configure gives the map the entries of a configuration and its bound. Those of an earlier configuration that
// are not among them go; those of the API stay, but for keys that the configuration has. On an error, a
// *FieldError or ErrFull, nothing has changed.
func (m *Map) Configure(list []Mapping, limit int, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := m.configured(list, limit, now)
	if err != nil {
		return err
	}
	m.max = limit
	m.store(next)
	return nil
}

// Check gives the error that Configure would give now, and changes nothing.
func (m *Map) Check(list []Mapping, limit int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.configured(list, limit, time.Time{})
	return err
}

// configured is the snapshot that Configure makes. The caller holds the lock.
func (m *Map) configured(list []Mapping, limit int, now time.Time) (*Snapshot, error) {
	next, wanted := m.begin(), make(map[Key]bool, len(list))
	for i := range list {
		if err := list[i].validate(i); err != nil {
			return nil, err
		}
		wanted[list[i].Key] = true
		next.put(list[i], true, now)
	}
	for k, e := range next.entries {
		if e.Configured && !wanted[k] {
			next.remove(k)
		}
	}
	return next, next.fits(limit)
}

// begin copies the current snapshot, to be changed and committed. The caller holds the lock.
func (m *Map) begin() *Snapshot {
	old := m.current.Load()
	next := &Snapshot{version: old.version, entries: maps.Clone(old.entries)}
	if next.entries == nil {
		next.entries = map[Key]Entry{}
	}
	return next
}

func (m *Map) commit(next *Snapshot) error {
	if err := next.fits(m.max); err != nil {
		return err
	}
	m.store(next)
	return nil
}

func (s *Snapshot) fits(limit int) error {
	if n := len(s.entries); n > limit {
		return fmt.Errorf("%w: %d entries, at most %d", ErrFull, n, limit)
	}
	return nil
}

func (s *Snapshot) put(m Mapping, configured bool, now time.Time) Entry {
	old, ok := s.entries[m.Key]
	if ok && old.Mapping == m && old.Configured == configured {
		return old
	}
	s.version++
	e := Entry{Mapping: m, Configured: configured, Version: s.version, ChangedAt: now}
	s.entries[m.Key] = e
	return e
}

func (s *Snapshot) remove(k Key) {
	s.version++
	delete(s.entries, k)
}
