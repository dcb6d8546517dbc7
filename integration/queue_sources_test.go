package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// Nothing is marked. A switch agent names a flow, and then a queue only; and at last the statistics of a slow queue show
// its backlog: each time the sender of the flow that fills the link gets a CNP, and the small flow beside it never does.
func TestQueueSourcesNotifyTheTopFlow(t *testing.T) {
	b, p := upBed(t, edited(t, "congestion.pncd.yaml", "  interfaces: [eth2]\n", `  detect:
    qdiscs: [{interface: eth2, interval: 5ms, backlog: 5000}]
    api: {interfaces: [eth2]}
    top_flows: {sample: 1, share: 20, window: 500ms}
`)), bed.PlanFor(4)
	ctx := testContext(t)
	seen := watchCNPs(t, b, bed.Sender)
	big, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 400})
	small, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 30, Flows: labtraffic.FlowConfig{LocalQPN: 0x000222, PeerQPN: 0x000B44, Seed: 3}})
	pair, other := big.Pairs()[0], small.Pairs()[0]
	waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
	waitLearned(t, b, p.Sender, p.Receiver, other.PeerQPN, other.LocalQPN)
	waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)

	// notified waits for another CNP, all of which are for the big flow.
	notified := func(before int) {
		t.Helper()
		wait(t, b, "a CNP", func(context.Context) error {
			if _, err := seen.check(p.Receiver, p.Sender, pair.LocalQPN); err != nil {
				t.Fatal(err)
			}
			if n := seen.count(); n <= before {
				return fmt.Errorf("%d CNPs as before", n)
			}
			return nil
		})
	}
	// sources are those of the notifications that were sent.
	sources := func() (out []string) {
		t.Helper()
		r, err := b.Congestion.Records.ListRecords(ctx, &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Outcomes: []pncv1.Outcome{pncv1.Outcome_OUTCOME_SENT}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range r.GetRecords() {
			if s := rec.GetCongestion().GetSource(); !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return out
	}
	agent, err := b.Congestion.Reports.ReportCongestion(ctx)
	if err != nil {
		t.Fatal(err)
	}
	report := func(r *pncv1.ReportCongestionRequest) {
		t.Helper()
		before := seen.count()
		if err := agent.Send(r); err != nil {
			t.Fatal(err)
		}
		res, err := agent.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := res.GetEvents(); len(e) != 1 || e[0].GetOutcome() != pncv1.Outcome_OUTCOME_SENT || e[0].GetFlow().GetDestinationQp() != pair.PeerQPN {
			t.Fatalf("%v", res)
		}
		notified(before)
	}
	report(&pncv1.ReportCongestionRequest{Interface: "Ethernet12", Queue: "3", Flow: &pncv1.ReportedFlow{
		Sender: p.Sender.String(), Receiver: p.Receiver.String(), SourcePort: uint32(pair.LocalPort), DestinationQp: pair.PeerQPN}})
	report(&pncv1.ReportCongestionRequest{Interface: "eth2"})
	if got, want := sources(), []string{"api Ethernet12 queue 3", "api eth2"}; !slices.Equal(got, want) {
		t.Errorf("notifications of %q, want %q", got, want)
	}

	if _, err := b.Exec(ctx, bed.Congestion, "tc", "qdisc", "add", "dev", "eth2", "root", "tbf", "rate", "1mbit", "burst", "2k", "limit", "30k"); err != nil {
		t.Skipf("the kernel has no tbf: %v", err)
	}
	before := seen.count()
	wait(t, b, "a notification of the queue", func(context.Context) error {
		if got := sources(); !slices.Contains(got, "qdisc eth2") {
			return fmt.Errorf("of %q", got)
		}
		return nil
	})
	notified(before)
	if n, err := b.Congestion.Counter(ctx, "qdisc", "congested{interface=eth2}"); err != nil || n == 0 {
		t.Errorf("congested in %d looks, %v", n, err)
	}
	if n, err := b.Congestion.Counter(ctx, "reports", "reports{result=accepted}"); err != nil || n != 2 {
		t.Errorf("%d reports accepted, %v", n, err)
	}
}
