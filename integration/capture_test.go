package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
	"pncd/internal/testvectors"
	"pncd/proxyagent/evidence"
)

func outcomeName(o pncv1.Outcome) (name, part string) {
	return evidence.Name(o), evidence.PartOf(o).String()
}

// bothWays makes the lab serve the receiver's prefix too, and watch both links: data of either host can be
// congested.
func bothWays(t *testing.T) map[string]string {
	t.Helper()
	files := edited(t, "proxy.pncd.yaml", "  accept_from:", `    - prefix: 10.2.0.0/24
      mode: originate
      next_hop: 10.255.0.1
  accept_from:`)
	for name, text := range edited(t, "congestion.pncd.yaml", "interfaces: [eth2]", "interfaces: [eth1, eth2]") {
		files[name] = text
	}
	return files
}

// markBothWays starts the congestion once both hosts' proxies are known.
func markBothWays(t *testing.T, b *bed.Bed, p bed.Plan) (atSender, atReceiver *cnps) {
	t.Helper()
	for _, a := range []string{"eth1", "eth2"} {
		if err := b.MarkLink(testContext(t), a, true); err != nil {
			t.Fatal(err)
		}
	}
	waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	waitResolve(t, b, p.Receiver, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	return watchCNPs(t, b, bed.Sender), watchCNPs(t, b, bed.Receiver)
}

func TestCapturedPairIsLearnedAndEachHalfGetsItsCNP(t *testing.T) {
	dir := testvectors.Dir(t)
	for _, c := range []struct {
		file               string
		sender, receiver   uint32 // QPs of the capture's first host and of the other
		source             pncv1.FlowSource
		answersOnly, ended bool // the other host sends no data; DREQ ends the pair
	}{
		{"nvme-discover.pcap", 0xdc, 0x8d, pncv1.FlowSource_FLOW_SOURCE_CM, false, true},
		{"cm-write.pcap", 0x137, 0x167, pncv1.FlowSource_FLOW_SOURCE_CM, false, true},
		{"perftest-no-cm.pcap", 0x18b, 0x18b, pncv1.FlowSource_FLOW_SOURCE_PORT, true, false},
	} {
		t.Run(c.file, func(t *testing.T) {
			b, p := upBed(t, bothWays(t)), bed.PlanFor(4)
			atSender, atReceiver := markBothWays(t, b, p)
			r, pair := replay(t, b, p, filepath.Join(dir, c.file))
			if want := (labtraffic.Pair{LocalQPN: c.sender, PeerQPN: c.receiver}); pair != want {
				t.Fatalf("the capture's pair is %+v, want %+v", pair, want)
			}
			for _, f := range []*pncv1.Flow{
				waitLearned(t, b, p.Sender, p.Receiver, c.receiver, c.sender),
				waitLearned(t, b, p.Receiver, p.Sender, c.sender, c.receiver),
			} {
				if f.GetSource() != c.source {
					t.Errorf("learned by %v, want %v", f.GetSource(), c.source)
				}
			}
			wait(t, b, "CNPs", func(context.Context) error {
				got, err := atSender.check(p.Receiver, p.Sender, c.sender)
				if err != nil {
					t.Fatal(err)
				}
				back, err := atReceiver.check(p.Sender, p.Receiver, c.receiver)
				if err != nil {
					t.Fatal(err)
				}
				if got == 0 || (back == 0 && !c.answersOnly) {
					return fmt.Errorf("%d at the sender, %d at the receiver", atSender.count(), atReceiver.count())
				}
				return nil
			})
			if c.answersOnly && atReceiver.count() != 0 {
				t.Errorf("%d CNPs at a host that sends only answers", atReceiver.count())
			}
			r.Close()
			if !c.ended {
				return
			}
			wait(t, b, "both directions closed", func(ctx context.Context) error {
				f, err := flow(ctx, b, p.Sender, p.Receiver, c.receiver)
				back, berr := flow(ctx, b, p.Receiver, p.Sender, c.sender)
				if err := errors.Join(err, berr); err != nil {
					return err
				}
				if closed := pncv1.FlowState_FLOW_STATE_CLOSED; f.GetState() != closed || back.GetState() != closed {
					return fmt.Errorf("%v and %v", f.GetState(), back.GetState())
				}
				return nil
			})
		})
	}
}

func TestDynamicallyConnectedTransportIsCountedAndNeverLearned(t *testing.T) {
	dir := testvectors.Dir(t)
	b, p := upBed(t, nil), bed.PlanFor(4)
	c, err := labtraffic.ReadCapture(filepath.Join(dir, "dc-negative.pcap"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Mark(testContext(t), true); err != nil {
		t.Fatal(err)
	}
	seen := watchCNPs(t, b, bed.Sender)
	waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	r, err := labtraffic.NewReplay(labtraffic.ReplayConfig{
		Capture: c, Loop: true, Local: b.Host(bed.Sender, p.Sender), Peer: b.Host(bed.Receiver, p.Receiver),
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := inBackground(t, "replaying", r.Run)
	wait(t, b, "unsupported packets", func(ctx context.Context) error {
		n, err := b.Proxy.Counter(ctx, "learner", "unsupported{transport=dc}")
		if err == nil && (n < 200 || r.Passes() < 20) {
			err = fmt.Errorf("%d unsupported packets counted, %d passes", n, r.Passes())
		}
		return err
	})
	stop()
	s, err := b.Proxy.Status(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if s.GetFlowsKnown() != 0 {
		t.Errorf("%d Source QPs are known, want none", s.GetFlowsKnown())
	}
	list, err := b.Proxy.Flows.ListFlows(testContext(t), &pncv1.ListFlowsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list.GetFlows() {
		if f.GetSourceQp() != 0 || f.GetState() != pncv1.FlowState_FLOW_STATE_UNSUPPORTED {
			t.Errorf("flow to 0x%06x: %v, Source QP 0x%06x", f.GetDestinationQp(), f.GetState(), f.GetSourceQp())
		}
	}
	if n := seen.count(); n != 0 {
		t.Errorf("%d CNPs were sent", n)
	}
}
