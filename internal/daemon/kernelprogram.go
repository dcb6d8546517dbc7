package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/translate"
	"pncd/internal/config"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
	"pncd/proxyagent/translator"
)

// openProgram loads the program and gives it what it is to know but the answers. It decides nothing before it is on an interface
// and the mechanism is enabled.
func (t *kernelTranslator) openProgram() (runner, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.settings.Load()
	k, err := translate.Open(translate.Config{MaxAnswers: s.answers})
	if err != nil {
		return nil, err
	}
	p := &kernelProgram{Translator: k, owner: t, done: make(chan struct{}), failed: make(chan error, 1), format2: format2Flows{}}
	err = k.SetPolicy(s.policy)
	if err == nil {
		err = t.user.Share(func(receipts uint64) (translator.Shares, error) { return kernelShares{p}, k.SetReceipts(receipts) })
	}
	if err == nil && t.enabled {
		err = k.SetEnabled(true)
	}
	if err != nil {
		t.user.Unshare(func() uint64 { return 0 })
		return nil, errors.Join(err, k.Close())
	}
	t.program.Store(p)
	t.flows.OnAnswer(t.follow)
	return p, nil
}

// kernelShares are the program's limits and receipt numbers.
type kernelShares struct{ *kernelProgram }

// Take implements translator.Shares.
func (s kernelShares) Take(context uint32, sender netip.Addr, sourceQP uint32) (evidence.Outcome, uint64, error) {
	o, receipt, err := s.kernelProgram.Take(context, sender, sourceQP)
	return evidence.Outcome(o), receipt, err
}

// Run implements runner: it gives the program the answers that there are, and records what it decides. Before it ends the
// program decides nothing more, for that would have no record.
func (p *kernelProgram) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reading, stop := context.WithCancel(context.Background())
	defer stop()
	t := p.owner
	ended := make(chan error, 1)
	go func() {
		t.flows.Range(t.now(), func(e flowmap.Entry) bool {
			if e.Known() {
				t.follow(e.Key)
			}
			return ctx.Err() == nil
		})
		var err error
		select {
		case err = <-p.failed:
		case <-ctx.Done():
		}
		ended <- errors.Join(err, p.end())
		stop()
	}()
	var x translator.Decided
	err := p.Translator.Run(reading, func(e *translate.Event) {
		format := message.Format1
		if message.CheckLength(message.Format2, len(e.Payload)) == nil {
			format = message.Format2
		}
		x = translator.Decided{
			Format: format,
			Datagram: translator.Datagram{
				Payload: e.Payload, Length: len(e.Payload), From: e.From, To: e.To, TTL: int(e.TTL), IfIndex: e.IfIndex, At: e.At,
			},
			Outcome: evidence.Outcome(e.Outcome), SourceQP: e.SourceQP, Version: e.Version, NRP: e.NRP, Receipt: e.Receipt, Latency: e.Took,
		}
		t.user.Record(&x, t.flows, t.now())
	})
	cancel()
	return errors.Join(err, <-ended)
}

// Close implements runner: the translator in user space goes on from the receipt number that was reached.
func (p *kernelProgram) Close() error {
	t := p.owner
	close(p.done)
	err := p.detach()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.program.CompareAndSwap(p, nil) {
		t.flows.OnAnswer(nil)
		t.user.Unshare(func() uint64 {
			n, rerr := p.Receipts()
			err = errors.Join(err, rerr)
			return n
		})
	}
	t.count(p)
	p.addTo(&t.past)
	return errors.Join(err, p.Translator.Close())
}

// detach takes the program off all interfaces, so that its counters stand still.
func (p *kernelProgram) detach() (err error) {
	for _, a := range p.Attachments() {
		err = errors.Join(err, a.Close())
	}
	return err
}

// kernelPort is the program on one interface.
type kernelPort struct {
	program *kernelProgram
	*translate.Attachment
}

func (t *kernelTranslator) openPort(name string) (runner, error) {
	t.mu.Lock() // configure changes what is accepted, of the interfaces that are there
	defer t.mu.Unlock()
	p := t.program.Load()
	if p == nil {
		return nil, errors.New("the program is not loaded")
	}
	a, err := p.Attach(name, t.settings.Load().accepts(name))
	if err != nil {
		return nil, err
	}
	return &kernelPort{p, a}, nil
}

// portCheck is how often it is looked at whether the program is still where it was put.
const portCheck = time.Second

// Run implements runner.
func (k *kernelPort) Run(ctx context.Context) error {
	tick := time.NewTicker(portCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.program.done:
			return errors.New("the program ended")
		case <-tick.C:
			if err := k.Check(); err != nil {
				return err
			}
		}
	}
}

// suspend leaves all notifications to user space until configure has been called.
func (t *kernelTranslator) suspend() error {
	if p := t.program.Load(); p != nil {
		return p.enable(false)
	}
	return nil
}

