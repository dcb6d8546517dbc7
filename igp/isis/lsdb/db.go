package lsdb

import (
	"container/heap"
	"errors"
	"iter"
	"slices"
	"time"

	"pncd/igp/isis/packet"
)

const maxLifetime = 0xFFFF

// Defaults; the times are those of ISO 10589.
const (
	DefaultMaxAge  = 1200 * time.Second
	DefaultZeroAge = 60 * time.Second
	DefaultMaxLSPs = 1 << 16
)

// Config is how long things live. Zero values are the defaults.
type Config struct {
	// MaxAge is the lifetime below which no received LSP begins (RFC 7987 section 2).
	MaxAge time.Duration
	// ZeroAge is how long a purge is remembered.
	ZeroAge time.Duration
	// MaxLSPs bounds the database, so that a flood of system IDs can't take all memory. Own LSPs
	// that live are added beyond it.
	MaxLSPs int
}

func (c Config) withDefaults() Config {
	if c.MaxAge == 0 {
		c.MaxAge = DefaultMaxAge
	}
	if c.ZeroAge == 0 {
		c.ZeroAge = DefaultZeroAge
	}
	if c.MaxLSPs == 0 {
		c.MaxLSPs = DefaultMaxLSPs
	}
	return c
}

// What can go wrong when an LSP is added.
var (
	ErrFull         = errors.New("isis: the database holds as many LSPs as it may")
	ErrZeroSequence = errors.New("isis: an LSP with sequence number 0 is never stored (ISO 10589 clause 7.3.15.2)")
)

// DB is the database of one level. It is not safe for concurrent use.
type DB struct {
	cfg     Config
	entries map[packet.LSPID]*Entry
	sorted  []packet.LSPID
	due     dueHeap
}

// New makes an empty database.
func New(c Config) *DB {
	return &DB{cfg: c.withDefaults(), entries: map[packet.LSPID]*Entry{}}
}

// SetMaxAge changes the lifetime below which no LSP begins that is received from now on.
func (d *DB) SetMaxAge(age time.Duration) { d.cfg.MaxAge = age }

// Get gives an LSP; nil when there is none.
func (d *DB) Get(id packet.LSPID) *Entry { return d.entries[id] }

// Len is the number of LSPs, purged ones too.
func (d *DB) Len() int { return len(d.sorted) }

// Range iterates over the LSPs from start to end, both included, in order. The database must not change
// meanwhile.
func (d *DB) Range(start, end packet.LSPID) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		i, _ := slices.BinarySearchFunc(d.sorted, start, packet.LSPID.Compare)
		for ; i < len(d.sorted) && d.sorted[i].Compare(end) <= 0; i++ {
			if !yield(d.entries[d.sorted[i]]) {
				return
			}
		}
	}
}

// All iterates over all LSPs.
func (d *DB) All() iter.Seq[*Entry] { return d.Range(packet.LSPID{}, packet.MaxLSPID) }

// Put stores an instance in place of what was there; whether it is newer is the caller's decision. raw is
// kept. A lifetime of zero makes a purge: only its header is kept (ISO 10589 clause 7.3.16.4), and with
// authentication its TLVs (RFC 5304 section 2), so raw stays as it is. A lifetime of less than MaxAge is
// lifted unless own says that it is this system's own (RFC 7987 section 2).
func (d *DB) Put(now time.Time, p packet.LSP, raw []byte, own bool) (*Entry, error) {
	if p.Sequence == 0 {
		return nil, ErrZeroSequence
	}
	old := d.entries[p.ID]
	// Own ones have room beyond the bound, for at most 256 fragments: a flood must not silence this system.
	if alive := p.Lifetime != 0; old == nil && len(d.sorted) >= d.cfg.MaxLSPs && !(own && alive) {
		return nil, ErrFull
	}
	e := &Entry{
		Version: Version{Sequence: p.Sequence, Checksum: p.Checksum, Purged: p.Lifetime == 0},
		ID:      p.ID, Type: p.Type, Flags: p.Flags, raw: raw,
	}
	life := time.Duration(p.Lifetime) * time.Second
	if !own {
		life = max(life, d.cfg.MaxAge)
	}
	if e.Purged {
		e.expires, e.remove = now, now.Add(d.cfg.ZeroAge)
	} else {
		e.expires = now.Add(life)
	}
	if old != nil {
		heap.Remove(&d.due, old.at)
	} else {
		i, _ := slices.BinarySearchFunc(d.sorted, p.ID, packet.LSPID.Compare)
		d.sorted = slices.Insert(d.sorted, i, p.ID)
	}
	d.entries[p.ID] = e
	heap.Push(&d.due, e)
	return e, nil
}

// Expire gives the LSPs whose lifetime has ended since the last call, which are purges from now on and must
// be flooded as such, and the IDs of purges that are forgotten.
func (d *DB) Expire(now time.Time) (expired []*Entry, forgotten []packet.LSPID) {
	for len(d.due) > 0 && !d.due[0].next().After(now) {
		e := d.due[0]
		if e.Purged {
			heap.Pop(&d.due)
			d.forget(e.ID)
			forgotten = append(forgotten, e.ID)
			continue
		}
		dead := *e
		dead.Purged, dead.remove = true, now.Add(d.cfg.ZeroAge)
		// Header only (ISO 10589 clause 7.3.16.4). The checksum stays: it names the instance in SNPs.
		dead.raw = headerOnly(e.raw)
		d.entries[e.ID] = &dead
		d.due[0] = &dead
		heap.Fix(&d.due, 0)
		expired = append(expired, &dead)
	}
	return expired, forgotten
}

// Wake is when Expire has something to do; zero: never.
func (d *DB) Wake() time.Time {
	if len(d.due) == 0 {
		return time.Time{}
	}
	return d.due[0].next()
}

func (d *DB) forget(id packet.LSPID) {
	delete(d.entries, id)
	if i, ok := slices.BinarySearchFunc(d.sorted, id, packet.LSPID.Compare); ok {
		d.sorted = slices.Delete(d.sorted, i, i+1)
	}
}

// headerOnly is the LSP without its TLVs.
func headerOnly(raw []byte) []byte {
	p, err := packet.ParseLSP(raw)
	if err != nil {
		return raw // it was read when it was added
	}
	p.TLVs = nil
	out, _ := p.Append(nil)
	return out
}

// dueHeap orders entries by what happens next.
type dueHeap []*Entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].next().Before(h[j].next()) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *dueHeap) Push(x any) {
	e := x.(*Entry)
	e.at = len(*h)
	*h = append(*h, e)
}
func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
