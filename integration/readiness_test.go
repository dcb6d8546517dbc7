package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// standing reads where the proxy's announcement of a plan's senders stands.
func standing(ctx context.Context, b *bed.Bed, p bed.Plan) (*pncv1.SenderReadiness, error) {
	st, err := b.Proxy.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range st.GetSenders() {
		if s.GetPrefix() == p.SenderPrefix.String() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s is not in the status", p.SenderPrefix)
}

// waitStanding waits for a state, and for what is lacking first.
func waitStanding(t *testing.T, b *bed.Bed, p bed.Plan, state pncv1.ReadinessState, lacks pncv1.ReadinessReason) *pncv1.SenderReadiness {
	t.Helper()
	var s *pncv1.SenderReadiness
	wait(t, b, fmt.Sprintf("%s is %v for %v", p.SenderPrefix, state, lacks), func(ctx context.Context) error {
		var err error
		if s, err = standing(ctx, b, p); err != nil {
			return err
		}
		first := pncv1.ReadinessReason_READINESS_REASON_UNSPECIFIED
		if f := s.GetFailures(); len(f) > 0 {
			first = f[0].GetReason()
		}
		if s.GetState() != state || first != lacks {
			return fmt.Errorf("it is %v", s)
		}
		return nil
	})
	return s
}

// The capability follows whether the proxy can translate: it sees both directions of the senders' traffic,
// its taps are up, and CNPs have a route. The learner hears it through FRR's reflector.
func TestTheCapabilityFollowsReadiness(t *testing.T) {
	const readiness = `  advertise: when-ready
  readiness: {traffic_within: 10s, withdraw_after: 1s, announce_after: 1s, damping: {half_life: 0s}}
`
	edit := edited(t, "proxy.pncd.yaml", "taps: [eth1, eth2]", "taps: [eth1, eth2, eth3]", "  accept_from:", readiness+"  accept_from:")
	// A tap that carries nothing, so that its end disturbs neither routes nor traffic.
	maps.Copy(edit, edited(t, "path.clab.yml", "  links:\n", "  links:\n    - endpoints: [\"proxy:eth3\", \"reflector:eth3\"]\n"))
	b, p, six := upBed(t, edit), bed.PlanFor(4), bed.PlanFor(6)
	const (
		held, announced          = pncv1.ReadinessState_READINESS_STATE_HELD, pncv1.ReadinessState_READINESS_STATE_ANNOUNCED
		nothing, noTraffic       = pncv1.ReadinessReason_READINESS_REASON_UNSPECIFIED, pncv1.ReadinessReason_READINESS_REASON_NO_TRAFFIC
		found, noProxy           = pncv1.ResolveReason_RESOLVE_REASON_FOUND, pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY
		tapDown, noRoute         = pncv1.ReadinessReason_READINESS_REASON_TAP_DOWN, pncv1.ReadinessReason_READINESS_REASON_NO_ROUTE
		link, senderRoute, black = "eth3", "10.1.0.2/32", "blackhole"
	)
	ip := func(args ...string) {
		t.Helper()
		if out, err := b.Exec(testContext(t), bed.Router, append([]string{"ip"}, args...)...); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}

	// Without traffic nothing is announced, and the router's own route is there without a proxy.
	waitStanding(t, b, p, held, noTraffic)
	waitResolve(t, b, p.Sender, noProxy)
	list, err := b.Proxy.Capabilities.ListCapabilities(testContext(t), &pncv1.ListCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list.GetAdvertisements() {
		if a.GetActive() || !strings.Contains(a.GetInactiveReason(), "not ready: no-traffic: no traffic of the senders") {
			t.Errorf("before any traffic: %v", a)
		}
	}

	_, stop := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300, Flows: labtraffic.FlowConfig{Packets: 2}})
	waitStanding(t, b, p, announced, nothing)
	if r := waitResolve(t, b, p.Sender, found); r.GetProxy() != p.Proxy.String() {
		t.Errorf("resolved to %v", r)
	}

	ip("link", "set", link, "down")
	if s := waitStanding(t, b, p, held, tapDown); s.GetFailures()[0].GetDetail() != "eth3: the interface is down" {
		t.Errorf("%v", s)
	}
	waitResolve(t, b, p.Sender, noProxy)
	ip("link", "set", link, "up")
	waitStanding(t, b, p, announced, nothing)
	waitResolve(t, b, p.Sender, found)

	ip("route", "add", black, senderRoute)
	waitStanding(t, b, p, held, noRoute)
	waitResolve(t, b, p.Sender, noProxy)
	ip("route", "del", black, senderRoute)
	waitStanding(t, b, p, announced, nothing)
	waitResolve(t, b, p.Sender, found)

	stop()
	waitStanding(t, b, p, held, noTraffic)
	waitResolve(t, b, p.Sender, noProxy)

	// The other family's senders never sent anything.
	if s := waitStanding(t, b, six, held, noTraffic); s.GetSeenFrom() != nil || s.GetSeenTowards() != nil {
		t.Errorf("%v", s)
	}
	waitResolve(t, b, six.Sender, noProxy)
	readinessIsCounted(t, b)
	readinessIsHistory(t, b, p)
}

// readinessIsCounted holds the counters to what the test did.
func readinessIsCounted(t *testing.T, b *bed.Bed) {
	t.Helper()
	for name, want := range map[string]uint64{
		"announced": 3, "withdrawn{reason=tap-down}": 1, "withdrawn{reason=no-route}": 1, "withdrawn{reason=no-traffic}": 1, "suppressed": 0,
	} {
		if got, err := b.Proxy.Counter(testContext(t), "readiness", name); err != nil || got != want {
			t.Errorf("counter %s is %d, want %d (%v)", name, got, want, err)
		}
	}
}

// readinessIsHistory holds the history to it.
func readinessIsHistory(t *testing.T, b *bed.Bed, p bed.Plan) {
	t.Helper()
	ctx, cancel := context.WithTimeout(testContext(t), patience)
	defer cancel()
	stream, err := b.Proxy.Capabilities.WatchCapabilities(ctx, &pncv1.WatchCapabilitiesRequest{IncludeHistory: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"HELD_BACK no-traffic", "ANNOUNCED", "HELD_BACK tap-down", "ANNOUNCED", "HELD_BACK no-route", "ANNOUNCED", "HELD_BACK no-traffic"}
	var got []string
	for len(got) < len(want) {
		res, err := stream.Recv()
		if err != nil {
			t.Fatalf("the history ends after %q: %v", got, err)
		}
		e := res.GetEvent()
		if e.GetRoute().GetPrefix() != p.SenderPrefix.String() || e.GetKind() < pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_ANNOUNCED {
			continue
		}
		line := strings.TrimPrefix(e.GetKind().String(), "CAPABILITY_EVENT_KIND_")
		if why, ok := strings.CutPrefix(e.GetDetail(), "not ready: "); ok {
			reason, _, _ := strings.Cut(why, ":")
			line += " " + reason
		}
		got = append(got, line)
	}
	// At first the routes to the senders may not have been looked up yet.
	if got[0] == "HELD_BACK no-route" {
		got[0] = want[0]
	}
	if !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
}
