package kernel

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// wakeShare of the ring buffer's octets wake the reader; less waits for readInterval.
const wakeShare = 16

// Tap is one flow map and one ring buffer, filled by a program on each of any number of interfaces. Its methods work from
// any thread but Attach, and may be called at the same time.
type Tap struct {
	mode   Mode
	maps   tapMaps
	flows4 *table
	flows6 *table
	pairs  *ebpf.Map            // nil without pins
	kept   *keptPairs           // its memory
	spec   *ebpf.CollectionSpec // of the program, but for its slot
	reader *ringbuf.Reader
	pins   *Pins
	dir    string // of this tap's pins; empty without
	before *leftBehind

	running sync.Mutex // held by Run
	closing chan struct{}
	once    sync.Once

	mu       sync.Mutex
	closed   bool
	progs    map[uint32]*ebpf.Program // by slot
	attached map[*Attachment]struct{}
}

// seedSection is the map of the hash's seed: a variable of the program in a section of its own.
const seedSection = ".data.seed"

type tapMaps struct {
	learnMaps
	Seed *ebpf.Map `ebpf:".data.seed"`
}

// Open loads the program. It needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN; nothing is tapped before Attach.
//
// Errors wrap ErrPermission and ErrNotSupported, or name the field of c that is out of range.
func Open(c Config) (*Tap, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	spec, err := specOf(c)
	if err != nil {
		return nil, err
	}
	t := &Tap{mode: c.Mode, spec: spec, closing: make(chan struct{}), progs: map[uint32]*ebpf.Program{}, attached: map[*Attachment]struct{}{}}
	if c.Pins != nil && c.Mode != Clsact {
		t.pins = c.Pins
		err = t.openPinned(c)
	} else {
		err = t.makeMaps(c)
	}
	if err == nil {
		// The first interface's program: that it can't be loaded is better known before one is attached.
		_, err = t.program(0)
	}
	if err == nil {
		t.reader, err = ringbuf.NewReader(t.maps.Events)
	}
	if err != nil {
		return nil, errors.Join(err, t.free())
	}
	return t, nil
}

// makeMaps makes the maps, and opens the flow tables.
func (t *Tap) makeMaps(c Config) error {
	if err := t.spec.LoadAndAssign(&t.maps, nil); err != nil {
		return fmt.Errorf("kernel tap: maps for %d flows and a ring of %d octets: %w", c.MaxFlows, c.RingSize, Explain(err))
	}
	seed := learnHashSeed{}
	if err := binary.Read(rand.Reader, binary.NativeEndian, &seed); err != nil {
		return fmt.Errorf("kernel tap: random numbers: %w", err)
	}
	if err := t.maps.Seed.Put(uint32(0), &seed); err != nil {
		return fmt.Errorf("kernel tap: the hash's seed: %w", Explain(err))
	}
	return t.openTables()
}

// openTables maps the flow tables into memory, and what is kept of their flows.
func (t *Tap) openTables() (err error) {
	var seed learnHashSeed
	if err := t.maps.Seed.Lookup(uint32(0), &seed); err != nil {
		return fmt.Errorf("kernel tap: the hash's seed: %w", Explain(err))
	}
	if t.flows4, err = newTable(t.maps.Flows4, len(learnEntry4{}.Key), seed); err != nil {
		return err
	}
	if t.flows6, err = newTable(t.maps.Flows6, len(learnEntry6{}.Key), seed); err != nil || t.pairs == nil {
		return err
	}
	t.kept, err = openPairs(t.pairs, t.flows4.places(), t.flows6.places())
	return err
}

