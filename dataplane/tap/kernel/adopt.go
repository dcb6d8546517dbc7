package kernel

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// leftBehind is what a process that was killed has left of the tap.
type leftBehind struct {
	links  map[int]pinnedLink // by interface; those that are not claimed
	counts Counters           // of all that it counted, and of the program since
}

func (b *leftBehind) claim(ifIndex int) (pinnedLink, bool) {
	if b == nil {
		return pinnedLink{}, false
	}
	l, ok := b.links[ifIndex]
	delete(b.links, ifIndex)
	return l, ok
}

// slots are those that unclaimed links count in.
func (b *leftBehind) slots() map[uint32]bool {
	taken := map[uint32]bool{}
	if b != nil {
		for _, l := range b.links {
			taken[l.slot] = true
		}
	}
	return taken
}

// close detaches what nobody has claimed.
func (b *leftBehind) close() (err error) {
	for i, l := range b.links {
		err = errors.Join(err, (&linkHook{l.link}).close())
		delete(b.links, i)
	}
	return err
}

// openPinned takes over what is pinned for this configuration, or makes and pins it.
func (t *Tap) openPinned(c Config) (err error) {
	if t.dir, err = t.pins.take(version(c)); err != nil {
		return fmt.Errorf("kernel tap: pins: %w", err)
	}
	if t.loadPinned() == nil && t.openTables() == nil {
		return t.takeOver()
	}
	// A first start, or a process that was killed while it pinned: anew.
	if err := t.free(); err != nil {
		return fmt.Errorf("kernel tap: remove half of a pinned tap: %w", err)
	}
	t.maps, t.flows4, t.flows6, t.pairs, t.kept = tapMaps{}, nil, nil, nil, nil
	if t.dir, err = t.pins.take(version(c)); err != nil {
		return fmt.Errorf("kernel tap: pins: %w", err)
	}
	if t.pairs, err = ebpf.NewMap(pairsSpec(c.MaxFlows + c.MaxFlows6)); err != nil {
		return fmt.Errorf("kernel tap: map of pairs: %w", Explain(err))
	}
	if err := t.makeMaps(c); err != nil {
		return err
	}
	for _, m := range t.pinned() {
		if err := (*m.to).Pin(m.path); err != nil {
			return fmt.Errorf("kernel tap: pin %s: %w", m.path, err)
		}
	}
	return nil
}

// pinnedMap is a map that is pinned.
type pinnedMap struct {
	to   **ebpf.Map
	path string
}

// pinned lists them; pairs is the last to be pinned: where it is, all are.
func (t *Tap) pinned() []pinnedMap {
	at := func(name string) string { return filepath.Join(t.dir, name) }
	return []pinnedMap{
		{&t.maps.Flows4, at(learnMapFlows4)}, {&t.maps.Flows6, at(learnMapFlows6)}, {&t.maps.Seed, at("seed")},
		{&t.maps.Events, at(learnMapEvents)}, {&t.maps.Counts, at(learnMapCounts)}, {&t.pairs, at("pairs")},
	}
}

func (t *Tap) loadPinned() (err error) {
	for _, m := range t.pinned() {
		if *m.to, err = ebpf.LoadPinnedMap(m.path, nil); err != nil {
			return err
		}
	}
	return nil
}

// takeOver finds out what is there.
func (t *Tap) takeOver() (err error) {
	var b leftBehind
	if b.links, err = pinnedLinks(t.dir); err != nil {
		return errors.Join(fmt.Errorf("kernel tap: pinned links: %w", err), b.close())
	}
	b.counts, err = t.Counters()
	t.before = &b
	return err
}

// TakenOver says whether an earlier process's tap was taken over, and whether the program was too busy meanwhile, or
// before, to hand up each management datagram.
func (t *Tap) TakenOver() (yes, lostMADs bool) {
	return t.before != nil, t.before != nil && t.before.counts.LostMADs > 0
}

// Settle detaches the program from the interfaces that an earlier process had attached it to and that were not attached
// since Open. It says whether each of those that are attached now has had it all along.
func (t *Tap) Settle() (all bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all = t.before != nil
	for a := range t.attached {
		all = all && a.adopted
	}
	if t.before != nil {
		err = t.before.close()
	}
	return all, err
}
