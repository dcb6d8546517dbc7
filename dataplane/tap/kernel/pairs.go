package kernel

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Pair is what user space has learned of a flow, kept for the next process. The program does not read it. It is true of
// a flow that is Followed: keep it before the flow is set so, and drop it after the flow is set otherwise.
//
// It is kept in few bits. Those of the time count from when the tap that keeps it was made: LearnedAt comes back exact to
// a minute, or to a 64th of the time since then where that is more, rounded down; one before that as that; and one of
// more than four years after it as four years after it.
type Pair struct {
	SourceQP  uint32 // 24 bits
	Votes     uint32 // 15: so many or more
	LearnedAt time.Time
	PKey      uint16
	Source    uint8 // how it was learned, as user space numbers it, 1 to 3
}

// keptPairs is the memory of the map of pairs: a word for each place of the flow tables, that of IPv4 first, and one for the
// time that the words count from. A word is of the flow that was in the place when it was written, and stays when
// another one takes the place. That one is not Followed before a word of its own is written.
type keptPairs struct {
	sharedMemory
	words  []atomic.Uint64
	first6 uint32    // where the words of IPv6 begin
	since  time.Time // that the words count from
}

// pairsSpec describes the map for flow tables of so many places together.
func pairsSpec(places int) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "pairs", Type: ebpf.Array, KeySize: 4, ValueSize: pairOctets, MaxEntries: uint32(places) + 1, Flags: unix.BPF_F_MMAPABLE}
}

const pairOctets = 8

// openPairs maps the words for tables of so many places into memory. The first to do so sets the time that they count from.
func openPairs(m *ebpf.Map, places4, places6 uint32) (*keptPairs, error) {
	n := int(places4+places6) + 1
	if int(m.MaxEntries()) != n || m.ValueSize() != pairOctets {
		return nil, fmt.Errorf("kernel tap: map of pairs: %d words of %d octets, want %d of %d", m.MaxEntries(), m.ValueSize(), n, pairOctets)
	}
	k := &keptPairs{first6: places4}
	if err := k.open(m, "map of pairs"); err != nil {
		return nil, err
	}
	k.words = unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&k.memory[0])), n)
	since := &k.words[n-1]
	since.CompareAndSwap(0, uint64(time.Now().Unix()))
	k.since = time.Unix(int64(since.Load()), 0)
	return k, nil
}

// clear makes all words but the last empty.
func (k *keptPairs) clear() error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.memory == nil {
		return fmt.Errorf("kernel tap: map of pairs: %w", ErrClosed)
	}
	for i := range k.words[:len(k.words)-1] {
		if w := &k.words[i]; w.Load() != 0 { // most have none
			w.Store(0)
		}
	}
	return nil
}

// at hands a place's word to fn. It returns ErrClosed after close.
func (k *keptPairs) at(place uint32, v6 bool, fn func(*atomic.Uint64)) error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.memory == nil {
		return fmt.Errorf("kernel tap: map of pairs: %w", ErrClosed)
	}
	if v6 {
		place += k.first6
	}
	fn(&k.words[place])
	return nil
}

// KeepPair keeps what is known of a flow, over the end of this process. Without Config.Pins it does nothing. Errors wrap
// ErrNoFlow where the flow is not there, or name what of p is out of range; then nothing is kept.
func (t *Tap) KeepPair(k Key, p Pair) error {
	if t.kept == nil {
		return nil
	}
	w, err := p.word(t.kept.since)
	if err != nil {
		return fmt.Errorf("kernel tap: keep a pair: %w", errors.Join(err, t.DropPair(k)))
	}
	return t.setPair(k, w)
}

// DropPair forgets what was kept of a flow. Errors wrap ErrNoFlow where the flow is not there.
func (t *Tap) DropPair(k Key) error {
	if t.kept == nil {
		return nil
	}
	return t.setPair(k, 0)
}

// DropPairs forgets what was kept of all flows. It costs no system call.
func (t *Tap) DropPairs() error {
	if t.kept == nil {
		return nil
	}
	return t.kept.clear()
}

// setPair sets the word of a flow. Should another flow have taken the place meanwhile, nothing is kept of that.
func (t *Tap) setPair(k Key, w pairWord) error {
	key := k.words()
	flows := t.table(key)
	var e entry
	place, err := flows.find(key, &e)
	if err != nil {
		return err
	}
	if w != 0 {
		w = w.of(flows.seed, key)
	}
	v6 := flows == t.flows6
	if err := errors.Join(t.kept.at(place, v6, func(to *atomic.Uint64) { to.Store(uint64(w)) }), flows.read(place, &e)); err != nil {
		return err
	}
	if flows.holds(&e, key) {
		return nil
	}
	err = t.kept.at(place, v6, func(to *atomic.Uint64) { to.CompareAndSwap(uint64(w), 0) })
	return errors.Join(err, fmt.Errorf("kernel tap: %w", ErrNoFlow))
}

// Pairs hands what is kept of the flows that are Followed to fn. It costs no system call.
func (t *Tap) Pairs(fn func(Key, Pair)) error {
	if t.kept == nil {
		return nil
	}
	for _, flows := range []*table{t.flows4, t.flows6} {
		for place := range flows.places() {
			if err := t.keptAt(flows, place, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// keptAt hands what is kept of the flow in a place to fn.
func (t *Tap) keptAt(flows *table, place uint32, fn func(Key, Pair)) error {
	var w pairWord
	if err := t.kept.at(place, flows == t.flows6, func(from *atomic.Uint64) { w = pairWord(from.Load()) }); err != nil || w == 0 {
		return err
	}
	var e entry
	if err := flows.read(place, &e); err != nil {
		return fmt.Errorf("kernel tap: flow table: %w", err)
	}
	if e.What == placeUsed && State(e.F.P.State) == Followed && w.of(flows.seed, e.Key[:flows.words]) == w {
		fn(flows.key(&e), w.pair(t.kept.since))
	}
	return nil
}
