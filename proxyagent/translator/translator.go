package translator

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
	"pncd/proxyagent/nrpmap"
)

// FlowMap answers Source QPs, without waiting. *flowmap.Map is one.
type FlowMap interface {
	Lookup(k flowmap.Key, now time.Time) (flowmap.Entry, flowmap.Verdict)
	LookupTuple(t flowmap.Tuple, now time.Time) (flowmap.Entry, flowmap.Verdict)
}

// NRPMap says what NRP Selector IDs stand for, without waiting. *nrpmap.Map is one.
type NRPMap interface {
	Lookup(nrp uint32, sender, receiver netip.Addr) (nrpmap.Entry, bool)
}

// LocalAddresses knows this node's own addresses.
type LocalAddresses interface {
	IsLocal(a netip.Addr) bool
}

// LocalFunc is a function as LocalAddresses.
type LocalFunc func(netip.Addr) bool

// IsLocal calls the function.
func (f LocalFunc) IsLocal(a netip.Addr) bool { return f(a) }

// Sender puts whole IP packets on the wire. It returns how many of the first ones left; when that is
// not all, err is why the next one did not.
type Sender interface {
	Send(packets [][]byte) (sent int, err error)
}

// Deps is what a Translator works with. All but NRPs are required.
type Deps struct {
	FlowMap  FlowMap
	NRPs     NRPMap // nil: no NRP Selector ID stands for anything
	Local    LocalAddresses
	Sender   Sender
	Recorder *evidence.Recorder
	Now      func() time.Time // the clock that ends a latency; the begin is Datagram.ReadAt
}

// MaxBatch is how many datagrams are decided and sent at once.
const MaxBatch = 64

// Translator turns notifications into CNPs. Its methods may be called from any goroutine.
type Translator struct {
	deps     Deps
	recorder *evidence.Recorder
	now      func() time.Time
	enabled  atomic.Bool
	settings atomic.Pointer[settings]

	mu      sync.Mutex // held for a batch: receipt numbers must be known before a CNP is built
	core    *core
	receipt uint64 // numbers used: CNPs sent, and with Shares those up to the last one sent here
	slots   [MaxBatch]decision
	due     []*decision
	packets [][]byte
}

// New returns a Translator that is not enabled. It fails when the configuration is out of range.
func New(cfg Config, deps Deps) (*Translator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	for _, d := range []struct {
		name    string
		missing bool
	}{
		{"FlowMap", deps.FlowMap == nil}, {"Local", deps.Local == nil}, {"Sender", deps.Sender == nil},
		{"Recorder", deps.Recorder == nil}, {"Now", deps.Now == nil},
	} {
		if d.missing {
			return nil, fmt.Errorf("translator: %s: not given", d.name)
		}
	}
	t := &Translator{
		deps: deps, recorder: deps.Recorder, now: deps.Now,
		due: make([]*decision, 0, MaxBatch), packets: make([][]byte, 0, MaxBatch),
	}
	s := newSettings(cfg, &deps)
	t.settings.Store(s)
	t.core = newCore(s, &deps)
	return t, nil
}

// SetEnabled switches translating on or off. Off, each notification ends in the outcome disabled.
// Event numbers are followed anew after it was off.
func (t *Translator) SetEnabled(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if on && !t.enabled.Load() {
		t.core.nodes = newNodes(t.settings.Load().MaxNodes)
	}
	t.enabled.Store(on)
}

// Enabled reports whether translating is on.
func (t *Translator) Enabled() bool { return t.enabled.Load() }

// Reconfigure changes the configuration of a running Translator, except for MaxQPs and MaxNodes;
// receipt numbers, pacing state and counters stay. Event numbers are followed anew when Sampled ends. On an error nothing
// has changed.
func (t *Translator) Reconfigure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	next := newSettings(cfg, &t.deps)
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.settings.Load()
	next.MaxQPs, next.MaxNodes = old.MaxQPs, old.MaxNodes
	if next.TotalPerSecond != old.TotalPerSecond || next.TotalBurst != old.TotalBurst {
		t.core.total.Set(next.TotalPerSecond, next.TotalBurst)
	}
	t.core.qps.SetLimits(next.limits())
	if old.Sampled && !next.Sampled {
		t.core.nodes = newNodes(next.MaxNodes)
	}
	t.settings.Store(next)
	return nil
}

// Process takes each datagram to the port of format 1 to its outcome: one counter, one record, at most one CNP. It
// does not allocate, but for the error of a notification that is malformed or of a CNP that could not be sent, and for what
// Shares need.
func (t *Translator) Process(batch []Datagram, now time.Time) {
	t.processAs(message.Format1, batch, now)
}

// Format2 is the Handler for datagrams to the port of format 2; all else is as for format 1.
func (t *Translator) Format2() Handler { return format2{t} }

type format2 struct{ *Translator }

// Process implements Handler.
func (f format2) Process(batch []Datagram, now time.Time) {
	f.processAs(message.Format2, batch, now)
}

// Discard implements Handler.
func (f format2) Discard(batch []Datagram, now time.Time) {
	f.discardAs(message.Format2, batch, now)
}

