package integration

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// congested is a lab with marked traffic whose CNPs arrive.
func congested(t *testing.T) (*bed.Bed, bed.Plan, *labtraffic.Generator, func() uint64) {
	t.Helper()
	b, p := upBed(t, nil), bed.PlanFor(4)
	notified := countNotifications(t, b)
	seen := watchCNPs(t, b, bed.Sender)
	g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300, Flows: labtraffic.FlowConfig{Packets: 2}})
	waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	waitLearned(t, b, p.Sender, p.Receiver, g.Pairs()[0].PeerQPN, g.Pairs()[0].LocalQPN)
	if err := b.Mark(testContext(t), true); err != nil {
		t.Fatal(err)
	}
	wait(t, b, "CNPs", func(context.Context) error {
		if seen.count() < 10 || notified() < 10 {
			return fmt.Errorf("%d CNPs", seen.count())
		}
		return nil
	})
	return b, p, g, notified
}

// silent holds that from now on every congestion event ends in one outcome, and nothing leaves.
func silent(t *testing.T, b *bed.Bed, g *labtraffic.Generator, notified func() uint64, want pncv1.Outcome) {
	t.Helper()
	ctx := testContext(t)
	events, err := outcome(ctx, b.Congestion, want)
	if err != nil {
		t.Fatal(err)
	}
	before, sent := notified(), g.Messages()
	wait(t, b, "congestion events", func(ctx context.Context) error {
		now, err := outcome(ctx, b.Congestion, want)
		if err == nil && (now < events+50 || g.Messages() < sent+50) {
			err = fmt.Errorf("%d events ended as %v, %d messages", now-events, want, g.Messages()-sent)
		}
		return err
	})
	if n := notified(); n != before {
		t.Errorf("%d notifications left the congestion node although %v", n-before, want)
	}
}

func TestNoNotificationLeavesWithoutAProxy(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(t *testing.T, b *bed.Bed, p bed.Plan)
		undo    func(t *testing.T, b *bed.Bed, p bed.Plan)
		reason  pncv1.ResolveReason
		outcome pncv1.Outcome
	}{
		{
			"the proxy is stopped",
			func(t *testing.T, b *bed.Bed, _ bed.Plan) {
				if err := b.Programs(bed.Proxy)[0].Stop(); err != nil {
					t.Errorf("pncd did not stop cleanly: %v", err)
				}
			}, nil,
			pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY, pncv1.Outcome_OUTCOME_NO_PROXY,
		},
		{
			"the router withdraws the prefix, and the PNC goes with it",
			func(t *testing.T, b *bed.Bed, p bed.Plan) {
				vtysh(t, b, bed.Router, "configure terminal", "router bgp 65000", "address-family ipv4 unicast", "no network "+p.SenderPrefix.String())
			},
			func(t *testing.T, b *bed.Bed, p bed.Plan) {
				vtysh(t, b, bed.Router, "configure terminal", "router bgp 65000", "address-family ipv4 unicast", "network "+p.SenderPrefix.String())
			},
			pncv1.ResolveReason_RESOLVE_REASON_NO_ROUTE, pncv1.Outcome_OUTCOME_NO_PROXY,
		},
		{
			"the route to the proxy is removed",
			func(t *testing.T, b *bed.Bed, p bed.Plan) { route(t, b, "del", p.Proxy) },
			func(t *testing.T, b *bed.Bed, p bed.Plan) { route(t, b, "add", p.Proxy) },
			pncv1.ResolveReason_RESOLVE_REASON_PROXY_UNREACHABLE, pncv1.Outcome_OUTCOME_PROXY_UNREACHABLE,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, p, g, notified := congested(t)
			c.change(t, b, p)
			waitResolve(t, b, p.Sender, c.reason)
			silent(t, b, g, notified, c.outcome)
			if c.undo == nil {
				return
			}
			c.undo(t, b, p)
			waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
			before := notified()
			wait(t, b, "notifications again", func(context.Context) error {
				if n := notified() - before; n < 10 {
					return fmt.Errorf("%d notifications", n)
				}
				return nil
			})
		})
	}
}

func vtysh(t *testing.T, b *bed.Bed, node string, commands ...string) {
	t.Helper()
	argv := []string{"vtysh"}
	for _, c := range commands {
		argv = append(argv, "-c", c)
	}
	if _, err := b.Exec(testContext(t), node, argv...); err != nil {
		t.Fatal(err)
	}
}

// route adds or removes the congestion node's route to the proxy.
func route(t *testing.T, b *bed.Bed, verb string, proxy netip.Addr) {
	t.Helper()
	argv := []string{"ip", "route", verb, netip.PrefixFrom(proxy, proxy.BitLen()).String()}
	if verb == "add" {
		argv = append(argv, "via", "10.0.23.2")
	}
	if _, err := b.Exec(testContext(t), bed.Congestion, argv...); err != nil {
		t.Fatal(err)
	}
}
