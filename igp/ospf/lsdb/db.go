// Package lsdb is the link state database of OSPF (RFC 2328 section 12.2, RFC 5340 section 4.1.1) for one flooding
// scope: a link, an area or the whole domain. LSAs are kept as the octets that arrived, their age grows, and
// those that reach MaxAge are told.
//
// It is pure, with the time passed in, and does not flood: which instance is taken, and what follows from it,
// is decided elsewhere.
package lsdb

import (
	"bytes"
	"container/heap"
	"errors"
	"iter"
	"maps"
	"time"

	"pncd/igp/ospf/packet"
)

// DefaultMaxLSAs bounds a database, so that a flood of link state IDs can't take all memory.
const DefaultMaxLSAs = 1 << 17

// A database holds at most octetsPerLSA for each LSA that it may have, and leastOctets however few these are: an LSA
// may have 65,535 octets, and is far from it in networks that somebody built.
const (
	octetsPerLSA = 1 << 10
	leastOctets  = 1 << 20
)

// ErrFull is given for an LSA that there is no room for.
var ErrFull = errors.New("ospf: the database holds as many LSAs, or octets of them, as it may")

// Entry is one LSA of the database. It is replaced when another instance comes, and nobody but the database changes
// it, except for Sent.
type Entry struct {
	packet.LSA
	Installed time.Time // when the instance was stored
	Sent      time.Time // when the update process sent it last, which keeps it
	at        int       // index in the heap of ages; -1 when it does not grow, or was told
}

// Age is the LSA's age now, in seconds, at most MaxAge.
func (e *Entry) Age(now time.Time) uint16 {
	age := e.AgeSeconds()
	if e.Header.Age&packet.DoNotAge != 0 && age < packet.MaxAge {
		return age
	}
	grown := int64(age) + int64(max(now.Sub(e.Installed), 0)/time.Second)
	return uint16(min(grown, packet.MaxAge))
}

// HeaderNow is the entry's header with the age that it has now, as descriptions and acknowledgments name it.
func (e *Entry) HeaderNow(now time.Time) packet.Header {
	h := e.Header
	h.Age = e.Age(now) | h.Age&packet.DoNotAge
	return h
}

// AppendTo writes the LSA as it is to be sent over a link with a transmission delay, in seconds: its age
// grows by that (RFC 2328 section 13.3).
func (e *Entry) AppendTo(dst []byte, now time.Time, delay uint16) []byte {
	age := min(e.Age(now)+delay, packet.MaxAge)
	if age < packet.MaxAge {
		age |= e.Header.Age & packet.DoNotAge
	}
	return e.LSA.Append(dst, age)
}

// maxAgeAt is when the entry reaches MaxAge; zero when it never does.
func (e *Entry) maxAgeAt() time.Time {
	if e.Header.Age&packet.DoNotAge != 0 && e.AgeSeconds() < packet.MaxAge {
		return time.Time{}
	}
	return e.Installed.Add(time.Duration(packet.MaxAge-e.AgeSeconds()) * time.Second)
}

// DB is the database of one flooding scope. It is not safe for concurrent use.
type DB struct {
	limit   int
	octets  int // of all LSAs
	entries map[packet.Key]*Entry
	all     index
	routers map[packet.ID]*index // by advertising router
	ages    ageHeap
}

// New makes an empty database for at most so many LSAs, 0 is DefaultMaxLSAs, of 1 KiB each on average.
func New(limit int) *DB {
	if limit == 0 {
		limit = DefaultMaxLSAs
	}
	return &DB{limit: limit, entries: map[packet.Key]*Entry{}, routers: map[packet.ID]*index{}}
}

// Get gives an LSA; nil when there is none.
func (d *DB) Get(k packet.Key) *Entry { return d.entries[k] }

// Len is the number of LSAs.
func (d *DB) Len() int { return len(d.entries) }

// Limit is how many LSAs there may be, but for those that are forced in.
func (d *DB) Limit() int { return d.limit }

// All iterates over the LSAs in the order of their keys. The database must not change meanwhile. The first call
// after LSAs came or went puts them in order: O(n log n) at worst.
func (d *DB) All() iter.Seq[*Entry] { return d.list(&d.all) }

