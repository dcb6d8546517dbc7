package daemon

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/roce"
	"pncd/dataplane/translate"
	"pncd/internal/config"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/translator"
)

// kernelTranslator is the translator in the kernel, in front of the one in user space. It exists as long as that one; its
// program is there while its unit runs.
//
// What is an answer there is kept by follow, which the Source-QP map calls at each change, and by want, which the
// translator in user space calls for each flow that it finds an answer for. kernelformat2.go has those of format 2.
type kernelTranslator struct {
	flows    *flowmap.Map
	recorder *evidence.Recorder
	user     *translator.Translator
	now      func() time.Time
	log      logrus.FieldLogger

	// program is nil while there is none.
	program atomic.Pointer[kernelProgram]

	settings atomic.Pointer[kernelSettings]

	mu      sync.Mutex // of changing the settings, of starting and ending, and of the counters
	enabled bool
	past    translate.Counters // of programs that ended, without their outcomes

	answers sync.Mutex // held by follow and want, so that a copy is never behind the map
}

// kernelSettings is what a configuration says to the program.
type kernelSettings struct {
	policy   translate.Policy
	tos, ttl uint8
	pkey     uint16
	age      time.Duration
	answers  int
	accept   []string // interfaces that notifications may come in by; none: all
}

func kernelTranslatorSettings(p *config.Proxy) *kernelSettings {
	return &kernelSettings{
		policy: translate.Policy{
			OwnIPv4: p.IPv4.Addr, OwnIPv6: p.IPv6.Addr, Port: p.Port, PortFormat2: portFormat2(p), AcceptFrom: prefixes(p.AcceptFrom), MinTTL: p.TTLMin,
			Served: p.ServedPrefixes(), Window: p.Pace.Window.Duration, PerSecond: p.Pace.PerQP,
			TotalPerSecond: p.Pace.Total, TotalBurst: p.Pace.Burst, RecordOneIn: p.TranslateRecords,
		},
		tos: p.CNP.TOS, ttl: p.CNP.TTL, pkey: p.CNP.PKey, age: p.Map.Age.Duration, answers: p.Pace.QPs,
		accept: p.AcceptInterfaces,
	}
}

// portFormat2 is that of format 2, when it is listened to.
func portFormat2(p *config.Proxy) uint16 {
	if p.NRP == nil {
		return 0
	}
	return p.PortFormat2
}

func (s *kernelSettings) accepts(name string) bool {
	return len(s.accept) == 0 || slices.Contains(s.accept, name)
}

// kernelProgram is one run of the program.
type kernelProgram struct {
	*translate.Translator
	owner   *kernelTranslator
	counted translate.Counters // under owner.mu: what is among the outcomes already
	done    chan struct{}      // closed when it ends
	failed  chan error         // an answer that could not be taken back, and the like
	format2 format2Flows       // under owner.answers

	mu  sync.Mutex // of enabling
	off bool       // for good: it has failed, or ends
}

// kernelFlows is the Source-QP map for the translator in user space: what that one finds an answer for came up for want
// of it in the kernel.
type kernelFlows struct {
	*flowmap.Map
	kernel *kernelTranslator
}

// Lookup implements translator.FlowMap.
func (f kernelFlows) Lookup(k flowmap.Key, now time.Time) (flowmap.Entry, flowmap.Verdict) {
	e, v := f.Map.Lookup(k, now)
	if v == flowmap.Hit {
		f.kernel.want(&e, now)
	}
	return e, v
}

func kernelFlow(k flowmap.Key) translate.Flow {
	return translate.Flow{Sender: k.Sender, Receiver: k.Receiver, DestQP: k.DestQP}
}

// want gives the kernel an answer that it lacks, and makes room for it.
func (t *kernelTranslator) want(e *flowmap.Entry, now time.Time) {
	p := t.program.Load()
	if p == nil || e.Key.Context != 0 {
		return
	}
	p.offer(kernelFlow(e.Key), now, func() error { return t.put(p, e.Key) })
}

// offer puts an answer that the kernel lacks, and makes room for it.
func (p *kernelProgram) offer(f translate.Flow, now time.Time, put func() error) {
	if until, ok := p.Has(f); ok && (until.IsZero() || now.Before(until)) {
		return // it came up for another reason
	}
	p.owner.answers.Lock()
	defer p.owner.answers.Unlock()
	err := put()
	if errors.Is(err, translate.ErrFull) {
		if err = p.Evict(f); err == nil {
			err = put()
		}
	}
	p.check(err)
}

// follow brings the kernel's answer to the map's. Without room a new one waits until it is wanted.
func (t *kernelTranslator) follow(k flowmap.Key) {
	p := t.program.Load()
	if p == nil {
		return
	}
	t.answers.Lock()
	defer t.answers.Unlock()
	if k.Context != 0 {
		t.refresh(p, p.format2[hostPair{k.Sender, k.Receiver}])
		return
	}
	if err := t.put(p, k); !errors.Is(err, translate.ErrFull) {
		p.check(err)
	}
}

// put writes what the map says now. The caller holds t.answers.
func (t *kernelTranslator) put(p *kernelProgram, k flowmap.Key) error {
	f := kernelFlow(k)
	e, verdict := t.flows.Lookup(k, t.now())
	if verdict != flowmap.Hit {
		return p.Remove(f)
	}
	s := t.settings.Load()
	cnp := roce.CNP{Src: k.Receiver, Dst: k.Sender, TOS: s.tos, TTL: s.ttl, PKey: e.PKey, DestQP: e.SourceQP}
	if cnp.PKey == 0 {
		cnp.PKey = s.pkey
	}
	err := p.Put(f, translate.Answer{CNP: cnp, Until: e.LastSeen.Add(s.age), Version: e.Version})
	if err != nil {
		return errors.Join(err, p.Remove(f)) // not the one from before
	}
	return nil
}

// enable switches the program, unless it is off for good.
func (p *kernelProgram) enable(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.SetEnabled(on && !p.off)
}

// end leaves all notifications to user space from now on.
func (p *kernelProgram) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
	return p.SetEnabled(false)
}

// check ends the program when what it answers from, or by, is not known any more.
func (p *kernelProgram) check(err error) {
	if err == nil || errors.Is(err, translate.ErrClosed) {
		return
	}
	err = errors.Join(err, p.end())
	select {
	case p.failed <- err:
	default: // it ends already
	}
}
