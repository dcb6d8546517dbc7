package translator

import (
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
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

// Decided is one notification of format 1 that was decided in front of this Translator, by the same rules.
type Decided struct {
	Datagram Datagram
	Outcome  evidence.Outcome
	SourceQP uint32 // of the answer, where one was found
	Version  uint64 // of that answer
	Receipt  uint64 // of the CNP; zero when none was sent
	Latency  time.Duration
}

// Record offers the record of a notification that was decided and counted elsewhere. flows has the map's entry for it: Deps.FlowMap
// is for what is decided here.
func (t *Translator) Record(x *Decided, flows FlowMap, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.slots[0]
	d.skip(message.Format1, &x.Datagram, now, x.Outcome)
	r := &d.rec.Translation
	trusted := x.Outcome != pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN && x.Outcome != pncv1.Outcome_OUTCOME_PROXY_TTL_TOO_LOW
	if trusted && t.settings.Load().follows(message.Format1) {
		r.Gap = t.core.nodes.observe(message.Format1, x.Datagram.From, x.Datagram.To, now)
	}
	if x.Version != 0 {
		k := flowmap.Key{Sender: d.rec.Flow.Sender, Receiver: d.rec.Flow.Receiver, DestQP: d.rec.Flow.DestQP}
		if e, verdict := flows.Lookup(k, x.Datagram.At); verdict != flowmap.Miss && e.Version == x.Version {
			r.Entry = entryOf(&e)
		} else { // it has changed since
			r.Entry = evidence.MapEntry{SourceQP: x.SourceQP, Version: x.Version}
		}
	}
	if x.Outcome == pncv1.Outcome_OUTCOME_PROXY_TRANSLATED {
		r.SourceQP, r.Receipt, r.ReceiptPort, r.Latency = x.SourceQP, x.Receipt, message.EventPort(x.Receipt), x.Latency
	}
	t.recorder.Offer(&d.rec)
}
