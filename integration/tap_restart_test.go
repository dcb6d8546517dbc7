package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/integration/lab"
	"pncd/internal/labtraffic"
)

const proxyTaps = "  taps: [eth1, eth2]\n"

// waitFollowed waits until both directions of a pair are confirmed, and the program shows no more votes while traffic
// goes on.
func waitFollowed(t *testing.T, b *bed.Bed, p bed.Plan, pairs ...labtraffic.Pair) {
	t.Helper()
	var votes, packets uint64
	wait(t, b, "the program follows the pairs", func(ctx context.Context) error {
		for _, x := range pairs {
			for _, d := range []struct {
				from, to  string
				qp, truth uint32
			}{{p.Sender.String(), p.Receiver.String(), x.PeerQPN, x.LocalQPN}, {p.Receiver.String(), p.Sender.String(), x.LocalQPN, x.PeerQPN}} {
				r, err := b.Proxy.Flows.GetFlow(ctx, &pncv1.GetFlowRequest{Sender: d.from, Receiver: d.to, DestinationQp: d.qp})
				if err != nil {
					return err
				}
				if f := r.GetFlow(); f.GetState() != pncv1.FlowState_FLOW_STATE_CONFIRMED || f.GetSourceQp() != d.truth {
					return fmt.Errorf("%v", f)
				}
			}
		}
		v, err := b.Proxy.Counter(ctx, "learner", "handed-up{reason=vote}")
		if err != nil {
			return err
		}
		n, err := b.Proxy.Counter(ctx, "learner", "packets{interface=eth1}")
		if err != nil {
			return err
		}
		if v != votes {
			votes, packets = v, n
			return fmt.Errorf("%d votes", v)
		}
		if n < packets+50 {
			return fmt.Errorf("%d packets since the last vote", n-packets)
		}
		return nil
	})
}

