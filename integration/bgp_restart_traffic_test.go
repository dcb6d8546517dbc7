package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/integration/lab"
	"pncd/internal/labtraffic"
)

// watchChanges collects what the congestion node's history says of changes from now on.
func watchChanges(t *testing.T, b *bed.Bed) (history func() string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	inBackground(t, "watching capabilities", func(ctx context.Context) error {
		s, err := b.Congestion.Capabilities.WatchCapabilities(ctx, &pncv1.WatchCapabilitiesRequest{})
		for err == nil {
			var r *pncv1.WatchCapabilitiesResponse
			if r, err = s.Recv(); err == nil {
				mu.Lock()
				all = append(all, fmt.Sprintf("%v: %s", r.GetEvent().GetKind(), r.GetEvent().GetDetail()))
				mu.Unlock()
			}
		}
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(all, "\n")
	}
}

// The route reflector crashes and comes back under congestion: every congestion event of the meantime ends as
// before, and the capability is shown to be stale until it is announced again.
func TestNoNotificationIsLostWhileTheReflectorRestarts(t *testing.T) {
	needFRR(t, "bgpd")
	// update-delay: the reflector sends nothing, and no End-of-RIB, before all its neighbours are back. Without it
	// the congestion node may hear End-of-RIB before the proxy's announcement.
	files := edited(t, "reflector.frr.conf", " no bgp default ipv4-unicast\n",
		" update-delay 60\n bgp graceful-restart\n bgp graceful-restart restart-time 90\n bgp graceful-restart preserve-fw-state\n no bgp default ipv4-unicast\n")
	b, p := upBed(t, files), bed.PlanFor(4)
	ctx := testContext(t)
	notified := countNotifications(t, b)
	seen := watchCNPs(t, b, bed.Sender)
	history := watchChanges(t, b)
	g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300, Flows: labtraffic.FlowConfig{Packets: 2}})
	waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	waitLearned(t, b, p.Sender, p.Receiver, g.Pairs()[0].PeerQPN, g.Pairs()[0].LocalQPN)
	if err := b.Mark(ctx, true); err != nil {
		t.Fatal(err)
	}
	// more waits until so many further notifications and CNPs were seen.
	more := func(what string, n int) {
		t.Helper()
		fromN, fromC := notified(), seen.count()
		wait(t, b, what, func(context.Context) error {
			if a, c := notified()-fromN, seen.count()-fromC; a < uint64(n) || c < n {
				return fmt.Errorf("%d notifications and %d CNPs", a, c)
			}
			return nil
		})
	}
	more("congestion", 20)
	before, err := ledgerOf(ctx, b.Congestion, "congestion-node")
	if err != nil {
		t.Fatal(err)
	}
	stale := func(want bool) {
		t.Helper()
		wait(t, b, fmt.Sprintf("stale %v", want), func(ctx context.Context) error {
			r, err := b.Congestion.Capabilities.Resolve(ctx, &pncv1.ResolveRequest{Sender: p.Sender.String()})
			if err != nil {
				return err
			}
			if r.GetReason() != pncv1.ResolveReason_RESOLVE_REASON_FOUND {
				t.Fatalf("the proxy was lost: %v: %s", r.GetReason(), r.GetExplanation())
			}
			said := strings.Contains(r.GetExplanation(), "kept through a graceful restart of "+p.Reflector.String())
			if r.GetRoute().GetStale() != want || said != want {
				return fmt.Errorf("%v: %s", r.GetRoute(), r.GetExplanation())
			}
			n, err := b.Congestion.Control.ListNeighbors(ctx, &pncv1.ListNeighborsRequest{Address: p.Reflector.String()})
			if err == nil && n.GetNeighbors()[0].GetStale() > 0 != want {
				err = fmt.Errorf("the neighbour shows %d stale paths", n.GetNeighbors()[0].GetStale())
			}
			return err
		})
	}
	for _, d := range b.Programs(bed.Reflector) {
		if d.Name() == "bgpd" {
			d.Kill()
		}
	}
	stale(true)
	more("congestion while the reflector is gone", 200)
	if _, err := b.Start(ctx, bed.Reflector, lab.Proc{Argv: []string{"/usr/lib/frr/bgpd", "-A", "127.0.0.1", "--log", "stdout"}}); err != nil {
		t.Fatal(err)
	}
	// vtysh -b is content with the daemons that it finds.
	wait(t, b, "bgpd to take its configuration", func(ctx context.Context) error {
		if _, err := b.Exec(ctx, bed.Reflector, "vtysh", "-d", "bgpd", "-c", "show version"); err != nil {
			return err
		}
		_, err := b.Exec(ctx, bed.Reflector, "vtysh", "-b")
		return err
	})
	stale(false)
	more("congestion afterwards", 20)
	// Where FRR gives the fresh paths other identifiers, they are other routes for the history.
	if h := history(); !strings.Contains(h, "stale false -> true") || !strings.Contains(h, "stale true -> false") && !strings.Contains(h, "KIND_WITHDRAWN") {
		t.Errorf("the history does not show that the capability was stale, and is not any more:\n%s", h)
	}
	if err := b.Mark(ctx, false); err != nil {
		t.Fatal(err)
	}
	var after, proxy ledger
	wait(t, b, "the last notification", func(ctx context.Context) (err error) {
		if after, err = ledgerOf(ctx, b.Congestion, "congestion-node"); err != nil {
			return err
		}
		if proxy, err = ledgerOf(ctx, b.Proxy, "proxy"); err != nil {
			return err
		}
		if sent := after.by["sent"]; sent != notified() || sent != proxy.received {
			err = fmt.Errorf("%d sent, %d on the wire, %d arrived", sent, notified(), proxy.received)
		}
		return err
	})
	if got, want := after.otherwise(), before.otherwise(); !maps.Equal(got, want) {
		t.Errorf("congestion events ended otherwise during the restart: %v, before %v", got, want)
	}
	t.Logf("%d notifications from the crash to the end, none lost; %d CNPs in all", after.by["sent"]-before.by["sent"], seen.count())
}
