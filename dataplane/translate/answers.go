package translate

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
)

// Flow names a flow as a notification does: of format 1 by Destination QP, of format 2 by UDP source port and NRP Selector ID.
type Flow struct {
	Sender, Receiver netip.Addr
	DestQP           uint32 // 24 bits
	Format2          bool
	SrcPort          uint16
	NRP              uint32
}

// Answer is what the Source-QP map says of a flow, or the NRP map, and how its CNPs look.
type Answer struct {
	CNP     roce.CNP  // without source port and IPv4 identification; Dst and DestQP are the sender's
	Until   time.Time // when it stops being one unless it is Put again; zero: never
	Context uint32    // of the flow: its Source QP is paced apart from those of other contexts; 0: the default one
	Table   uint32    // the routing table of the context, by which alone the CNP goes; 0: as what this host sends. Linux 6.6
	Version uint64    // given back in events, as is NRPVersion
	// NRPVersion is that of the NRP map's entry, with format 2.
	NRPVersion uint64
}

// sourceQP is what pacing goes by.
type sourceQP struct {
	context uint32 // 0 is the default one
	sender  netip.Addr
	qp      uint32
}

// pacing is a place in the program's array of what Source QPs have used.
type pacing struct {
	index uint32
	of    sourceQP
	uses  int           // answers that name it
	idle  *list.Element // without any: where it stands among those to be given away
}

// entry is one answer in the kernel.
type entry struct {
	index uint32
	pace  *pacing
	until time.Time
}

// answers keeps account of the places in the program's arrays.
type answers struct {
	maps  *translateMaps
	index flowIndex

	mu      sync.Mutex
	closed  bool
	entries map[Flow]entry
	free    []uint32 // places for answers
	made    uint32   // places that were ever used
	limit   uint32
	paces   map[sourceQP]*pacing
	idle    list.List // of *pacing, the longest idle first
}

func newAnswers(maps *translateMaps, limit int, seed uint64) *answers {
	return &answers{
		maps: maps, index: flowIndex{m: maps.Flows, seed: seed, buckets: make([]translateBucket, bucketsFor(limit))},
		limit: uint32(limit), entries: map[Flow]entry{}, paces: map[sourceQP]*pacing{},
	}
}

func (a *answers) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// Put sets the answer of a flow. Errors wrap ErrFull and ErrClosed, or say what a CNP can't have.
func (t *Translator) Put(f Flow, ans Answer) error { return t.answers.put(f, &ans) }

// Remove ends the answer of a flow, if there is one.
func (t *Translator) Remove(f Flow) error { return t.answers.remove(f) }

// Answers says how many there are.
func (t *Translator) Answers() int {
	t.answers.mu.Lock()
	defer t.answers.mu.Unlock()
	return len(t.answers.entries)
}

// Has reports whether a flow has an answer, and until when it is one; zero: without end.
func (t *Translator) Has(f Flow) (until time.Time, ok bool) {
	t.answers.mu.Lock()
	defer t.answers.mu.Unlock()
	e, ok := t.answers.entries[f]
	return e.until, ok
}

// Evict removes an answer, whichever, to make room for that of f.
func (t *Translator) Evict(f Flow) error {
	a := t.answers
	a.mu.Lock()
	var out Flow
	k := f.key()
	bucket, full := a.index.full(&k)
	for out = range a.entries {
		k := out.key()
		if n, _ := a.index.of(&k, 0); !full || n == bucket {
			break
		}
	}
	a.mu.Unlock()
	return a.remove(out)
}

// Flows lists the flows that have an answer, in no order.
func (t *Translator) Flows() []Flow {
	t.answers.mu.Lock()
	defer t.answers.mu.Unlock()
	out := make([]Flow, 0, len(t.answers.entries))
	for f := range t.answers.entries {
		out = append(out, f)
	}
	return out
}