func (t *Translator) processAs(format message.Format, batch []Datagram, now time.Time) {
	t.recorder.Received(evidence.PartProxy, uint64(len(batch)))
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(batch) > 0 {
		n := min(len(batch), MaxBatch)
		t.process(format, batch[:n], now)
		batch = batch[n:]
	}
}

func (t *Translator) process(format message.Format, batch []Datagram, now time.Time) {
	s, enabled := t.settings.Load(), t.enabled.Load()
	t.due = t.due[:0]
	for i := range batch {
		d := &t.slots[i]
		if !enabled {
			d.skip(format, &batch[i], now, pncv1.Outcome_OUTCOME_PROXY_DISABLED)
			continue
		}
		t.core.decide(s, format, &batch[i], now, d)
		if d.rec.Outcome == pncv1.Outcome_OUTCOME_PROXY_TRANSLATED {
			t.due = append(t.due, d)
		}
	}
	t.transmit(t.due)
	end := t.now()
	for i := range batch {
		d := &t.slots[i]
		if d.rec.Outcome == pncv1.Outcome_OUTCOME_PROXY_TRANSLATED && !batch[i].ReadAt.IsZero() {
			d.rec.Translation.Latency = end.Sub(batch[i].ReadAt)
		}
		t.recorder.Record(&d.rec)
	}
}

var errNotSent = errors.New("the packet was not sent")

// transmit sends the due CNPs. One that can't be sent leaves the rest, which are numbered and built
// anew.
func (t *Translator) transmit(due []*decision) {
	for len(due) > 0 {
		t.packets = t.packets[:0]
		place := due[0].place
		var failed error
		for i, d := range due {
			if d.place != place {
				break // of another context: sent in the next round
			}
			number := t.receipt + uint64(i) + 1
			if d.number != 0 {
				number = d.number
			}
			if failed = d.stamp(number); failed != nil {
				break
			}
			t.packets = append(t.packets, d.packet)
		}
		sent := 0
		if len(t.packets) > 0 {
			var err error
			if sent, err = place.sender.Send(t.packets); sent < len(t.packets) {
				failed = err
				if failed == nil {
					failed = errNotSent
				}
			}
		}
		for _, d := range due[:sent] {
			t.receipt = max(t.receipt+1, d.number)
		}
		due = due[sent:]
		if failed != nil {
			due[0].refuse(failed)
			due = due[1:]
		}
	}
}

// Discard gives datagrams to the port of format 1 that were read while stopping the outcome shutdown.
func (t *Translator) Discard(batch []Datagram, now time.Time) {
	t.discardAs(message.Format1, batch, now)
}

func (t *Translator) discardAs(format message.Format, batch []Datagram, now time.Time) {
	t.recorder.Received(evidence.PartProxy, uint64(len(batch)))
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.slots[0]
	for i := range batch {
		d.skip(format, &batch[i], now, pncv1.Outcome_OUTCOME_PROXY_SHUTDOWN)
		t.recorder.Record(&d.rec)
	}
}

// skip gives an outcome without looking further than the flow's name.
func (d *decision) skip(format message.Format, dg *Datagram, now time.Time, o evidence.Outcome) {
	d.rec = evidence.Record{At: dg.At, Outcome: o}
	if d.rec.At.IsZero() {
		d.rec.At = now
	}
	d.rec.Translation.Node, d.rec.Translation.EventPort = dg.From.Addr(), dg.From.Port()
	if n, err := parse(format, dg); err == nil {
		d.rec.Flow = n.flow()
	}
}

// Lost counts what the kernel dropped before it could be read. One record stands for all of a kind.
func (t *Translator) Lost(l Loss, now time.Time) {
	for _, k := range []struct {
		n       uint64
		outcome evidence.Outcome
	}{
		{l.Overflow, pncv1.Outcome_OUTCOME_PROXY_RECEIVE_OVERFLOW},
		{l.BadChecksum, pncv1.Outcome_OUTCOME_PROXY_BAD_CHECKSUM},
	} {
		if k.n == 0 {
			continue
		}
		t.recorder.Received(evidence.PartProxy, k.n)
		t.recorder.Count(k.outcome, k.n)
		t.recorder.Offer(&evidence.Record{
			At: now, Outcome: k.outcome, Err: fmt.Sprintf("%d dropped by the kernel", k.n),
		})
	}
}

// Nodes lists the congestion nodes whose event numbers are followed, most recently heard first.
func (t *Translator) Nodes() []Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.nodes.list()
}

// Stats describes the bounded state.
type Stats struct {
	Receipts     uint64 // receipt numbers used: CNPs sent, and with Share those up to the last one sent here
	QPs          int    // Source QPs that pacing remembers
	QPsEvicted   uint64 // Source QPs that made room for others
	Nodes        int    // congestion nodes followed
	NodesEvicted uint64 // congestion nodes that made room for others
}

// Stats reads the bounded state.
func (t *Translator) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{
		Receipts: t.receipt,
		QPs:      t.core.qps.Len(), QPsEvicted: t.core.qps.Evicted(),
		Nodes: t.core.nodes.table.Len(), NodesEvicted: t.core.nodes.table.Evicted(),
	}
}
