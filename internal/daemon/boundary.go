package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/boundary"
	"pncd/internal/config"
	"pncd/proxyagent/evidence"
)

// borderFilter is the border filter with what of its counters is among the outcomes already.
type borderFilter struct {
	*boundary.Filter

	mu      sync.Mutex
	counted boundary.Counts

	hold *hold // while a policy is in force
}

// boundaryHold is the right to the tables: two pncds would put theirs back without end.
const boundaryHold = "boundary"

// Apply puts a policy in force where no other pncd of the network namespace has one. Without one it leaves that of another.
func (b *borderFilter) Apply(p *boundary.Policy) error {
	if b.hold != nil {
		err := b.Filter.Apply(p)
		if p == nil && err == nil {
			b.release()
		}
		return err
	}
	if p == nil {
		if held(boundaryHold) {
			return nil
		}
		return b.Filter.Apply(nil)
	}
	var err error
	if b.hold, err = takeHold(boundaryHold); err != nil {
		return fmt.Errorf("%w: a network namespace has room for one border filter: stop that pncd, or leave the section out of one of the two", err)
	}
	if err = b.Filter.Apply(p); err != nil {
		b.release()
	}
	return err
}

// Run keeps the policy in force, and gives the right to it back at the end.
func (b *borderFilter) Run(ctx context.Context) error {
	defer b.release()
	return b.Filter.Run(ctx)
}

func (b *borderFilter) release() {
	b.hold.release()
	b.hold = nil
}

// boundarySettings gives the policy of a configuration; nil without the section.
func boundarySettings(c *config.Config) *boundary.Policy {
	b := c.Boundary
	if b == nil {
		return nil
	}
	limit := func(pps, burst int) boundary.Limit {
		if pps == 0 {
			return boundary.Limit{}
		}
		return boundary.Limit{Rate: uint64(pps), Burst: uint32(burst)}
	}
	out := &boundary.Policy{
		Ports: b.Ports, Borders: b.BorderInterfaces, Family: boundary.Family(b.Family), RefuseCNPs: b.RefuseCNPs, TTLMin: b.TTLMin,
		Total:     limit(b.Limits.TotalPPS, b.Limits.TotalBurst),
		PerSource: limit(b.Limits.PerSourcePPS, b.Limits.PerSourceBurst),
		Sources:   uint32(b.Limits.Sources), SourceAge: b.Limits.SourceAge.Duration,
	}
	if p := c.Proxy; p != nil {
		out.AcceptFrom, out.AcceptInterfaces = prefixes(b.AcceptFrom), p.AcceptInterfaces
		for _, a := range []config.Addr{p.IPv4, p.IPv6} {
			if a.IsValid() {
				out.Own = append(out.Own, a.Addr)
			}
		}
	}
	return out
}

// openBoundary programs the filter before any socket is open. Without the section it removes what a run that had
// one left behind; where that isn't allowed, there is nothing to remove either.
func (d *Daemon) openBoundary(c *config.Config) error {
	p := boundarySettings(c)
	err := d.boundary.Apply(p)
	if p == nil && err != nil {
		d.log.WithError(err).Debug("no border filter of an earlier run was looked for")
		return nil
	}
	return err
}

// changeBoundary applies another configuration's filter; undo goes back.
func (d *Daemon) changeBoundary(old, next *config.Config) (undo func(), err error) {
	before, after := boundarySettings(old), boundarySettings(next)
	if before == nil && after == nil {
		return func() {}, nil
	}
	if err := d.boundary.Apply(after); err != nil {
		return nil, err
	}
	return func() {
		if err := d.boundary.Apply(before); err != nil {
			d.log.WithError(err).Error("the border filter is not the one before")
		}
	}, nil
}

