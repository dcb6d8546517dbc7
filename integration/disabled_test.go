package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// disabledFiles leave `enabled` out: off is the default.
func disabledFiles(t *testing.T) map[string]string {
	t.Helper()
	files := edited(t, "proxy.pncd.yaml", "enabled: true\n", "")
	for name, text := range edited(t, "congestion.pncd.yaml", "enabled: true\n", "") {
		files[name] = text
	}
	return files
}

// sockets are what a running mechanism opens in a node: packet sockets or eBPF programs, and UDP on the notification port.
func sockets(t *testing.T, b *bed.Bed, node string) (packet, notification int) {
	t.Helper()
	out, err := b.Exec(testContext(t), node, "cat", "/proc/net/packet")
	if err != nil {
		t.Fatal(err)
	}
	packet = strings.Count(strings.TrimSpace(string(out)), "\n") // the first line is the heading
	programs, err := tcxPrograms(b, node)
	if err != nil {
		t.Fatal(err)
	}
	packet += programs
	out, err = b.Exec(testContext(t), node, "cat", "/proc/net/udp", "/proc/net/udp6")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line)
		if len(f) > 1 && strings.HasSuffix(f[1], ":03FD") { // 1021
			notification++
		}
	}
	return packet, notification
}

func TestDisabledByDefaultAndSwitchedAtRunTime(t *testing.T) {
	b, p := upBed(t, disabledFiles(t)), bed.PlanFor(4)
	ctx := testContext(t)
	notified := countNotifications(t, b)
	seen := watchCNPs(t, b, bed.Sender)
	if err := b.Mark(ctx, true); err != nil {
		t.Fatal(err)
	}
	g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300, Flows: labtraffic.FlowConfig{Both: true, Packets: 2}})
	pair := g.Pairs()[0]

	off := func(t *testing.T) {
		t.Helper()
		// The router's own announcement is there, so BGP works; the PNC is not.
		r := waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY)
		if r.GetRoute().GetNextHop() != p.Router.String() {
			t.Errorf("the router's route is not known: %v", r.GetRoute())
		}
		for _, n := range []*bed.Node{b.Proxy, b.Congestion} {
			s, err := n.Status(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if s.GetEnabled() || s.GetEnabledByConfig() || s.GetReady() {
				t.Errorf("%s: enabled %v, by configuration %v, ready %v", n.Name, s.GetEnabled(), s.GetEnabledByConfig(), s.GetReady())
			}
			packet, port := sockets(t, b, n.Name)
			if packet != 0 || port != 0 {
				t.Errorf("%s: %d packet sockets or programs and %d sockets on the notification port are open", n.Name, packet, port)
			}
		}
		if _, err := b.Proxy.Capabilities.Advertise(ctx, &pncv1.AdvertiseRequest{Prefix: "10.3.0.0/24", NextHop: "10.255.0.1"}); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("Advertise answers %v, want FAILED_PRECONDITION", err)
		}
		// So many marked packets pass that a running mechanism would have notified.
		before, sent := notified(), g.Messages()
		wait(t, b, "traffic", func(context.Context) error {
			if n := g.Messages() - sent; n < 100 {
				return fmt.Errorf("%d messages", n)
			}
			return nil
		})
		if n := notified(); n != before {
			t.Errorf("%d notifications left while disabled", n-before)
		}
	}
	on := func(t *testing.T) {
		t.Helper()
		for _, n := range []*bed.Node{b.Proxy, b.Congestion} {
			if _, err := n.Control.Enable(ctx, &pncv1.EnableRequest{}); err != nil {
				t.Fatalf("enable %s: %v", n.Name, err)
			}
		}
		waitResolve(t, b, p.Sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
		waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
		before := seen.count()
		wait(t, b, "CNPs", func(context.Context) error {
			if n := seen.count() - before; n < 10 {
				return fmt.Errorf("%d CNPs", n)
			}
			return nil
		})
		for _, n := range []*bed.Node{b.Proxy, b.Congestion} {
			s, err := n.Status(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !s.GetEnabled() || s.GetEnabledByConfig() {
				t.Errorf("%s: enabled %v, by configuration %v", n.Name, s.GetEnabled(), s.GetEnabledByConfig())
			}
			packet, port := sockets(t, b, n.Name)
			if packet == 0 || (port == 0) != (n == b.Congestion) {
				t.Errorf("%s: %d packet sockets or programs and %d sockets on the notification port are open", n.Name, packet, port)
			}
		}
	}

	off(t)
	if n := seen.count(); n != 0 {
		t.Errorf("%d CNPs arrived while disabled", n)
	}
	on(t)
	for _, n := range []*bed.Node{b.Proxy, b.Congestion} {
		r, err := n.Control.Disable(ctx, &pncv1.DisableRequest{})
		if err != nil || !r.GetWasEnabled() {
			t.Fatalf("disable %s: %v, was enabled %v", n.Name, err, r.GetWasEnabled())
		}
	}
	off(t)
	on(t)
}
