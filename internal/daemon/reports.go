package daemon

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/detect"
	"pncd/dataplane/roce"
	"pncd/internal/config"
	"pncd/proxyagent/notifier"
)

// reportGate takes the reports of switch agents while the mechanism is on.
type reportGate struct {
	notifier *notifier.Notifier
	links    map[string]config.DetectorLink // whose top flows are known, by interface
	rate     *reportRate
	closed   func()
}

// reportCounts count reports by what became of them.
type reportCounts struct{ accepted, invalid, rateLimited, disabled atomic.Uint64 }

// reportRate bounds how often reports are taken. Its times have the monotonic reading: a clock that is set back stops nothing.
type reportRate struct {
	mu              sync.Mutex
	interval, slack time.Duration
	due             time.Time // of the next one, were there no burst
}

func newReportRate(perSecond, burst int) *reportRate {
	interval := time.Second / time.Duration(perSecond)
	return &reportRate{interval: interval, slack: time.Duration(burst-1) * interval}
}

func (r *reportRate) take(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due.Before(now) {
		r.due = now
	}
	if r.due.Sub(now) > r.slack {
		return false
	}
	r.due = r.due.Add(r.interval)
	return true
}

// reportSpecs are the unit that takes reports, when it is configured.
func (d *Daemon) reportSpecs(c *config.Config, n *notifier.Notifier) []unitSpec {
	s := c.CongestionNode.Detect.API
	if s == nil {
		return nil
	}
	var names []string
	links := map[string]config.DetectorLink{}
	for _, l := range c.ReportedLinks() {
		links[l.Interface] = l
		names = append(names, inContext(l.Context, l.Interface))
	}
	return []unitSpec{{
		name: "reports", key: fmt.Sprintf("reports:%v:%d:%d", names, s.Rate, s.Burst),
		open: func() (runner, error) {
			g := &reportGate{notifier: n, links: links, rate: newReportRate(s.Rate, s.Burst)}
			g.closed = d.reportGates.opened("", g)
			return g, nil
		},
		detail: func() string {
			k := &d.reports
			return fmt.Sprintf("%d accepted, %d refused", k.accepted.Load(), k.invalid.Load()+k.rateLimited.Load()+k.disabled.Load())
		},
	}}
}

// Run implements runner: the API brings the reports.
func (g *reportGate) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Close implements runner.
func (g *reportGate) Close() error {
	g.closed()
	return nil
}

// reportsBackend answers the API.
type reportsBackend struct{ d *Daemon }

// Configured implements api.Reports.
func (b reportsBackend) Configured() error {
	if n := b.d.config.Load().CongestionNode; n == nil || n.Detect.API == nil {
		return api.Precondition(api.ReasonNotConfigured, "this node takes no reports: the configuration has no congestion_node.detect.api section")
	}
	return nil
}

// Refused implements api.Reports.
func (b reportsBackend) Refused() { b.d.reports.invalid.Add(1) }

// Report implements api.Reports.
func (b reportsBackend) Report(r *api.Report) ([]*pncv1.ReportedEvent, error) {
	k, now := &b.d.reports, b.d.now()
	g := b.d.reportGates.get("")
	if g == nil {
		if err := b.Configured(); err != nil {
			return nil, err
		}
		k.disabled.Add(1)
		return nil, api.Precondition(api.ReasonDisabled, "the mechanism is disabled")
	}
	link, known := g.links[r.Interface]
	if r.Flow == nil && !known {
		k.invalid.Add(1)
		return nil, api.Invalid("flow", "is required: %s is none of congestion_node.detect.api.interfaces, whose flows are known", r.Interface)
	}
	if !g.rate.take(now) {
		k.rateLimited.Add(1)
		return nil, api.TooMany("more reports than congestion_node.detect.api.rate and burst allow")
	}
	k.accepted.Add(1)
	source := detect.SourceAPI + " " + r.Interface
	if r.Queue != "" {
		source += " queue " + r.Queue
	}
	if f := r.Flow; f != nil {
		ev := notifier.Event{
			Context: f.Context, Sender: f.Sender, Receiver: f.Receiver, SrcPort: f.SrcPort, DstPort: roce.UDPPort, Proto: protoUDP, DestQP: f.DestQP,
			CECount: r.CECount, QueueDepth: r.Depth, DepthUnit: r.DepthUnit, Source: source, At: now,
		}
		return []*pncv1.ReportedEvent{{Flow: f.Proto(), Outcome: g.notifier.Handle(&ev, now)}}, nil
	}
	var out []*pncv1.ReportedEvent
	q := queueEvent{context: link.Context, link: inContext(link.Context, link.Interface), source: source, depth: r.Depth, unit: r.DepthUnit}
	for _, t := range b.d.tellQueue(g.notifier, &q, now) {
		e := &pncv1.ReportedEvent{Outcome: t.outcome}
		if t.flow.Sender.IsValid() {
			e.Flow = (&api.ReportedFlow{Context: q.context, Sender: t.flow.Sender, Receiver: t.flow.Receiver, SrcPort: t.flow.SrcPort, DestQP: t.flow.DestQP}).Proto()
		}
		out = append(out, e)
	}
	return out, nil
}

// reportCounters are the counts of reports by what became of them.
func (d *Daemon) reportCounters() (out []count) {
	k := &d.reports
	for _, c := range []struct {
		result string
		n      *atomic.Uint64
	}{{"accepted", &k.accepted}, {"invalid", &k.invalid}, {"rate-limited", &k.rateLimited}, {"disabled", &k.disabled}} {
		out = append(out, count{"reports", "reports", "Reports of switch agents, by what became of them; one that is accepted is one event or more.", c.n.Load(), [2]string{"result", c.result}})
	}
	return out
}
