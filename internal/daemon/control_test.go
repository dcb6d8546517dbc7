package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pncd/api"
	"pncd/bgp"
	"pncd/internal/config"
	"pncd/internal/telemetry"
)

func TestReloadThatIsRefusedIsLogged(t *testing.T) {
	r := start(t, template)
	hook := logtest.NewLocal(r.log)
	for _, edit := range [][2]string{
		{"node: test", "nod: test"},   // refused by the file's check
		{"node: test", "node: other"}, // refused by what runs
	} {
		hook.Reset()
		if _, err := r.edit(edit[0], edit[1]); err == nil {
			t.Fatalf("%s was not refused", edit[1])
		}
		if !slices.ContainsFunc(messages(hook), func(m string) bool { return strings.Contains(m, "refused") }) {
			t.Errorf("%s: a signal's sender finds nothing in the log: %q", edit[1], messages(hook))
		}
	}
}

func messages(h *logtest.Hook) (out []string) {
	for _, e := range h.AllEntries() {
		out = append(out, e.Message)
	}
	return out
}

func TestNothingIsEnabledWhileStopping(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.stopMechanism()
	if r.Enabled() || r.listening() {
		t.Fatalf("stopped: enabled %v, listening %v", r.Enabled(), r.listening())
	}
	if _, err := r.Enable(context.Background()); status.Code(err) != codes.Unavailable {
		t.Errorf("Enable: %v", err)
	}
	if _, err := r.edit("node: test", "node: test\nenabled: true"); status.Code(err) != codes.Unavailable {
		t.Errorf("Reload: %v", err)
	}
	if r.Enabled() || r.listening() {
		t.Errorf("after both: enabled %v, listening %v", r.Enabled(), r.listening())
	}
}

func TestReloadWithoutRolesSwitchesOff(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.edit(template[strings.Index(template, "congestion_node:"):], ""); err != nil {
		t.Fatal(err)
	}
	if r.Enabled() || r.listening() || packetSockets(t) != 0 {
		t.Errorf("enabled %v, listening %v, %d packet sockets", r.Enabled(), r.listening(), packetSockets(t))
	}
}

