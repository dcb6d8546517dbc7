package kernel

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"
)

const helperXDPLoadBytes = asm.FnXdpLoadBytes

// wakeShare of the ring buffer's octets wake the reader; less waits for readInterval.
const wakeShare = 16

// Tap is one program with its maps, for any number of interfaces. Its methods work from any thread but Attach, and may
// be called at the same time.
type Tap struct {
	mode   Mode
	maps   learnMaps
	prog   *ebpf.Program
	reader *ringbuf.Reader

	running sync.Mutex // held by Run
	closing chan struct{}
	once    sync.Once
	removed atomic.Uint64 // flows that Forget took out

	mu       sync.Mutex
	closed   bool
	attached map[*Attachment]struct{}
}

// Open loads the program. It needs CAP_BPF and CAP_NET_ADMIN; nothing is tapped before Attach.
//
// Errors wrap ErrPermission and ErrNotSupported, or name the field of c that is out of range.
func Open(c Config) (*Tap, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	spec, err := loadLearn()
	if err != nil {
		return nil, fmt.Errorf("kernel tap: read the program: %w", err)
	}
	spec.Maps[learnMapFlows].MaxEntries = uint32(c.MaxFlows)
	spec.Maps[learnMapEvents].MaxEntries = uint32(c.RingSize)
	if err := spec.Variables[learnVarIntervalNs].Set(uint64(c.Interval)); err != nil {
		return nil, fmt.Errorf("kernel tap: interval: %w", err)
	}
	if err := spec.Variables[learnVarWakeOctets].Set(uint32(c.RingSize / wakeShare)); err != nil {
		return nil, fmt.Errorf("kernel tap: wake-up: %w", err)
	}
	t := &Tap{mode: c.Mode, closing: make(chan struct{}), attached: map[*Attachment]struct{}{}}
	if err := t.load(spec); err != nil {
		return nil, fmt.Errorf("kernel tap: load the program for %v: %w", c.Mode, explain(err))
	}
	if t.reader, err = ringbuf.NewReader(t.maps.Events); err != nil {
		return nil, errors.Join(fmt.Errorf("kernel tap: ring buffer: %w", err), t.prog.Close(), t.maps.Close())
	}
	return t, nil
}

// load loads the program of the mode, and no other.
func (t *Tap) load(spec *ebpf.CollectionSpec) error {
	if t.mode == TCX {
		var o struct {
			Prog *ebpf.Program `ebpf:"learn_tcx"`
			learnMaps
		}
		err := spec.LoadAndAssign(&o, nil)
		t.prog, t.maps = o.Prog, o.learnMaps
		return err
	}
	var o struct {
		Prog *ebpf.Program `ebpf:"learn_xdp"`
		learnMaps
	}
	err := spec.LoadAndAssign(&o, nil)
	t.prog, t.maps = o.Prog, o.learnMaps
	return err
}

// Mode returns the mode given to Open.
func (t *Tap) Mode() Mode { return t.mode }

// Close detaches the program everywhere, ends Run, waits for it, and releases program and maps. A second Close does
// nothing.
func (t *Tap) Close() error {
	var err error
	t.once.Do(func() {
		close(t.closing)
		t.mu.Lock()
		t.closed = true
		for a := range t.attached {
			err = errors.Join(err, a.link.Close())
		}
		clear(t.attached)
		t.mu.Unlock()
		err = errors.Join(err, t.reader.Close())
		t.running.Lock()
		defer t.running.Unlock()
		err = errors.Join(err, t.prog.Close(), t.maps.Close())
	})
	return err
}
