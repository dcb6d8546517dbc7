package evidence

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
)

// hostChangesKept bounds the changes that are kept; they are few, and a storm of other records doesn't push
// them out.
const hostChangesKept = 1024

// HostChange is one change by somebody else of something that this node has in the kernel. It is no outcome of
// an event or a notification, so it is counted and kept apart from the records of those.
type HostChange struct {
	Sequence uint64    // set by the Recorder: counts this node's changes since boot, from 1
	At       time.Time // when it was noticed
	Kind     pncv1.HostObjectKind
	Name     string // of the object
	Change   string // what was found, in words
	Err      string // why it could not be put back; empty when it was
}

// HostChangeCount counts changes of a kind of object.
type HostChangeCount struct {
	Kind           pncv1.HostObjectKind
	Mended, Failed uint64
}

// hostChanges keeps the newest changes.
type hostChanges struct {
	mu     sync.Mutex
	made   uint64
	kept   []HostChange // oldest first
	counts map[pncv1.HostObjectKind]HostChangeCount
}

// HostChanged counts a change, gives it its sequence and keeps it. It may be called from any goroutine.
func (r *Recorder) HostChanged(c HostChange) {
	h := &r.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made++
	c.Sequence = h.made
	if len(h.kept) == hostChangesKept {
		h.kept = slices.Delete(h.kept, 0, 1)
	}
	h.kept = append(h.kept, c)
	n := h.counts[c.Kind]
	n.Kind = c.Kind
	if c.Err == "" {
		n.Mended++
	} else {
		n.Failed++
	}
	if h.counts == nil {
		h.counts = map[pncv1.HostObjectKind]HostChangeCount{}
	}
	h.counts[c.Kind] = n
}

// HostChanges gives the changes that are kept, oldest first, and how many older ones are not.
func (r *Recorder) HostChanges() (kept []HostChange, overwritten uint64) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	return slices.Clone(r.host.kept), r.host.made - uint64(len(r.host.kept))
}

// HostChangeCounts gives the exact counts by kind.
func (r *Recorder) HostChangeCounts() []HostChangeCount {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	var out []HostChangeCount
	for _, n := range r.host.counts {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b HostChangeCount) int { return int(a.Kind) - int(b.Kind) })
	return out
}

// ToProto is the change as the API gives it.
func (c *HostChange) ToProto() *pncv1.HostChange {
	return &pncv1.HostChange{
		Sequence: c.Sequence, At: timestamppb.New(c.At), Kind: c.Kind, Name: c.Name, Change: c.Change, Error: c.Err,
	}
}