// kernelObjects lists what the proxy has of eBPF, a line each.
func kernelObjects(t *testing.T, b *bed.Bed) string {
	t.Helper()
	s, err := b.Proxy.Status(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range s.GetObjects() {
		out = append(out, fmt.Sprint(o.GetKind(), " ", o.GetName(), " ", o.GetDetail(), o.GetError()))
	}
	return strings.Join(out, "\n")
}

func partDetail(t *testing.T, b *bed.Bed, name string) string {
	t.Helper()
	s, err := b.Proxy.Status(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.GetParts() {
		if p.GetName() == name {
			return p.GetDetail()
		}
	}
	return "no part " + name
}

// restart starts the proxy's pncd again after a kill.
func restart(t *testing.T, b *bed.Bed) *lab.Process {
	t.Helper()
	again, err := b.Start(testContext(t), bed.Proxy, lab.Proc{Name: "again", Argv: []string{pncdBinary(t), "--config", "/etc/pncd/pncd.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, b, "pncd answers and translates", func(ctx context.Context) error {
		s, err := b.Proxy.Status(ctx)
		if err == nil && !s.GetEnabled() {
			err = fmt.Errorf("not enabled yet")
		}
		return err
	})
	return again
}

// Pairs that were learned before a kill are used at once after the restart, without a packet; a queue pair that was
// connected to another one meanwhile is not. A stop leaves nothing.
func TestLearnedPairsOutliveAKillAndReusedOnesDoNot(t *testing.T) {
	for _, mode := range []string{"tcx", "xdp"} {
		t.Run(mode, func(t *testing.T) {
			b, p := upBed(t, edited(t, "proxy.pncd.yaml", proxyTaps, proxyTaps+"  tap: "+mode+"\n")), bed.PlanFor(4)
			if got := partDetail(t, b, "tap:eth1"); got != mode+": proxy.tap asks for it" {
				t.Errorf("tap:eth1: %s", got)
			}
			if got := partDetail(t, b, "learner"); !strings.HasPrefix(got, "pinned in /sys/fs/bpf/pncd/netns-") {
				t.Errorf("learner: %s", got)
			}
			qps := func(local, peer uint32, seed uint64) labtraffic.GeneratorConfig {
				return labtraffic.GeneratorConfig{Rate: 500, Flows: labtraffic.FlowConfig{LocalQPN: local, PeerQPN: peer, Seed: seed}}
			}
			stays, endStays := generate(t, b, p, qps(0x1000, 0x2000, 1))
			old, endOld := generate(t, b, p, qps(0x3000, 0x4000, 2))
			waitFollowed(t, b, p, stays.Pairs()[0], old.Pairs()[0])
			objects := kernelObjects(t, b)
			if strings.Count(objects, "BPF_PROGRAM learn_") != 2 || strings.Count(objects, "BPF_MAP") < 4 {
				t.Fatalf("objects:\n%s", objects)
			}
			pncd := b.Programs(bed.Proxy)
			pncd[0].Kill()
			<-pncd[0].Done()
			endOld()
			anew := qps(0x5000, 0x4000, 3) // the receiver's queue pair has another peer
			anew.Messages = 200
			meanwhile, _ := generate(t, b, p, anew)
			wait(t, b, "the new connection's messages", func(context.Context) error {
				if n := meanwhile.Messages(); n < anew.Messages {
					return fmt.Errorf("%d sent", n)
				}
				return nil
			})
			endStays() // nothing can be learned anew

			again := restart(t, b)
			pair := stays.Pairs()[0]
			for _, d := range []struct {
				f     func() (*pncv1.Flow, error)
				truth uint32
			}{
				{func() (*pncv1.Flow, error) { return flow(testContext(t), b, p.Sender, p.Receiver, pair.PeerQPN) }, pair.LocalQPN},
				{func() (*pncv1.Flow, error) { return flow(testContext(t), b, p.Receiver, p.Sender, pair.LocalQPN) }, pair.PeerQPN},
			} {
				// 'Enabled' is true some moments before the taps run. Without traffic nothing but the program's map can answer.
				wait(t, b, "the pair that stayed", func(context.Context) error {
					if f, err := d.f(); err != nil || f.GetState() != pncv1.FlowState_FLOW_STATE_CONFIRMED || f.GetSourceQp() != d.truth || !strings.Contains(f.GetDetail(), "before a restart") {
						return fmt.Errorf("%v, %v; want QP %#x", f, err, d.truth)
					}
					return nil
				})
			}
			if f, err := flow(testContext(t), b, p.Sender, p.Receiver, 0x4000); status.Code(err) != codes.NotFound && (err != nil || f.GetSourceQp() == 0x3000) {
				t.Errorf("the queue pair that was used anew: %v, %v", f, err)
			}
			if got := kernelObjects(t, b); got != objects {
				t.Errorf("not taken over, but:\n%s\nbefore:\n%s", got, objects)
			}
			anew.Messages, anew.Flows.Seed = 0, 4
			_, endNew := generate(t, b, p, anew)
			waitLearned(t, b, p.Sender, p.Receiver, 0x4000, 0x5000)
			if mode == "tcx" {
				tapsChangeByReload(t, b, p)
			}
			endNew()
			if err := again.Stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			if left, err := b.Exec(testContext(t), bed.Proxy, "ls", "/sys/fs/bpf/pncd"); err != nil || strings.TrimSpace(string(left)) != "" {
				t.Errorf("left pinned: %s, %v", left, err)
			}
		})
	}
}

// tapsChangeByReload goes from one kind of tap to the others and back; what was learned answers again as soon as
// traffic agrees.
func tapsChangeByReload(t *testing.T, b *bed.Bed, p bed.Plan) {
	t.Helper()
	for _, kind := range []string{"ring", "clsact", "tcx\n  tap_flows: 4096"} {
		name, _, _ := strings.Cut(kind, "\n")
		for _, text := range edited(t, "proxy.pncd.yaml", proxyTaps, proxyTaps+"  tap: "+kind+"\n") {
			if err := os.WriteFile(b.ConfigPath("proxy.pncd.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Proxy.Control.Reload(testContext(t), &pncv1.ReloadRequest{}); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := partDetail(t, b, "tap:eth2"); got != name+": proxy.tap asks for it" {
			t.Errorf("tap:eth2: %s, want %s", got, name)
		}
		if got := kernelObjects(t, b); strings.Contains(got, "BPF_PROGRAM") != (name != "ring") || strings.Contains(got, "clsact ingress of eth1") != (name == "clsact") {
			t.Errorf("%s: objects:\n%s", name, got)
		}
		waitLearned(t, b, p.Sender, p.Receiver, 0x4000, 0x5000)
	}
}
