package tcx

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"pncd/dataplane/tap/kernel"
)

// Detector is the program on one link, which belongs to the network namespace of the thread that called Open; its methods
// may be called from any goroutine.
type Detector struct {
	name    string
	ifIndex int
	flows   uint64 // that the gate has room for
	prog    *ebpf.Program
	maps    detectMaps
	link    link.Link
	reader  *ringbuf.Reader

	running sync.Mutex // held by Run
	closing chan struct{}
	once    sync.Once

	mu     sync.Mutex // guards what follows, and link and maps against Close
	closed bool
	last   Counters // as they were read last
}

// Open loads the program and puts it on the link. It needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN.
//
// Errors wrap ErrNoInterface, kernel.ErrPermission and kernel.ErrNotSupported, or name the field of c that is out of range.
func Open(c Config) (*Detector, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Interface, err)
	}
	ifc, err := net.InterfaceByName(c.Interface)
	if failed := (*os.SyscallError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: look up the interface: %w", c.Interface, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: create it, or correct its name in the configuration", c.Interface, ErrNoInterface)
	}
	d := &Detector{name: c.Interface, ifIndex: ifc.Index, flows: uint64(c.Flows), closing: make(chan struct{})}
	if err := d.load(&c); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.Interface, err), d.release())
	}
	// Behind all others: they may mark.
	d.link, err = link.AttachTCX(link.TCXOptions{Interface: ifc.Index, Program: d.prog, Attach: ebpf.AttachTCXEgress, Anchor: link.Tail()})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: attach to TCX egress: %w", c.Interface, kernel.Explain(err)), d.release())
	}
	return d, nil
}

// load makes program and maps, and the reader of events.
func (d *Detector) load(c *Config) error {
	spec, err := loadDetect()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	spec.Maps[detectMapGates].MaxEntries = uint32(c.Flows)
	spec.Maps[detectMapEvents].MaxEntries = ringSize
	if err := c.set(spec); err != nil {
		return err
	}
	var o struct {
		Prog *ebpf.Program `ebpf:"detect_tcx"`
		detectMaps
	}
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return fmt.Errorf("load the program: %w", kernel.Explain(err))
	}
	d.prog, d.maps = o.Prog, o.detectMaps
	seed := c.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	if err := d.maps.Queues.Put(uint32(0), &detectQueue{Random: seed}); err != nil {
		return fmt.Errorf("virtual queue: %w", err)
	}
	if d.reader, err = ringbuf.NewReader(d.maps.Events); err != nil {
		return fmt.Errorf("ring buffer: %w", err)
	}
	return nil
}

// set gives the program its constants.
func (c *Config) set(spec *ebpf.CollectionSpec) error {
	var watch uint8
	if c.CE {
		watch = 1
	}
	values := map[string]any{detectVarWatchCe: watch, detectVarGateNs: uint64(max(c.Gate, 0))}
	if q := c.Queue; q != nil {
		values[detectVarDrain] = q.drain()
		values[detectVarKmin], values[detectVarKmax], values[detectVarDepthMax] = q.Kmin, q.Kmax, 2*q.Kmax
		values[detectVarPmax] = uint64(q.Pmax * (1 << 32))
	}
	for name, v := range values {
		if err := spec.Variables[name].Set(v); err != nil {
			return fmt.Errorf("constant %s: %w", name, err)
		}
	}
	return nil
}

// Interface returns the link's name as given to Open.
func (d *Detector) Interface() string { return d.name }

// ProgramName is the program's name in the kernel.
const ProgramName = "detect_tcx"

// IDs returns the kernel's numbers of the program and of the link that holds it, as bpftool(8) shows them. After Close it is
// ErrClosed.
func (d *Detector) IDs() (program, attachment uint32, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosing() {
		return 0, 0, fmt.Errorf("detector: %s: %w", d.name, ErrClosed)
	}
	p, err := d.prog.Info()
	if err != nil {
		return 0, 0, fmt.Errorf("detector: %s: program: %w", d.name, err)
	}
	l, err := d.link.Info()
	if err != nil {
		return 0, 0, fmt.Errorf("detector: %s: link: %w", d.name, err)
	}
	id, _ := p.ID() // known since Linux 4.13
	return uint32(id), uint32(l.ID), nil
}

// Check returns nil while the program is on the link, and else an error that wraps ErrDetached or ErrClosed.
func (d *Detector) Check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosing() {
		return fmt.Errorf("detector: %s: %w", d.name, ErrClosed)
	}
	info, err := d.link.Info()
	if err != nil {
		return fmt.Errorf("detector: %s: link: %w", d.name, err)
	}
	if at := info.TCX(); at == nil || at.Ifindex != uint32(d.ifIndex) {
		return fmt.Errorf("detector: %s: %w", d.name, ErrDetached)
	}
	return nil
}

// Close takes the program off the link, ends Run, waits for it, and releases everything. Events that Run has not handed over
// are counted as lost. A second Close does nothing.
func (d *Detector) Close() error {
	var err error
	d.once.Do(func() {
		err = errors.Join(d.detach(), d.reader.Flush())
		d.running.Lock()
		defer d.running.Unlock()
		d.mu.Lock()
		defer d.mu.Unlock()
		left := d.drain()
		if rerr := d.read(); rerr == nil {
			d.last.lose(left)
		} else {
			err = errors.Join(err, rerr)
		}
		d.closed = true
		err = errors.Join(err, d.release())
	})
	return err
}

func (d *Detector) detach() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.closing)
	return d.link.Close()
}

// drain reads the ring buffer to its end; the program is off the link.
func (d *Detector) drain() unread {
	left := unread{}
	if d.reader.Flush() != nil {
		return left
	}
	var rec ringbuf.Record
	var clock kernel.WallClock
	for d.reader.ReadInto(&rec) == nil {
		if ev, ok := d.decode(rec.RawSample, &clock); ok {
			left[ev.Source]++
		}
	}
	return left
}

// release closes what is left of a detector that is closed, or of which Open failed.
func (d *Detector) release() error {
	var err error
	if d.reader != nil {
		err = d.reader.Close()
	}
	if d.prog != nil {
		err = errors.Join(err, d.prog.Close(), d.maps.Close())
	}
	return err
}
