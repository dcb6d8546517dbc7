package translate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"pncd/dataplane/tap/kernel"
)

// Translator is the program with its maps. Its methods work from any thread but Attach, and may be called at the same
// time.
type Translator struct {
	programs translatePrograms
	maps     translateMaps
	vars     translateVariables
	reader   *ringbuf.Reader
	answers  *answers

	running sync.Mutex // held by Run
	closing chan struct{}
	once    sync.Once

	mu       sync.Mutex // of what follows, and of writing the policy
	closed   bool
	enabled  bool
	policy   translatePolicy
	prefixes [2]prefixSet // accept, served
	attached map[int]*Attachment
}

// Open loads the program. It needs CAP_BPF, CAP_PERFMON (the verifier asks for it) and CAP_NET_ADMIN. Nothing is translated before SetPolicy, SetEnabled and
// Attach.
//
// Errors wrap kernel.ErrPermission and ErrNotSupported, or name the field of c that is out of range.
func Open(c Config) (*Translator, error) { return open(c, false) }

// open is Open; with turned, the program's clock is the variable turned_to.
func open(c Config, turned bool) (*Translator, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	spec, err := loadTranslate()
	if err != nil {
		return nil, fmt.Errorf("kernel translator: read the program: %w", err)
	}
	spec.Maps[translateMapAnswers].MaxEntries = uint32(c.MaxAnswers)
	spec.Maps[translateMapFlows].MaxEntries = uint32(bucketsFor(c.MaxAnswers))
	spec.Maps[translateMapPaces].MaxEntries = uint32(2 * c.MaxAnswers)
	spec.Maps[translateMapEvents].MaxEntries = uint32(c.RingSize)
	seed := rand.Uint64()
	err = errors.Join(
		spec.Variables[translateVarIcrcTables].Set(icrcTables()),
		spec.Variables[translateVarFlowSeed].Set(seed),
		spec.Variables[translateVarFlowMask].Set(uint32(bucketsFor(c.MaxAnswers)-1)),
	)
	if err == nil {
		err = spec.Variables[translateVarAttendedUntil].Set(uint64(math.MaxUint64)) // Run changes it
	}
	if err == nil && turned {
		err = spec.Variables[translateVarTurned].Set(uint32(1))
	}
	if err != nil {
		return nil, fmt.Errorf("kernel translator: constants: %w", err)
	}
	var o translateObjects
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return nil, fmt.Errorf("kernel translator: load the program: %w", kernel.Explain(err))
	}
	t := &Translator{
		programs: o.translatePrograms, maps: o.translateMaps, vars: o.translateVariables,
		closing: make(chan struct{}), attached: map[int]*Attachment{},
	}
	t.answers = newAnswers(&t.maps, c.MaxAnswers, seed)
	t.prefixes = [2]prefixSet{{m: t.maps.Accept}, {m: t.maps.Served}}
	if t.reader, err = ringbuf.NewReader(t.maps.Events); err != nil {
		return nil, errors.Join(fmt.Errorf("kernel translator: %w", err), t.Close())
	}
	return t, nil
}

// Close takes the program off its interfaces, ends Run, waits for it, and releases program and maps. A second Close does
// nothing.
func (t *Translator) Close() error {
	var err error
	t.once.Do(func() {
		close(t.closing)
		t.mu.Lock()
		t.closed = true
		for _, a := range t.attached {
			err = errors.Join(err, a.link.Close())
		}
		clear(t.attached)
		t.mu.Unlock()
		if t.reader != nil {
			err = errors.Join(err, t.reader.Close())
		}
		t.running.Lock()
		defer t.running.Unlock()
		t.answers.close()
		err = errors.Join(err, t.programs.Close(), t.maps.Close())
	})
	return err
}

// ProgramName is the program's name in the kernel.
const ProgramName = translateProgTranslate

// Objects lists the program's maps, for people; none after Close.
func (t *Translator) Objects() (out []kernel.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	m := &t.maps
	for _, m := range []*ebpf.Map{m.Accept, m.Answers, m.Counts, m.Events, m.Flows, m.Paces, m.Policies, m.Ports, m.Served, m.Totals, m.Works} {
		if o, err := kernel.MapObject(m); err == nil {
			out = append(out, o)
		}
	}
	return out
}
