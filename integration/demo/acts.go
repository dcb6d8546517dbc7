package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
	"pncd/proxyagent/evidence"
)

// learned waits until the proxy knows the pair, both ways.
func (d *demo) learned(ctx context.Context, p labtraffic.Pair) error {
	for _, way := range []struct {
		sender, receiver string
		dest, source     uint32
	}{
		{d.plan.Sender.String(), d.plan.Receiver.String(), p.PeerQPN, p.LocalQPN},
		{d.plan.Receiver.String(), d.plan.Sender.String(), p.LocalQPN, p.PeerQPN},
	} {
		var f *pncv1.Flow
		err := d.bed.Wait(ctx, d.opt.Patience, func(ctx context.Context) error {
			r, err := d.bed.Proxy.Flows.GetFlow(ctx, &pncv1.GetFlowRequest{
				Sender: way.sender, Receiver: way.receiver, DestinationQp: way.dest,
			})
			if err != nil {
				return err
			}
			if f = r.GetFlow(); !known(f.GetState()) {
				return fmt.Errorf("%v: %s", f.GetState(), f.GetDetail())
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("the proxy does not know the Source QP of %s to %s, Destination QP 0x%x: %w", way.sender, way.receiver, way.dest, err)
		}
		d.say.at(f.GetLearnedAt().AsTime(), "proxy learned by %s: %s to %s, Destination QP 0x%x -> Source QP 0x%x%s",
			sourceName(f.GetSource()), way.sender, way.receiver, way.dest, f.GetSourceQp(), votes(f))
		if f.GetSourceQp() != way.source {
			return fmt.Errorf("the proxy names 0x%x, the truth is 0x%x", f.GetSourceQp(), way.source)
		}
	}
	return nil
}

func known(s pncv1.FlowState) bool {
	return s == pncv1.FlowState_FLOW_STATE_LEARNED || s == pncv1.FlowState_FLOW_STATE_CONFIRMED
}

func sourceName(s pncv1.FlowSource) string {
	switch s {
	case pncv1.FlowSource_FLOW_SOURCE_CM:
		return "connection management"
	case pncv1.FlowSource_FLOW_SOURCE_PORT:
		return "votes with UDP source ports"
	case pncv1.FlowSource_FLOW_SOURCE_PSN:
		return "votes by PSN"
	}
	return s.String()
}

func votes(f *pncv1.Flow) string {
	if f.GetVotes() == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d votes)", f.GetVotes())
}

// wanted is how many joined events give the latency figures.
const wanted = 100

// actOne marks CE and follows one event to the sender, then many for their latency.
func (d *demo) actOne(ctx context.Context, t *traffic) error {
	d.say.title("Act 1: congestion of a flow that the proxy knows")
	if err := d.learned(ctx, t.pair); err != nil {
		return err
	}
	marking := time.Now()
	if err := d.bed.Mark(ctx, true); err != nil {
		return err
	}
	d.say.at(marking, "the link behind the congestion node starts to mark CE")
	var joined []event
	err := d.bed.Wait(ctx, d.opt.Patience, func(context.Context) error {
		if joined = d.seen.joined(t.pair.PeerQPN); len(joined) < wanted {
			return fmt.Errorf("%d of %d events were followed to a CNP; %s", len(joined), wanted, d.seen.summary())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("no CNP for the congested flow: %w", err)
	}
	e := joined[0]
	d.say.at(e.congestion.GetAt().AsTime(), "congestion node: %s, flow %s, Destination QP 0x%x, event number %d to proxy %s",
		e.congestion.GetCongestion().GetSource(), flowName(e.congestion), e.congestion.GetFlow().GetDestinationQp(),
		e.congestion.GetCongestion().GetEvent().GetPort(), e.congestion.GetCongestion().GetProxy())
	tr := e.translation.GetTranslation()
	d.say.at(e.translation.GetAt().AsTime(), "proxy: event number %d from %s, Source QP 0x%x, receipt port %d, handed on after %v",
		tr.GetEvent().GetPort(), tr.GetCongestionNode(), tr.GetSourceQp(), tr.GetReceiptPort(), tr.GetLatency().AsDuration().Round(time.Microsecond/10))
	d.say.at(e.cnp.At, "sender: CNP from %v, Destination QP 0x%x, receipt port %d, ICRC %s",
		e.cnp.From, e.cnp.DestinationQP, e.cnp.ReceiptPort, valid(e.cnp.ICRCValid))
	for _, e := range joined {
		if err := d.check(e, t.pair.LocalQPN); err != nil {
			return err
		}
	}
	lat := make([]time.Duration, len(joined))
	for i, e := range joined {
		lat[i] = e.cnp.At.Sub(e.congestion.GetAt().AsTime())
	}
	slices.Sort(lat)
	d.say.plain("  from the CE mark seen to the CNP at the sender, over %d events: median %v, 90 %% within %v",
		len(lat), lat[len(lat)/2].Round(time.Microsecond), lat[len(lat)*9/10].Round(time.Microsecond))
	return nil
}

func flowName(r *pncv1.Record) string {
	f := r.GetFlow()
	return fmt.Sprintf("%s to %s port %d", f.GetSender(), f.GetReceiver(), f.GetSourcePort())
}

func valid(ok bool) string {
	if ok {
		return "valid"
	}
	return "INVALID"
}

// check holds what must be true of a CNP.
func (d *demo) check(e event, want uint32) error {
	switch {
	case e.cnp.DestinationQP != want:
		return fmt.Errorf("a CNP names QP 0x%x, the sender's is 0x%x", e.cnp.DestinationQP, want)
	case !e.cnp.ICRCValid:
		return errors.New("a CNP's ICRC is wrong")
	case e.cnp.From != d.plan.Receiver || e.cnp.To != d.plan.Sender:
		return fmt.Errorf("a CNP goes from %v to %v", e.cnp.From, e.cnp.To)
	}
	return nil
}

// closing ends the first flow; where a DREQ ends it, the proxy must notice.
func (d *demo) closing(ctx context.Context, t *traffic) error {
	if !t.held {
		return nil
	}
	t.close()
	err := d.bed.Wait(ctx, d.opt.Patience, func(ctx context.Context) error {
		r, err := d.bed.Proxy.Flows.GetFlow(ctx, &pncv1.GetFlowRequest{
			Sender: d.plan.Sender.String(), Receiver: d.plan.Receiver.String(), DestinationQp: t.pair.PeerQPN,
		})
		if err == nil && r.GetFlow().GetState() != pncv1.FlowState_FLOW_STATE_CLOSED {
			err = fmt.Errorf("%v", r.GetFlow().GetState())
		}
		if err == nil {
			d.say.at(r.GetFlow().GetChangedAt().AsTime(), "DREQ and DREP passed: the proxy shows the pair as closed")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the pair is not shown as closed: %w", err)
	}
	return nil
}

// strangerQP is the Destination QP of the flow that nobody can name the sender of.
const strangerQP = 0x00BEEF

// actTwo sends data whose answers never pass: congestion, a notification, and no CNP.
func (d *demo) actTwo(ctx context.Context) error {
	d.say.title("Act 2: congestion of a flow whose answers take another path")
	if err := d.bed.Mark(ctx, false); err != nil {
		return err
	}
	g, err := labtraffic.NewGenerator(labtraffic.GeneratorConfig{
		Local: d.bed.Host(bed.Sender, d.plan.Sender), Peer: d.bed.Host(bed.Receiver, d.plan.Receiver), Rate: 500,
		Flows: labtraffic.FlowConfig{OneWay: true, LocalQPN: 0x000D0E, PeerQPN: strangerQP},
	})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- g.Run(run) }()
	d.say.at(time.Now(), "traffic starts: RDMA WRITE in one direction to Destination QP 0x%x", strangerQP)
	if err = d.undecided(ctx); err == nil {
		err = d.silence(ctx)
	}
	cancel()
	return errors.Join(err, <-done)
}

// undecided waits until the proxy has seen the flow. Before its tap has handed the first packets over, a
// notification would be a miss.
func (d *demo) undecided(ctx context.Context) error {
	var f *pncv1.Flow
	err := d.bed.Wait(ctx, d.opt.Patience, func(ctx context.Context) error {
		r, err := d.bed.Proxy.Flows.GetFlow(ctx, &pncv1.GetFlowRequest{
			Sender: d.plan.Sender.String(), Receiver: d.plan.Receiver.String(), DestinationQp: strangerQP,
		})
		f = r.GetFlow()
		return err
	})
	if err != nil {
		return fmt.Errorf("the proxy does not list the flow: %w", err)
	}
	if f.GetState() != pncv1.FlowState_FLOW_STATE_UNDECIDED || f.GetSourceQp() != 0 {
		return fmt.Errorf("the proxy shows the flow as %v with Source QP 0x%x; one direction decides nothing", f.GetState(), f.GetSourceQp())
	}
	d.say.at(time.Now(), "proxy lists the flow: undecided")
	return nil
}

func (d *demo) silence(ctx context.Context) error {
	before := d.seen.cnpsTo(0)
	marking := time.Now()
	if err := d.bed.Mark(ctx, true); err != nil {
		return err
	}
	d.say.at(marking, "the link behind the congestion node starts to mark CE")
	var sent, got *pncv1.Record
	err := d.bed.Wait(ctx, d.opt.Patience, func(context.Context) error {
		if sent, got = d.seen.silent(strangerQP); got == nil {
			return fmt.Errorf("no record of it; %s", d.seen.summary())
		}
		if n := d.seen.count(strangerQP); n < wanted {
			return fmt.Errorf("%d of %d notifications were refused", n, wanted)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the proxy gives no reason for its silence: %w", err)
	}
	d.say.at(sent.GetAt().AsTime(), "congestion node: event number %d to proxy %s, Destination QP 0x%x",
		sent.GetCongestion().GetEvent().GetPort(), sent.GetCongestion().GetProxy(), sent.GetFlow().GetDestinationQp())
	o := got.GetOutcome()
	d.say.at(got.GetAt().AsTime(), "proxy: event number %d: %s", got.GetTranslation().GetEvent().GetPort(), evidence.Name(o))
	d.say.plain("              %s", evidence.Help(o))
	if o != pncv1.Outcome_OUTCOME_PROXY_MAP_UNDECIDED {
		return fmt.Errorf("the reason is %s; a flow seen one way must be undecided", evidence.Name(o))
	}
	if after := d.seen.cnpsTo(0); after != before {
		return fmt.Errorf("%d CNPs arrived at the sender for a flow that nobody knows", after-before)
	}
	d.say.plain("  %d notifications, no CNP: never a guess.", d.seen.count(strangerQP))
	return nil
}
