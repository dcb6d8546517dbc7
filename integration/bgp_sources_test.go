package integration

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// The proxy names no prefix: it serves what is connected to its side of the senders, and a table.
func TestSenderPrefixesFollowTheKernelsRoutes(t *testing.T) {
	text := bed.File("proxy.pncd.yaml")
	before, rest, ok := strings.Cut(text, "  senders:\n")
	_, after, ok2 := strings.Cut(rest, "  accept_from:")
	if !ok || !ok2 {
		t.Fatalf("the lab's configuration has no senders before accept_from:\n%s", text)
	}
	const sources = "  sender_sources:\n    - {interface: eth1, next_hop: 10.255.0.1}\n    - {interface: eth1, next_hop: \"fd00:255::1\", within: [\"::/0\"]}\n    - {table: 100, next_hop: 10.255.0.1, within: [10.8.0.0/16]}\n"
	b, p := upBed(t, map[string]string{"proxy.pncd.yaml": before + sources + "  accept_from:" + after}), bed.PlanFor(4)
	ip := func(args ...string) {
		t.Helper()
		if out, err := b.Exec(testContext(t), bed.Router, append([]string{"ip"}, args...)...); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	found, none := pncv1.ResolveReason_RESOLVE_REASON_FOUND, pncv1.ResolveReason_RESOLVE_REASON_NO_ROUTE
	connected, inTable, outside := netip.MustParseAddr("10.7.0.2"), netip.MustParseAddr("10.8.1.2"), netip.MustParseAddr("10.9.0.2")

	// What was there at the start is announced, and the translator serves it: CNPs arrive.
	if r := waitResolve(t, b, p.Sender, found); r.GetProxy() != p.Proxy.String() || r.GetRoute().GetNextHop() != p.Router.String() {
		t.Errorf("resolved to %v", r)
	}
	waitResolve(t, b, bed.PlanFor(6).Sender, found)
	seen := watchCNPs(t, b, bed.Sender)
	generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300, Flows: labtraffic.FlowConfig{Packets: 2}})
	if err := b.Mark(testContext(t), true); err != nil {
		t.Fatal(err)
	}
	wait(t, b, "CNPs", func(context.Context) error {
		if n := seen.count(); n < 10 {
			return fmt.Errorf("%d CNPs", n)
		}
		return nil
	})

	ip("addr", "add", "10.7.0.1/24", "dev", "eth1")
	waitResolve(t, b, connected, found)
	ip("route", "add", "10.9.0.0/24", "via", "10.1.0.2", "table", "100")
	ip("route", "add", "10.8.1.0/24", "via", "10.1.0.2", "table", "100")
	waitResolve(t, b, inTable, found)
	if r := waitResolve(t, b, outside, none); r.GetProxy() != "" {
		t.Errorf("a prefix outside of `within` is announced: %v", r)
	}
	list, err := b.Proxy.Capabilities.ListCapabilities(testContext(t), &pncv1.ListCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range list.GetAdvertisements() {
		if !a.GetActive() || !a.GetConfigured() {
			t.Errorf("not announced: %v", a)
		}
		got[a.GetPrefix()] = a.GetFollowedFrom()
	}
	for prefix, from := range map[string]string{"10.1.0.0/24": "interface eth1", "10.7.0.0/24": "interface eth1", "fd00:1::/64": "interface eth1", "10.8.1.0/24": "table 100"} {
		if got[prefix] != from {
			t.Errorf("%s is from %q, want %q; all: %v", prefix, got[prefix], from, got)
		}
	}

	ip("addr", "del", "10.7.0.1/24", "dev", "eth1")
	waitResolve(t, b, connected, none)
	ip("route", "flush", "table", "100")
	waitResolve(t, b, inTable, none)
	waitResolve(t, b, p.Sender, found) // what stays is not disturbed
}