// ByRouter iterates over the LSAs of one advertising router as All does, without a look at the others.
func (d *DB) ByRouter(adv packet.ID) iter.Seq[*Entry] {
	x := d.routers[adv]
	if x == nil {
		x = &index{}
	}
	return d.list(x)
}

func (d *DB) list(x *index) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, k := range x.sorted(d.entries) {
			if !yield(d.entries[k]) {
				return
			}
		}
	}
}

// Routers gives the advertising routers that the database has LSAs of, in no order.
func (d *DB) Routers() iter.Seq[packet.ID] { return maps.Keys(d.routers) }

// Change says what an instance that is stored means for those who read the database.
type Change uint8

// The changes (RFC 2328 section 13.2).
const (
	Refreshed Change = iota // the contents are as they were
	Changed                 // the contents, or whether it counts, are new
	Added                   // there was none
)

// Install stores an instance in place of the one that is there. The octets are copied. With force it is
// stored beyond the limits, too: for own LSAs.
func (d *DB) Install(now time.Time, l packet.LSA, force bool) (*Entry, Change, error) {
	old, grows := d.entries[l.Key], len(l.Raw)
	if old != nil {
		grows -= len(old.Raw)
	}
	if !force && (old == nil && len(d.entries) >= d.limit || grows > 0 && d.octets+grows > max(d.limit*octetsPerLSA, leastOctets)) {
		return nil, 0, ErrFull
	}
	d.octets += grows
	l.Raw = bytes.Clone(l.Raw)
	e := &Entry{LSA: l, Installed: now, at: -1}
	change := Added
	if old != nil {
		change = compare(old, e)
		d.unschedule(old)
	} else {
		d.all.add(l.Key)
		if d.routers[l.Adv] == nil {
			d.routers[l.Adv] = &index{}
		}
		d.routers[l.Adv].add(l.Key)
	}
	d.entries[l.Key] = e
	if !e.maxAgeAt().IsZero() {
		heap.Push(&d.ages, e)
	}
	return e, change, nil
}

// compare applies RFC 2328 section 13.2: the options, whether the age is MaxAge, the length and the body count. The
// age is that of the header: one that has grown to MaxAge here counted all the same until it is flushed, and its
// flush is the change that readers are told of.
func compare(old, e *Entry) Change {
	gone := func(e *Entry) bool { return e.AgeSeconds() == packet.MaxAge }
	if old.Options != e.Options || gone(old) != gone(e) || !bytes.Equal(old.Body(), e.Body()) {
		return Changed
	}
	return Refreshed
}

// Remove forgets an LSA. It reports whether there was one.
func (d *DB) Remove(k packet.Key) bool {
	e := d.entries[k]
	if e == nil {
		return false
	}
	d.unschedule(e)
	d.octets -= len(e.Raw)
	delete(d.entries, k)
	d.all.remove(d.entries)
	if x := d.routers[k.Adv]; x != nil {
		if x.remove(d.entries); x.live == 0 {
			delete(d.routers, k.Adv)
		}
	}
	return true
}

func (d *DB) unschedule(e *Entry) {
	if e.at >= 0 {
		heap.Remove(&d.ages, e.at)
	}
}

// Aged gives the LSAs that have reached MaxAge since the last call. They stay until they are removed.
func (d *DB) Aged(now time.Time) (list []*Entry) {
	for len(d.ages) > 0 && !d.ages[0].maxAgeAt().After(now) {
		list = append(list, heap.Pop(&d.ages).(*Entry))
	}
	return list
}

// Wake is when the next LSA reaches MaxAge; zero when none does.
func (d *DB) Wake() time.Time {
	if len(d.ages) == 0 {
		return time.Time{}
	}
	return d.ages[0].maxAgeAt()
}

// ageHeap has the LSA that reaches MaxAge first on top.
type ageHeap []*Entry

func (h ageHeap) Len() int           { return len(h) }
func (h ageHeap) Less(i, j int) bool { return h[i].maxAgeAt().Before(h[j].maxAgeAt()) }
func (h ageHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].at, h[j].at = i, j }
func (h *ageHeap) Push(x any) {
	e := x.(*Entry)
	e.at = len(*h)
	*h = append(*h, e)
}
func (h *ageHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.at = -1
	return e
}