func TestWatchOfFlowsEndsWithTheProxySection(t *testing.T) {
	r := start(t, template)
	stream, err := (flowsBackend{r.Daemon}).WatchFlows(1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := r.edit(template[strings.Index(template, "proxy:\n"):], ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := stream.Next(context.Background()); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
}

func TestCountsOfARingOutliveItsReplacement(t *testing.T) {
	b := newRingBook()
	count := func(n uint64) func() ringStats { return func() ringStats { return ringStats{Packets: n} } }
	packets := func() uint64 { return b.list()[0].Packets }
	first := b.opened("eth0", roleLearner, count(5))
	second := b.opened("eth0", roleLearner, count(3)) // opened before the first is closed
	first()
	if got := packets(); got != 8 {
		t.Errorf("replaced: %d packets, want 8", got)
	}
	third := b.opened("eth0", roleLearner, count(0)) // a change that is taken back
	third()
	if got := packets(); got != 8 {
		t.Errorf("the change was taken back: %d packets, want 8", got)
	}
	second()
	if got := packets(); got != 8 {
		t.Errorf("closed: %d packets, want 8", got)
	}
}

func TestWhatADetectorLeavesOutIsCounted(t *testing.T) {
	r := start(t, template)
	r.rings.opened("eth9", roleDetector, func() ringStats {
		return ringStats{Packets: 9, Freezes: 1, Ignored: 3, Malformed: 2, Events: 4, Gated: 7, GateForgotten: 6}
	})
	got := map[string]uint64{}
	for _, c := range r.Counters() {
		got[c.GetPart()+"/"+c.GetName()] = c.GetValue()
	}
	exporter := map[string]uint64{}
	for _, c := range (exported{r.Daemon}).Snapshot().Counters {
		if slices.Contains(c.Labels, telemetry.Label{Name: "interface", Value: "eth9"}) {
			exporter[c.Name] = c.Value
		}
	}
	for name, want := range map[string]uint64{"ignored": 3, "malformed": 2, "events-ce": 4, "gated": 7, "gate-forgotten": 6} {
		if n := got["detector/"+name+"{interface=eth9}"]; n != want || exporter[name] != want {
			t.Errorf("%s: counter %d, metric %d; want %d", name, n, exporter[name], want)
		}
	}
	if got["detector/freezes{interface=eth9}"] != 1 {
		t.Errorf("freezes: %d", got["detector/freezes{interface=eth9}"])
	}
	if len(exporter) != 9 {
		t.Errorf("what has a family of its own is exported twice: %v", exporter)
	}
}

func TestErrorsOfTheSpeakerKeepTheirKind(t *testing.T) {
	for _, tc := range []struct {
		err    error
		code   codes.Code
		reason string
	}{
		{bgp.ErrDisabled, codes.FailedPrecondition, api.ReasonDisabled},
		{bgp.ErrNotRunning, codes.FailedPrecondition, api.ReasonNotRunning},
		{bgp.ErrConfigured, codes.FailedPrecondition, api.ReasonConfigured},
		{bgp.ErrNotAdvertised, codes.NotFound, api.ReasonNotFound},
		{bgp.ErrConfig, codes.InvalidArgument, ""},
	} {
		var got *api.Error
		if err := bgpError(fmt.Errorf("advertise: %w", tc.err)); !errors.As(err, &got) || got.Code != tc.code || got.Reason != tc.reason {
			t.Errorf("%v: got %v", tc.err, err)
		}
	}
	engine := errors.New("the engine did not answer")
	if got := bgpError(engine); !errors.Is(got, engine) || status.Code(got) == codes.InvalidArgument {
		t.Errorf("a failure of the engine is blamed on the request: %v", got)
	}
}

func TestCheckHoldsTheRulesOfTheParts(t *testing.T) {
	const yaml = "bgp:\n  as: 65000\n  router_id: 192.0.2.1\n  neighbors: [{address: 192.0.2.254, as: 65000%s}]\n"
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 81)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ add, want string }{
		{"", ""},
		{", families: [ipv4-unicast, ipv4-unicast]", "once each"},
		{", password_file: " + key, "TCP MD5 takes at most 80"},
		{", password_file: " + key + ".none", "no such file"},
	} {
		c, err := config.Parse([]byte(fmt.Sprintf(yaml, tc.add)))
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(c); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%q: got %v, want %q", tc.add, err, tc.want)
		}
	}
}

func TestRefusalsNameAReasonOfTheAPI(t *testing.T) {
	r := start(t, template)
	_, noBGP := (advertiser{r.Daemon}).Advertise(context.Background(), api.Advertise{Prefix: netip.MustParsePrefix("198.51.100.0/24")})
	if _, err := r.edit(template[strings.Index(template, "proxy:\n"):], ""); err != nil {
		t.Fatal(err)
	}
	_, noProxy := (flowsBackend{r.Daemon}).WatchFlows(1)
	for _, err := range []error{noBGP, noProxy} {
		var got *api.Error
		if !errors.As(err, &got) || got.Code != codes.FailedPrecondition || got.Reason != api.ReasonNotConfigured {
			t.Errorf("got %v", err)
		}
	}
}

func TestBoundedStateShowsWhatItForgot(t *testing.T) {
	r := start(t, template)
	got := map[string]bool{}
	for _, c := range r.Counters() {
		got[c.GetPart()+"/"+c.GetName()] = true
	}
	for _, want := range []string{"notifier/flows-evicted", "translator/qps-evicted", "translator/nodes-evicted", "routes/overruns", "routes/changes"} {
		if !got[want] {
			t.Errorf("%s is not among the counters", want)
		}
	}
}