// configure puts settings in force, in a running program too. With an error that one ends.
func (t *kernelTranslator) configure(c *config.Proxy) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := kernelTranslatorSettings(c)
	old := t.settings.Swap(s)
	p := t.program.Load()
	if p == nil {
		return nil
	}
	err := p.SetPolicy(s.policy)
	if old.tos != s.tos || old.ttl != s.ttl || old.pkey != s.pkey || old.age != s.age {
		for _, f := range p.Flows() {
			if !f.Format2 {
				t.follow(flowmap.Key{Sender: f.Sender, Receiver: f.Receiver, DestQP: f.DestQP})
			}
		}
	}
	t.followFormat2() // whatever has changed of contexts and prefixes
	for _, a := range p.Attachments() {
		err = errors.Join(err, a.SetAccepted(s.accepts(a.Interface())))
	}
	if err == nil {
		err = p.enable(t.enabled)
	}
	p.check(err)
	return err
}

func (t *kernelTranslator) setEnabled(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enabled = on
	if p := t.program.Load(); p != nil {
		p.check(p.enable(on))
	}
}

// count takes what the program has decided into the outcomes. The caller holds t.mu.
func (t *kernelTranslator) count(p *kernelProgram) {
	now, err := p.Counters()
	if err != nil {
		t.log.WithError(err).Warn("reading the kernel translator's counters failed; the next time counts all")
		return
	}
	for o := range now.Outcomes {
		if n := now.Outcomes[o] - p.counted.Outcomes[o]; n > 0 {
			t.recorder.Received(evidence.PartProxy, n)
			t.recorder.Count(evidence.Outcome(o), n)
		}
	}
	p.counted = now
}

// counters gives the counts of all programs that there were, with those that are not yet among the outcomes.
func (t *kernelTranslator) counters() translate.Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.past
	if p := t.program.Load(); p != nil {
		t.count(p)
		p.addTo(&sum)
	}
	return sum
}

// addTo adds what is counted but the outcomes, which the recorder has.
func (p *kernelProgram) addTo(sum *translate.Counters) {
	for r := range sum.Up {
		sum.Up[r] += p.counted.Up[r]
	}
	sum.Lost += p.counted.Lost
}

// upHelp says why notifications went on to user space.
var upHelp = map[translate.Reason]string{
	translate.UpDisabled:   "while the program was not in force",
	translate.UpChecksum:   "with a wrong UDP checksum, or none over IPv6, or one that a sender on this machine left to its device (checksum offload), which user space takes",
	translate.UpFormat:     "of another length than the format of their port has, or with addresses that no flow has",
	translate.UpAnswer:     "about flows without a valid answer in the kernel, or in a VPN that it can't send to",
	translate.UpRoute:      "whose sender has no route, no neighbour, or a way by another interface than those of translate_interfaces",
	translate.UpRing:       "that were to be recorded, and there was no room",
	translate.UpFrame:      "in frames without room for a CNP",
	translate.UpUnattended: "while pncd had not been running for a second",
}

func (d *Daemon) kernelCounts() (out []count) {
	p := d.parts.Load()
	if p.kernel == nil || d.config.Load().Proxy.Translate != config.TranslateKernel {
		return nil
	}
	c := p.kernel.counters()
	for _, r := range translate.Reasons() {
		out = append(out, count{"translator", "kernel-passed-on", "Notifications that the kernel left to user space: " + upHelp[r] + ".", c.Up[r], [2]string{"reason", r.String()}})
	}
	return append(out, count{part: "translator", name: "kernel-records-lost", value: c.Lost, help: "Decisions of the kernel that were to be recorded, of a sample, and had no room."})
}

// countKernel takes what the kernel has decided into the outcomes.
func (d *Daemon) countKernel() {
	if k := d.parts.Load().kernel; k != nil {
		k.counters()
	}
}

// detail says what the kernel translates, and where.
func (t *kernelTranslator) detail() string {
	p := t.program.Load()
	if p == nil {
		return ""
	}
	return fmt.Sprintf("kernel: %s; %d answers", strings.Join(p.places(), ", "), p.Answers())
}

// places tells where the program is, by name of the interface.
func (p *kernelProgram) places() (out []string) {
	for _, a := range p.Attachments() {
		how := "the stack"
		if a.Native() {
			how = "the driver"
		}
		out = append(out, fmt.Sprintf("XDP in %s of %s", how, a.Interface()))
	}
	slices.Sort(out)
	return out
}

// kernelObjects lists program and maps.
func (d *Daemon) kernelObjects() (out []*pncv1.HostObject) {
	k := d.parts.Load().kernel
	if k == nil {
		return nil
	}
	p := k.program.Load()
	if p == nil {
		return nil
	}
	attached := p.Attachments()
	slices.SortFunc(attached, func(a, b *translate.Attachment) int { return strings.Compare(a.Interface(), b.Interface()) })
	for _, a := range attached {
		o := &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_PROGRAM}
		object, err := a.Object()
		if o.Name, o.Detail = object.Name, object.Detail; err != nil {
			o.Error = err.Error()
		}
		out = append(out, o)
	}
	for _, o := range p.Objects() {
		out = append(out, &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_MAP, Name: o.Name, Detail: o.Detail + ", of " + translate.ProgramName})
	}
	return out
}
