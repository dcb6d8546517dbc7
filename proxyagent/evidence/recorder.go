package evidence

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	pncv1 "pncd/api/pnc/v1"
)

// Defaults.
const (
	DefaultCapacity   = 65536 // records; 440 octets each
	DefaultListLimit  = 1000  // records.proto, ListRecordsRequest
	DefaultWatchQueue = 1024  // records that a slow watcher may lag behind
)

// Config configures a Recorder.
type Config struct {
	Node     string // the node's name, given with each record
	Boot     string // identifies this run of pncd, given with each record
	Capacity int    // records kept; zero means DefaultCapacity
}

// Recorder counts outcomes and keeps records. All methods may be called from any goroutine; Record
// and the methods of Counters never wait and don't allocate.
type Recorder struct {
	Counters
	node, boot string
	ring       *ring
	host       hostChanges

	watchers atomic.Pointer[[]*Watcher] // replaced as a whole under mu
	mu       sync.Mutex
}

// NewRecorder returns a Recorder. It fails when the capacity is negative.
func NewRecorder(cfg Config) (*Recorder, error) {
	if cfg.Capacity < 0 {
		return nil, fmt.Errorf("evidence: capacity %d: must not be negative", cfg.Capacity)
	}
	if cfg.Capacity == 0 {
		cfg.Capacity = DefaultCapacity
	}
	r := &Recorder{node: cfg.Node, boot: cfg.Boot, ring: newRing(cfg.Capacity)}
	r.watchers.Store(new([]*Watcher))
	return r, nil
}

// Record counts the record's outcome once, gives the record its sequence, and keeps it when it can.
func (r *Recorder) Record(rec *Record) {
	r.Count(rec.Outcome, 1)
	r.Offer(rec)
}

// Offer keeps a record without counting its outcome: for one record that stands for many, which the
// caller has counted.
func (r *Recorder) Offer(rec *Record) {
	r.ring.put(rec)
	for _, w := range *r.watchers.Load() {
		w.offer(rec)
	}
}

// Made is the number of records made, dropped ones included. Where one stands for many it is less than
// the sum of the outcomes.
func (r *Recorder) Made() uint64 { return r.ring.head.Load() }

// Dropped is the number of records that could not be kept.
func (r *Recorder) Dropped() uint64 { return r.ring.dropped.Load() }

// Overwritten is the number of records that left the ring.
func (r *Recorder) Overwritten() uint64 { return r.ring.overwritten() }

// List gives the newest records that match, oldest first; at most limit, where zero means
// DefaultListLimit.
func (r *Recorder) List(f Filter, limit int) []Record {
	if limit <= 0 {
		limit = DefaultListLimit
	}
	var all []Record
	r.ring.each(func(rec *Record) bool {
		if f.Match(rec) {
			all = append(all, *rec)
		}
		return len(all) < limit
	})
	slices.Reverse(all)
	return all
}

// ToProto is the record as the API gives it, with this node's name and boot.
func (r *Recorder) ToProto(rec *Record) *pncv1.Record {
	p := rec.toProto()
	p.Node, p.Boot = r.node, r.boot
	return p
}
