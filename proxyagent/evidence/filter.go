package evidence

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// ErrClosed is given by Next when the Watcher was closed.
var ErrClosed = errors.New("evidence: watch closed")

// Filter chooses records; the zero value chooses all.
type Filter struct {
	Sender, Receiver netip.Addr // any when invalid
	DestQP           uint32     // looked at with HasDestQP only
	HasDestQP        bool
	Context          *string    // of the flow; any when nil, the default one when empty
	Outcomes         OutcomeSet // any when empty
	Since, Until     time.Time  // from Since on, before Until; unbounded when zero
}

// OutcomeSet is a set of outcomes.
type OutcomeSet uint64

// Add puts an outcome into the set; numbers that the enum does not have are ignored.
func (s *OutcomeSet) Add(o Outcome) {
	if o >= 0 && o < maxOutcomes {
		*s |= 1 << o
	}
}

// Has reports whether the outcome is in the set.
func (s OutcomeSet) Has(o Outcome) bool { return o >= 0 && o < maxOutcomes && s&(1<<o) != 0 }

// Match reports whether the filter chooses rec.
func (f *Filter) Match(rec *Record) bool {
	switch {
	case f.Outcomes != 0 && !f.Outcomes.Has(rec.Outcome),
		f.Sender.IsValid() && f.Sender != rec.Flow.Sender,
		f.Receiver.IsValid() && f.Receiver != rec.Flow.Receiver,
		f.Context != nil && (!rec.Flow.Sender.IsValid() || *f.Context != rec.Flow.Context),
		f.HasDestQP && (!rec.Flow.Sender.IsValid() || f.DestQP != rec.Flow.DestQP),
		!f.Since.IsZero() && rec.At.Before(f.Since),
		!f.Until.IsZero() && !rec.At.Before(f.Until):
		return false
	}
	return true
}

// FilterFromProto reads the API's filter; nil chooses all. An error names the field and the rule.
func FilterFromProto(p *pncv1.RecordFilter) (Filter, error) {
	var f Filter
	if p == nil {
		return f, nil
	}
	var err error
	if f.Sender, err = optionalAddr("filter.sender", p.GetSender()); err != nil {
		return Filter{}, err
	}
	if f.Receiver, err = optionalAddr("filter.receiver", p.GetReceiver()); err != nil {
		return Filter{}, err
	}
	f.Context = p.Context
	if p.DestinationQp != nil {
		f.DestQP, f.HasDestQP = p.GetDestinationQp(), true
		if f.DestQP >= 1<<24 {
			return Filter{}, fmt.Errorf("filter.destination_qp: %d: must be less than 2^24", f.DestQP)
		}
	}
	for _, o := range p.GetOutcomes() {
		if PartOf(o) == PartNone {
			return Filter{}, fmt.Errorf("filter.outcomes: %d: no such outcome", int32(o))
		}
		f.Outcomes.Add(o)
	}
	if t := p.GetSince(); t != nil {
		if err := t.CheckValid(); err != nil {
			return Filter{}, fmt.Errorf("filter.since: %w", err)
		}
		f.Since = t.AsTime()
	}
	if t := p.GetUntil(); t != nil {
		if err := t.CheckValid(); err != nil {
			return Filter{}, fmt.Errorf("filter.until: %w", err)
		}
		f.Until = t.AsTime()
	}
	return f, nil
}

func optionalAddr(field, s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s: %q: must be an IP address", field, s)
	}
	return a.Unmap(), nil
}
