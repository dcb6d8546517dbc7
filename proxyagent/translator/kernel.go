package translator

import (
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
)

// A translator in the kernel may stand in front of this one: it decides what it can, and this one the rest. What follows
// is how the two are one proxy: they use up the same limits and receipt numbers, and what the kernel has decided is
// recorded here.

// Shares gives out what a CNP uses up, for all translators of a proxy.
type Shares interface {
	// Take takes a share of the Source QP's limits in a context and of the total's, and a receipt number, for one CNP: the outcome is
	// translated, else paced or rate-limited. It may be called from any goroutine.
	Take(context uint32, sender netip.Addr, sourceQP uint32) (outcome evidence.Outcome, receipt uint64, err error)
	// Want tells of a flow that a notification of format 2 named and that was found an answer for: a translator in front that asks
	// Resolve may answer it from now on. It is called from any goroutine.
	Want(f Flow2, now time.Time)
}

// Flow2 is what a notification of format 2 names.
type Flow2 struct {
	Sender, Receiver netip.Addr
	SrcPort          uint16
	NRP              uint32
}

// Resolved is the answer for a flow of format 2.
type Resolved struct {
	Context    uint32 // 0: the default one
	Name       string // of the context; empty for the default one
	Sender     Sender // how CNPs leave there
	NRPVersion uint64
	SourceQP   uint32
	PKey       uint16        // as it is sent
	Entry      flowmap.Entry // without one, Version is zero: the NRP map names the Source QP, and it does not age
}

// TupleMap is the part of the Source-QP map that Resolve asks.
type TupleMap interface {
	LookupTupleAlone(t flowmap.Tuple, now time.Time) (flowmap.Entry, flowmap.Verdict)
}

// Resolve decides a flow of format 2 as a notification from a trusted node would be, but for limits, and uses nothing up: false
// where that would get no CNP. What it says holds until the NRP map, the configuration, a place or, by OnAnswer, the Source-QP
// map changes, and until Entry ages.
func (t *Translator) Resolve(f Flow2, flows TupleMap, now time.Time) (Resolved, bool) {
	s := t.settings.Load()
	n := named{
		Notification: message.Notification{Src: f.Sender, Dst: f.Receiver, SrcPort: f.SrcPort, Proto: protoUDP, DstPort: roce.UDPPort},
		nrp:          f.NRP, format: message.Format2,
	}
	p, e, refused := placeOf(s, t.core.nrps, &n)
	if refused != 0 {
		return Resolved{}, false
	}
	r := Resolved{Context: p.id, Name: e.Context, Sender: p.sender, NRPVersion: e.Version, SourceQP: e.SourceQP, PKey: s.CNPPKey}
	if e.ForQP() {
		return r, true
	}
	var verdict flowmap.Verdict
	r.Entry, verdict = flows.LookupTupleAlone(n.tuple(p), now)
	r.SourceQP = r.Entry.SourceQP
	if r.Entry.PKey != 0 {
		r.PKey = r.Entry.PKey
	}
	return r, verdict == flowmap.Hit
}

// Share lets the Translator take shares and receipt numbers elsewhere from now on, and no longer by its own configuration:
// from what begin gives, which is told how many receipt numbers were used. A number whose CNP could not be sent is then not used again.
// An error is begin's, and changes nothing.
func (t *Translator) Share(begin func(receipts uint64) (Shares, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := begin(t.receipt)
	if err == nil {
		t.core.shares = s
	}
	return err
}

// Unshare ends Share. end says how many receipt numbers have been used.
func (t *Translator) Unshare(end func() (receipts uint64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.receipt = max(t.receipt, end())
	t.core.shares = nil
}

func (c *core) sharedShare(k qpKey, d *decision) evidence.Outcome {
	outcome, receipt, err := c.shares.Take(k.context, k.sender, k.sourceQP)
	if err != nil {
		d.rec.Err = err.Error()
		return pncv1.Outcome_OUTCOME_PROXY_SEND_ERROR
	}
	d.number = receipt
	return outcome
}

// Decided is one notification that was decided in front of this Translator, by the same rules.
type Decided struct {
	Format   message.Format
	Datagram Datagram
	Outcome  evidence.Outcome
	SourceQP uint32 // of the answer, where one was found
	Version  uint64 // of that answer's entry in the Source-QP map; zero without one
	NRP      uint64 // version of the entry in the NRP map; zero without one
	Receipt  uint64 // of the CNP; zero when none was sent
	Latency  time.Duration
}

// Record offers the record of a notification that was decided and counted elsewhere. flows has the map's entry for it: Deps.FlowMap
// is for what is decided here.
func (t *Translator) Record(x *Decided, flows FlowMap, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.slots[0]
	d.skip(x.Format, &x.Datagram, now, x.Outcome)
	r := &d.rec.Translation
	trusted := x.Outcome != pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN && x.Outcome != pncv1.Outcome_OUTCOME_PROXY_TTL_TOO_LOW
	if trusted && !t.settings.Load().Sampled {
		r.Gap = t.core.nodes.observe(x.Format, x.Datagram.From, x.Datagram.To, now)
	}
	context := t.recordNRP(x, &d.rec)
	if x.Version != 0 {
		if e, verdict := recorded(x, flows, &d.rec.Flow, context); verdict != flowmap.Miss && e.Version == x.Version {
			r.Entry, d.rec.Flow.DestQP = entryOf(&e), e.Key.DestQP
		} else { // it has changed since
			r.Entry = evidence.MapEntry{SourceQP: x.SourceQP, Version: x.Version}
		}
	}
	if x.Outcome == pncv1.Outcome_OUTCOME_PROXY_TRANSLATED {
		r.SourceQP, r.Receipt, r.ReceiptPort, r.Latency = x.SourceQP, x.Receipt, message.EventPort(x.Receipt), x.Latency
	}
	t.recorder.Offer(&d.rec)
}

// recordNRP puts down what the NRP map has of a decision, and gives the context.
func (t *Translator) recordNRP(x *Decided, rec *evidence.Record) (context uint32) {
	if x.NRP == 0 {
		return 0
	}
	rec.Translation.NRPVersion = x.NRP
	e, ok := t.core.nrps.Lookup(rec.Flow.NRP, rec.Flow.Sender, rec.Flow.Receiver)
	if !ok || e.Version != x.NRP { // it has changed since
		return 0
	}
	rec.Flow.Context = e.Context
	if p := t.settings.Load().contexts[e.Context]; p != nil {
		return p.id
	}
	return 0
}

// recorded looks up the entry that a decision was made by.
func recorded(x *Decided, flows FlowMap, f *evidence.Flow, context uint32) (flowmap.Entry, flowmap.Verdict) {
	if x.Format == message.Format2 {
		return flows.LookupTuple(flowmap.Tuple{Context: context, Sender: f.Sender, Receiver: f.Receiver, SrcPort: f.SrcPort}, x.Datagram.At)
	}
	return flows.Lookup(flowmap.Key{Sender: f.Sender, Receiver: f.Receiver, DestQP: f.DestQP}, x.Datagram.At)
}