// boundaryOutcomes are the counters of notifications that this proxy would have got.
var boundaryOutcomes = []struct {
	counter string
	outcome evidence.Outcome
}{
	{boundary.CounterBorderIn, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN},
	{boundary.CounterNotOurDomain, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN},
	{boundary.CounterNotOurAddress, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN},
	{boundary.CounterTTLTooLow, pncv1.Outcome_OUTCOME_PROXY_TTL_TOO_LOW},
	{boundary.CounterPerSourceLimit, pncv1.Outcome_OUTCOME_PROXY_RATE_LIMITED},
	{boundary.CounterTotalLimit, pncv1.Outcome_OUTCOME_PROXY_RATE_LIMITED},
}

// countBoundary reads the kernel's counters into the outcomes, one record for all of a kind.
func (d *Daemon) countBoundary() boundary.Counts {
	b := d.boundary
	b.mu.Lock()
	defer b.mu.Unlock()
	now, err := b.Counts()
	if err != nil {
		d.log.WithError(err).Debug("reading the border filter's counters failed; the next time counts all")
	}
	if d.config.Load().Proxy != nil {
		for _, o := range boundaryOutcomes {
			n := now[o.counter] - b.counted[o.counter]
			if n == 0 {
				continue
			}
			d.recorder.Received(evidence.PartProxy, n)
			d.recorder.Count(o.outcome, n)
			d.recorder.Offer(&evidence.Record{At: d.now(), Outcome: o.outcome, Err: fmt.Sprintf("%d stopped by the border filter: %s", n, o.counter)})
		}
	}
	b.counted = now
	return now
}

// boundaryHelp describes the counters, in the order of a packet's way.
var boundaryHelp = []struct{ counter, help string }{
	{boundary.CounterBorderIn, "Notifications that came in by a border interface, stopped."},
	{boundary.CounterBorderOut, "Notifications that would have left by a border interface, stopped."},
	{boundary.CounterCNPOut, "CNPs that would have left by a border interface, stopped."},
	{boundary.CounterNotOurDomain, "Notifications to this node from an address or by an interface that is not accepted, stopped."},
	{boundary.CounterNotOurAddress, "Notifications to an address of this node that is not the proxy's, stopped."},
	{boundary.CounterTTLTooLow, "Notifications to this node with a TTL or hop limit below the least, stopped."},
	{boundary.CounterPerSourceLimit, "Notifications above the rate of one source, stopped."},
	{boundary.CounterTotalLimit, "Notifications above the rate in total, stopped."},
	{boundary.CounterAccepted, "Notifications given to the socket."},
}

func (d *Daemon) boundaryCounts() (out []count) {
	now := d.countBoundary()
	if d.config.Load().Boundary == nil {
		return nil
	}
	for _, c := range boundaryHelp {
		out = append(out, count{part: "boundary", name: c.counter, value: now[c.counter], help: c.help})
	}
	return append(out, count{part: "boundary", name: "mended", value: d.boundary.Status().Mended, help: "Times that somebody else's change of the border filter was undone."})
}

func (d *Daemon) boundaryPart() *pncv1.Part {
	s := d.boundary.Status()
	p := &pncv1.Part{Name: "boundary", State: pncv1.PartState_PART_STATE_READY, Detail: s.String()}
	switch {
	case !s.On:
		p.State = pncv1.PartState_PART_STATE_OFF
	case s.Err != nil:
		p.State, p.Detail = pncv1.PartState_PART_STATE_FAILED, s.Err.Error()
	case len(s.Absent) > 0:
		p.State = pncv1.PartState_PART_STATE_FAILED
	}
	return p
}

// Boundary implements api.Node.
func (d *Daemon) Boundary(context.Context) (*pncv1.GetBoundaryResponse, error) {
	s := d.boundary.Status()
	if !s.On {
		return &pncv1.GetBoundaryResponse{}, nil
	}
	out := &pncv1.GetBoundaryResponse{
		Configured: true, Family: string(s.Family), Lacks: s.Lacks, AbsentInterfaces: s.Absent, Mended: s.Mended, Packets: d.countBoundary(),
	}
	rules, err := d.boundary.Ruleset()
	if err = errors.Join(s.Err, err); err != nil {
		out.Error = err.Error()
	}
	out.Ruleset = rules.String()
	return out, nil
}