func (f *Flow) key() translateFlowKey {
	k := translateFlowKey{Sender: f.Sender.As16(), Receiver: f.Receiver.As16(), Name: f.DestQP}
	if f.Format2 {
		const format2 = 1 << 31 // FORMAT2 of the program
		k.Name, k.Nrp = format2|uint32(f.SrcPort), f.NRP
	}
	return k
}

func (a *answers) put(f Flow, ans *Answer) error {
	var clock kernel.WallClock
	clock.Compare(time.Now())
	v := translateAnswer{Key: f.key(), Until: math.MaxUint64, Ready: translateReady{Version: ans.Version, NrpVersion: ans.NRPVersion, Table: ans.Table}}
	if !ans.Until.IsZero() {
		v.Until = clock.Mono(ans.Until)
	}
	if err := v.Ready.template(ans.CNP); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fmt.Errorf("kernel translator: answer: %w", ErrClosed)
	}
	e, there := a.entries[f]
	if !there {
		switch n := len(a.free); {
		case n > 0:
			e.index, a.free = a.free[n-1], a.free[:n-1]
		case a.made < a.limit:
			e.index = a.made
			a.made++
		default:
			return fmt.Errorf("kernel translator: answer: %w", ErrFull)
		}
	}
	p, err := a.pacing(sourceQP{ans.Context, ans.CNP.Dst, ans.CNP.DestQP})
	if err == nil {
		a.use(p)
		v.Ready.Pace = p.index
		if !there { // first the slot: an answer without one would have to be taken back
			err = a.index.put(&v.Key, e.index)
		}
	}
	if err == nil {
		if err = a.maps.Answers.Update(e.index, &v, ebpf.UpdateLock); err != nil && !there {
			err = errors.Join(err, a.index.remove(&v.Key, e.index))
		}
	}
	if err != nil {
		if p != nil {
			a.unuse(p)
		}
		if !there {
			a.free = append(a.free, e.index)
		}
		return fmt.Errorf("kernel translator: answer: %w", err)
	}
	if there {
		a.unuse(e.pace)
	}
	a.entries[f] = entry{e.index, p, ans.Until}
	return nil
}

func (a *answers) remove(f Flow) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, there := a.entries[f]
	if a.closed || !there {
		return nil
	}
	k := f.key()
	// First the answer: a look-up that has the index already finds none.
	err := a.maps.Answers.Update(e.index, &translateAnswer{}, ebpf.UpdateLock)
	if err = errors.Join(err, a.index.remove(&k, e.index)); err != nil {
		return fmt.Errorf("kernel translator: remove an answer: %w", err)
	}
	delete(a.entries, f)
	a.unuse(e.pace)
	a.free = append(a.free, e.index)
	return nil
}

// pacing finds the place of a Source QP, or gives it that of the one that has had no answer for longest. There are twice as
// many as answers, so one is there.
func (a *answers) pacing(q sourceQP) (*pacing, error) {
	if p := a.paces[q]; p != nil {
		if p.idle != nil {
			a.idle.MoveToBack(p.idle)
		}
		return p, nil
	}
	p := &pacing{index: uint32(len(a.paces)), of: q}
	var oldest *list.Element
	if len(a.paces) >= 2*int(a.limit) {
		oldest = a.idle.Front()
		p.index = oldest.Value.(*pacing).index
	}
	if err := a.maps.Paces.Update(p.index, &translatePace{}, ebpf.UpdateAny); err != nil {
		return nil, err
	}
	if oldest != nil {
		delete(a.paces, a.idle.Remove(oldest).(*pacing).of)
	}
	p.idle = a.idle.PushBack(p)
	a.paces[q] = p
	return p, nil
}

func (a *answers) use(p *pacing) {
	if p.uses++; p.idle != nil {
		a.idle.Remove(p.idle)
		p.idle = nil
	}
}

func (a *answers) unuse(p *pacing) {
	if p.uses--; p.uses == 0 {
		p.idle = a.idle.PushBack(p)
	}
}