// free releases what Open has made.
func (t *Tap) free() (err error) {
	for _, table := range []*table{t.flows4, t.flows6} {
		if table != nil {
			err = errors.Join(err, table.close())
		}
	}
	if t.kept != nil {
		err = errors.Join(err, t.kept.close())
	}
	if t.reader != nil {
		err = errors.Join(err, t.reader.Close())
	}
	for _, p := range t.progs {
		err = errors.Join(err, p.Close())
	}
	if t.before != nil {
		err = errors.Join(err, t.before.close())
	}
	for _, m := range []*ebpf.Map{t.maps.Flows4, t.maps.Flows6, t.maps.Seed, t.maps.Events, t.maps.Counts, t.pairs} {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
	}
	if t.dir != "" {
		err = errors.Join(err, t.pins.leave(t.dir))
	}
	return err
}

// specOf is what is loaded for a configuration.
func specOf(c Config) (*ebpf.CollectionSpec, error) {
	spec, err := loadLearn()
	if err != nil {
		return nil, fmt.Errorf("kernel tap: read the program: %w", err)
	}
	j, err := readJiffies()
	if err != nil {
		return nil, err
	}
	spec.Maps[learnMapFlows4].MaxEntries = uint32(c.MaxFlows)
	spec.Maps[learnMapFlows6].MaxEntries = uint32(c.MaxFlows6)
	spec.Maps[learnMapEvents].MaxEntries = uint32(c.RingSize)
	for name, value := range map[string]any{
		learnVarInterval:   ticksOf(c.Interval),
		learnVarWakeOctets: uint32(c.RingSize / wakeShare),
		learnVarTunnels:    uint32(c.Tunnels),
		learnVarStarts4:    startsOf(uint32(c.MaxFlows)),
		learnVarStarts6:    startsOf(uint32(c.MaxFlows6)),

		// Of count zero, modulo 2^64.
		learnVarJiffiesAt: j.at - j.from*j.nanos, learnVarJiffyNanos: j.nanos,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("kernel tap: %s: %w", name, err)
		}
	}
	return spec, nil
}

// program loads the program of a slot, once. The caller holds t.mu, or is the only one that knows t.
func (t *Tap) program(slot uint32) (*ebpf.Program, error) {
	if p := t.progs[slot]; p != nil {
		return p, nil
	}
	spec := t.spec.Copy()
	if err := spec.Variables[learnVarSlot].Set(slot); err != nil {
		return nil, fmt.Errorf("kernel tap: slot: %w", err)
	}
	opt := &ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		learnMapCounts: t.maps.Counts, learnMapEvents: t.maps.Events,
		learnMapFlows4: t.maps.Flows4, learnMapFlows6: t.maps.Flows6, seedSection: t.maps.Seed,
	}}
	p, err := loadProgram(spec, t.mode, opt)
	if err != nil {
		return nil, fmt.Errorf("kernel tap: load the program for %v: %w", t.mode, Explain(err))
	}
	t.progs[slot] = p
	return p, nil
}

// loadProgram loads the program of the mode, and no other.
func loadProgram(spec *ebpf.CollectionSpec, mode Mode, opt *ebpf.CollectionOptions) (*ebpf.Program, error) {
	if mode == TCX || mode == Clsact {
		var o struct {
			Prog *ebpf.Program `ebpf:"learn_tcx"`
		}
		err := spec.LoadAndAssign(&o, opt)
		return o.Prog, err
	}
	var o struct {
		Prog *ebpf.Program `ebpf:"learn_xdp"`
	}
	err := spec.LoadAndAssign(&o, opt)
	return o.Prog, err
}

// Close detaches the program everywhere, ends Run, waits for it, and releases program and maps. A second Close does
// nothing.
func (t *Tap) Close() error {
	var err error
	t.once.Do(func() {
		close(t.closing)
		t.mu.Lock()
		t.closed = true
		for a := range t.attached {
			err = errors.Join(err, a.release())
		}
		clear(t.attached)
		t.mu.Unlock()
		err = errors.Join(err, t.reader.Close()) // ends Run
		t.running.Lock()
		defer t.running.Unlock()
		t.reader = nil
		err = errors.Join(err, t.free())
	})
	return err
}
