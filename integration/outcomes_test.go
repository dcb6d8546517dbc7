package integration

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// ledger is what a node's exact counters say of one part.
type ledger struct {
	received, sum uint64
	by            map[string]uint64
}

func ledgerOf(ctx context.Context, n *bed.Node, part string) (ledger, error) {
	l := ledger{by: map[string]uint64{}}
	r, err := n.Records.ListCounters(ctx, &pncv1.ListCountersRequest{})
	if err != nil {
		return l, err
	}
	for _, c := range r.GetCounters() {
		switch {
		case c.GetPart() != part:
		case c.GetName() == "received":
			l.received = c.GetValue()
		default:
			l.sum += c.GetValue()
			l.by[c.GetName()] = c.GetValue()
		}
	}
	return l, nil
}

// otherwise are the outcomes of congestion events that were not notified, and not paced either.
func (l ledger) otherwise() map[string]uint64 {
	m := maps.Clone(l.by)
	maps.DeleteFunc(m, func(name string, _ uint64) bool { return name == "sent" || strings.HasPrefix(name, "paced") })
	return m
}

// Every congestion event and every notification ends in exactly one named outcome, and each accepted
// notification is one CNP: counted by the daemons, on the wire in between, and at the sender. The load is
// more than the pacing lets through, so several outcomes take part.
func TestOutcomesAddUpToWhatTheWireCarriedUnderLoad(t *testing.T) {
	files := edited(t, "congestion.pncd.yaml", "  source_ipv6:", "  pace: {per_flow: 40, total: 1000}\n  source_ipv6:")
	for name, text := range edited(t, "proxy.pncd.yaml", "  accept_from:", "  pace: {per_qp: 5, total: 1000, burst: 20}\n  accept_from:") {
		files[name] = text
	}
	b, p := upBed(t, files), bed.PlanFor(4)
	notified := countNotifications(t, b)
	seen := watchCNPs(t, b, bed.Sender)
	waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	if err := b.Mark(testContext(t), true); err != nil {
		t.Fatal(err)
	}
	// Pairs that are learned, and a flow in one direction that never is.
	g, stopKnown := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 3000, Flows: labtraffic.FlowConfig{QPs: 32, CM: true}})
	_, stopOneWay := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 500, Flows: labtraffic.FlowConfig{OneWay: true, LocalQPN: 0x9000, PeerQPN: 0xA000}})
	var at, to ledger
	read := func(ctx context.Context) error {
		var err error
		if at, err = ledgerOf(ctx, b.Congestion, "congestion-node"); err != nil {
			return err
		}
		to, err = ledgerOf(ctx, b.Proxy, "proxy")
		return err
	}
	wait(t, b, "load", func(ctx context.Context) error {
		if err := read(ctx); err != nil {
			return err
		}
		for _, o := range []struct {
			l    ledger
			name string
		}{{at, "sent"}, {at, "paced"}, {to, "translated"}, {to, "paced"}, {to, "map-undecided"}} {
			if o.l.by[o.name] < 50 {
				return fmt.Errorf("outcome %s: %d; %d messages", o.name, o.l.by[o.name], g.Messages())
			}
		}
		return nil
	})
	stopKnown()
	stopOneWay()
	// What is on its way arrives; then nothing may be missing anywhere.
	wait(t, b, "the counts to meet", func(ctx context.Context) error {
		if err := read(ctx); err != nil {
			return err
		}
		wire, cnps := notified(), uint64(seen.count())
		switch {
		case at.sum != at.received:
			return fmt.Errorf("congestion node: %d outcomes of %d events", at.sum, at.received)
		case wire != at.by["sent"]:
			return fmt.Errorf("%d notifications on the wire, %d said to be sent", wire, at.by["sent"])
		case to.received != wire:
			return fmt.Errorf("%d notifications received by the proxy, %d on the wire", to.received, wire)
		case to.sum != to.received:
			return fmt.Errorf("proxy: %d outcomes of %d notifications", to.sum, to.received)
		case cnps != to.by["translated"]:
			return fmt.Errorf("%d CNPs at the sender, %d said to be translated", cnps, to.by["translated"])
		}
		return nil
	})
	t.Logf("congestion node: %v; proxy: %v", nonzero(at.by), nonzero(to.by))
}

func nonzero(m map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for k, v := range m {
		if v > 0 {
			out[k] = v
		}
	}
	return out
}

func TestNotificationFromOutsideOfTheDomainBecomesNoCNP(t *testing.T) {
	b, p := upBed(t, edited(t, "proxy.pncd.yaml", `accept_from: [10.255.0.0/24, "fd00:255::/64"]`, "accept_from: [192.0.2.0/24]")), bed.PlanFor(4)
	seen := watchCNPs(t, b, bed.Sender)
	g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300})
	waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	waitLearned(t, b, p.Sender, p.Receiver, g.Pairs()[0].PeerQPN, g.Pairs()[0].LocalQPN)
	if err := b.Mark(testContext(t), true); err != nil {
		t.Fatal(err)
	}
	wait(t, b, "refusals", func(ctx context.Context) error {
		n, err := outcome(ctx, b.Proxy, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN)
		if err == nil && n < 50 {
			err = fmt.Errorf("%d notifications were refused", n)
		}
		return err
	})
	if n := seen.count(); n != 0 {
		t.Errorf("%d CNPs were sent for a stranger", n)
	}
}
