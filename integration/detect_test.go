package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// tcxPrograms counts the eBPF programs on TCX of a node's interfaces.
func tcxPrograms(b *bed.Bed, node string) (n int, err error) {
	err = inNode(b.Lab, node, func() error {
		all, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, ifc := range all {
			for _, hook := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
				r, err := link.QueryPrograms(link.QueryOptions{Target: ifc.Index, Attach: hook})
				if err != nil {
					return fmt.Errorf("%s: %w", ifc.Name, err)
				}
				n += len(r.Programs)
			}
		}
		return nil
	})
	return n, err
}

// detectorOf returns the status of the congestion node's detector and its program.
func detectorOf(ctx context.Context, b *bed.Bed) (part *pncv1.Part, program *pncv1.HostObject, err error) {
	st, err := b.Congestion.Status(ctx)
	for _, p := range st.GetParts() {
		if p.GetName() == "detector:eth2" {
			part = p
		}
	}
	for _, o := range st.GetObjects() {
		if o.GetKind() == pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_PROGRAM && strings.HasPrefix(o.GetDetail(), "TCX egress of eth2") {
			program = o
		}
	}
	return part, program, err
}

// detected waits for a CNP and returns the record of a notification from the source.
func detected(t *testing.T, b *bed.Bed, p bed.Plan, pair labtraffic.Pair, seen *cnps, source string) *pncv1.Record {
	t.Helper()
	wait(t, b, "a CNP", func(context.Context) error {
		n, err := seen.check(p.Receiver, p.Sender, pair.LocalQPN)
		if err == nil && n == 0 {
			err = errors.New("none")
		}
		return err
	})
	r, err := b.Congestion.Records.ListRecords(testContext(t), &pncv1.ListRecordsRequest{
		Filter: &pncv1.RecordFilter{Outcomes: []pncv1.Outcome{pncv1.Outcome_OUTCOME_SENT}},
	})
	if err != nil || len(r.GetRecords()) == 0 {
		t.Fatalf("records: %v, %v", r, err)
	}
	rec := r.GetRecords()[0]
	if got := rec.GetCongestion().GetSource(); got != source {
		t.Errorf("the source is %q, want %q", got, source)
	}
	return rec
}

// From a mark to the CNP by way of the eBPF program, which is gone when the mechanism is off and after kill -9.
func TestDetectorInTheKernelGoesWithItsProcess(t *testing.T) {
	for _, family := range []int{4, 6} {
		t.Run(fmt.Sprintf("IPv%d", family), func(t *testing.T) {
			b, p := upBed(t, edited(t, "congestion.pncd.yaml", "  source_ipv6:", "  detect: {mode: tcx}\n  source_ipv6:")), bed.PlanFor(family)
			ctx := testContext(t)
			part, program, err := detectorOf(ctx, b)
			if err != nil || part.GetState() != pncv1.PartState_PART_STATE_READY || !strings.HasPrefix(part.GetDetail(), "tcx: ") || program.GetName() != "detect_tcx" {
				t.Fatalf("%v, %v, %v", part, program, err)
			}
			seen := watchCNPs(t, b, bed.Sender)
			g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300})
			pair := g.Pairs()[0]
			waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
			if err := b.Mark(ctx, true); err != nil {
				t.Fatal(err)
			}
			if rec := detected(t, b, p, pair, seen, "ce eth2"); rec.GetCongestion().GetCeCount() == 0 || rec.GetCongestion().GetQueueDepth() != 0 {
				t.Errorf("%v", rec)
			}
			programs := func(want int) {
				t.Helper()
				wait(t, b, "the programs", func(context.Context) error {
					n, err := tcxPrograms(b, bed.Congestion)
					if err == nil && n != want {
						err = fmt.Errorf("%d, want %d", n, want)
					}
					return err
				})
			}
			programs(1)
			if _, err := b.Congestion.Control.Disable(ctx, &pncv1.DisableRequest{}); err != nil {
				t.Fatal(err)
			}
			programs(0)
			if _, err := b.Congestion.Control.Enable(ctx, &pncv1.EnableRequest{}); err != nil {
				t.Fatal(err)
			}
			programs(1)
			b.Programs(bed.Congestion)[0].Kill()
			if n, err := tcxPrograms(b, bed.Congestion); err != nil || n != 0 {
				t.Errorf("%d programs after kill -9, %v", n, err)
			}
		})
	}
}

// Nobody marks but the virtual queue, which is slower than the traffic: the receiver sees the marks, and the sender a CNP.
func TestVirtualQueueMarksAndNotifies(t *testing.T) {
	b, p := upBed(t, edited(t, "congestion.pncd.yaml", "  interfaces: [eth2]\n",
		"  detect: {virtual_queues: [{interface: eth2, rate_mbit: 1, kmin: 2000, kmax: 8000}]}\n")), bed.PlanFor(4)
	ctx := testContext(t)
	marks, seen := listen(t, b.Lab, bed.Receiver), watchCNPs(t, b, bed.Sender)
	g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 3000})
	pair := g.Pairs()[0]
	waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
	rec := detected(t, b, p, pair, seen, "virtual-queue eth2")
	if depth := rec.GetCongestion().GetQueueDepth(); depth <= 2000 || depth > 16000 {
		t.Errorf("a depth of %d octets", depth)
	}
	wait(t, b, "marks at the receiver", func(context.Context) error {
		var ce, bad int
		marks.get(func() { ce, bad = marks.ce, marks.badCRC+marks.badIP })
		if bad != 0 {
			t.Fatalf("%d packets are broken", bad)
		}
		if ce == 0 {
			return errors.New("none")
		}
		return nil
	})
	if part, program, err := detectorOf(ctx, b); err != nil || part.GetDetail() != "tcx: a virtual queue needs it" || program == nil {
		t.Errorf("%v, %v, %v", part, program, err)
	}
}
