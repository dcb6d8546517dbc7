package notifier

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start  = time.Unix(1_800_000_000, 0)
	proxy4 = netip.MustParseAddr("203.0.113.9")
	proxy6 = netip.MustParseAddr("2001:db8:ffff::9")
	self4  = netip.MustParseAddr("203.0.113.1")
	self6  = netip.MustParseAddr("2001:db8:ffff::1")
)

// wire is a Sender that keeps copies and can be told to fail.
type wire struct {
	packets [][]byte
	err     error
}

func (w *wire) Send(packets [][]byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	for _, p := range packets {
		w.packets = append(w.packets, append([]byte(nil), p...))
	}
	return len(packets), nil
}

// rig is a Notifier with everything around it in the test's hands.
type rig struct {
	*Notifier
	rec    *evidence.Recorder
	wire   *wire
	answer pnc.Resolution
	asked  int
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	rec, err := evidence.NewRecorder(evidence.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		rec: rec, wire: &wire{},
		answer: pnc.Resolution{Reason: pnc.ReasonFound, Proxy: proxy4, Route: pnc.NewEntry(pnc.Route{Proxy: proxy4})},
	}
	if !cfg.SourceIPv4.IsValid() && !cfg.SourceIPv6.IsValid() {
		cfg.SourceIPv4, cfg.SourceIPv6 = self4, self6
	}
	r.Notifier, err = New(cfg, Deps{
		Resolver: ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution { r.asked++; return r.answer }),
		Sender:   r.wire, Recorder: rec, Random: func() uint64 { return 16_383 },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.SetEnabled(true)
	return r
}

func (r *rig) last() evidence.Record { return r.rec.List(evidence.Filter{}, 1)[0] }

func event(qp uint32) *Event {
	return &Event{
		Sender: netip.MustParseAddr("198.51.100.2"), Receiver: netip.MustParseAddr("192.0.2.1"),
		SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: qp, CECount: 1, Source: "ce eth1", At: start,
	}
}

func TestEveryReasonNotToNotifyHasItsOutcome(t *testing.T) {
	want := map[pnc.Reason]evidence.Outcome{
		pnc.ReasonNoRoute:             pncv1.Outcome_OUTCOME_NO_PROXY,
		pnc.ReasonNoProxy:             pncv1.Outcome_OUTCOME_NO_PROXY,
		pnc.ReasonContextUnknown:      pncv1.Outcome_OUTCOME_CONTEXT_UNKNOWN,
		pnc.ReasonDefaultRouteRefused: pncv1.Outcome_OUTCOME_DEFAULT_ROUTE_REFUSED,
		pnc.ReasonProxyUnreachable:    pncv1.Outcome_OUTCOME_PROXY_UNREACHABLE,
		pnc.ReasonSelfProxy:           pncv1.Outcome_OUTCOME_SELF_PROXY,
	}
	for _, reason := range pnc.Reasons() {
		if reason == pnc.ReasonFound {
			continue
		}
		outcome, ok := want[reason]
		if !ok {
			t.Errorf("no outcome is decided on for reason %v", reason)
			continue
		}
		r := newRig(t, Config{})
		route := pnc.NewEntry(pnc.Route{})
		r.answer = pnc.Resolution{Reason: reason, Route: route}
		if got := r.Handle(event(1), start); got != outcome {
			t.Errorf("%v: outcome %v, want %v", reason, got, outcome)
		}
		if len(r.wire.packets) != 0 || r.rec.Outcome(outcome) != 1 {
			t.Errorf("%v: %d packets left, %d counted", reason, len(r.wire.packets), r.rec.Outcome(outcome))
		}
		if rec := r.last(); rec.Congestion.Route != route || rec.Congestion.Event.Port != 0 || rec.Flow.DestQP != 1 {
			t.Errorf("%v: record %+v", reason, rec)
		}
	}
}

func TestAReasonThatIsNotKnownIsNoProxy(t *testing.T) {
	r := newRig(t, Config{})
	r.answer = pnc.Resolution{Reason: pnc.Reason(200)}
	if got := r.Handle(event(1), start); got != pncv1.Outcome_OUTCOME_NO_PROXY {
		t.Errorf("outcome %v", got)
	}
}

func TestDisabledSendsAndResolvesNothing(t *testing.T) {
	r := newRig(t, Config{})
	r.SetEnabled(false)
	if got := r.Handle(event(1), start); got != pncv1.Outcome_OUTCOME_DISABLED {
		t.Errorf("outcome %v", got)
	}
	if r.asked != 0 || len(r.wire.packets) != 0 || r.Enabled() {
		t.Errorf("asked %d times, %d packets", r.asked, len(r.wire.packets))
	}
	if rec := r.last(); rec.Flow.DestQP != 1 || rec.Congestion.Source != "ce eth1" {
		t.Errorf("record %+v", rec)
	}
	r.SetEnabled(true)
	if got := r.Handle(event(1), start); got != pncv1.Outcome_OUTCOME_SENT {
		t.Errorf("after enabling: outcome %v", got)
	}
}

// step is one event of a scenario: when, which flow, and what must become of it.
type step struct {
	after time.Duration
	qp    uint32
	want  evidence.Outcome
}

const (
	sent    = pncv1.Outcome_OUTCOME_SENT
	paced   = pncv1.Outcome_OUTCOME_PACED
	sampled = pncv1.Outcome_OUTCOME_SAMPLED_OUT
	limited = pncv1.Outcome_OUTCOME_RATE_LIMITED
	failed  = pncv1.Outcome_OUTCOME_SEND_ERROR
)

func TestOrderOfSamplingPacingAndRate(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cfg   Config
		steps []step
	}{
		{"one in 50 us for each flow", Config{}, []step{
			{0, 1, sent}, {0, 1, paced}, {0, 2, sent}, {49 * time.Microsecond, 1, paced}, {50 * time.Microsecond, 1, sent},
		}},
		{"so many in a second for each flow", Config{PerFlowPerSecond: 2}, []step{
			{0, 1, sent}, {time.Millisecond, 1, sent}, {2 * time.Millisecond, 1, paced}, {2 * time.Millisecond, 2, sent},
			{999 * time.Millisecond, 1, paced}, {time.Second, 1, sent},
		}},
		{"one in N of each flow, the first included", Config{SampleN: 3}, []step{
			{0, 1, sent}, {time.Second, 1, sampled}, {2 * time.Second, 2, sent}, {2 * time.Second, 1, sampled}, {3 * time.Second, 1, sent},
		}},
		{"sampling comes before pacing", Config{SampleN: 2}, []step{
			{0, 1, sent}, {0, 1, sampled}, {0, 1, paced}, {0, 1, sampled},
		}},
		{"pacing comes before the total rate", Config{TotalPerSecond: 1, TotalBurst: 2}, []step{
			{0, 1, sent}, {0, 1, paced}, {0, 2, sent}, {0, 3, limited}, {0, 1, paced}, {time.Second, 3, sent},
		}},
		{"an event that the total rate refuses costs the flow no window", Config{TotalPerSecond: 1000, TotalBurst: 1}, []step{
			{0, 1, sent}, {999 * time.Microsecond, 2, limited}, {1000 * time.Microsecond, 2, sent},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.cfg)
			for i, s := range tc.steps {
				if got := r.Handle(event(s.qp), start.Add(s.after)); got != s.want {
					t.Errorf("step %d: outcome %v, want %v", i, got, s.want)
				}
			}
			if got := r.rec.Sum(evidence.PartCongestionNode); got != uint64(len(tc.steps)) {
				t.Errorf("%d events have %d outcomes", len(tc.steps), got)
			}
		})
	}
}

func TestAThousandASecondForAFlowAtMost(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 100_000 {
		r.Handle(event(1), start.Add(time.Duration(i)*20*time.Microsecond)) // for two seconds
	}
	if n := r.rec.Outcome(sent); n != 2000 {
		t.Errorf("%d sent in two seconds, want 2000", n)
	}
}

func TestCECountGathersSinceTheFlowsLastNotification(t *testing.T) {
	r := newRig(t, Config{})
	for i, tc := range []struct {
		after time.Duration
		count uint64
		want  uint64
	}{{0, 5, 5}, {1, 2, 2}, {2, 3, 5}, {time.Millisecond, 1, 6}, {2 * time.Millisecond, 1, 1}} {
		ev := event(1)
		ev.CECount = tc.count
		r.Handle(ev, start.Add(tc.after))
		if got := r.last().Congestion.CECount; got != tc.want {
			t.Errorf("step %d: CE count %d, want %d", i, got, tc.want)
		}
	}
}

func TestEventNumbersStepForEachProxyAndOnlyForWhatLeft(t *testing.T) {
	r := newRig(t, Config{})
	ports := func(proxy netip.Addr, qp uint32) evidence.EventNumber {
		r.answer.Proxy = proxy
		r.Handle(event(qp), start)
		return r.last().Congestion.Event
	}
	// The injected start is 16,383: the last port, after which the counter wraps.
	if got := ports(proxy4, 1); got != (evidence.EventNumber{Port: 65535, Count: 1}) {
		t.Errorf("first: %+v", got)
	}
	if got := ports(proxy6, 2); got != (evidence.EventNumber{Port: 65535, Count: 1}) {
		t.Errorf("another proxy: %+v", got)
	}
	r.wire.err = errors.New("no buffer space available")
	if got := ports(proxy4, 3); got != (evidence.EventNumber{}) {
		t.Errorf("a notification that did not leave has number %+v", got)
	}
	r.wire.err = nil
	if got := ports(proxy4, 4); got != (evidence.EventNumber{Port: 49152, Count: 2}) {
		t.Errorf("second: %+v", got)
	}
}

func TestSendErrorIsCountedAndKeepsTheError(t *testing.T) {
	r := newRig(t, Config{})
	r.wire.err = errors.New("no buffer space available")
	if got := r.Handle(event(1), start); got != failed {
		t.Errorf("outcome %v", got)
	}
	if rec := r.last(); !strings.Contains(rec.Err, "no buffer space") || rec.Congestion.CECount != 1 {
		t.Errorf("record %+v", rec)
	}
	// The CE packets of what did not leave belong to the next notification.
	r.wire.err = nil
	r.Handle(event(1), start.Add(time.Millisecond))
	if got := r.last().Congestion.CECount; got != 2 {
		t.Errorf("CE count %d, want 2", got)
	}
}

func TestASenderThatSendsNothingWithoutAnErrorIsASendError(t *testing.T) {
	r := newRig(t, Config{})
	n, err := New(Config{SourceIPv4: self4}, Deps{
		Resolver: ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution { return r.answer }),
		Sender:   idle{}, Recorder: r.rec, Random: func() uint64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.SetEnabled(true)
	if got := n.Handle(event(1), start); got != failed {
		t.Errorf("outcome %v", got)
	}
}

type idle struct{}

func (idle) Send([][]byte) (int, error) { return 0, nil }

func TestMissingSourceOfTheProxysFamilyIsNamed(t *testing.T) {
	for _, tc := range []struct {
		cfg   Config
		proxy netip.Addr
		want  string
	}{
		{Config{SourceIPv6: self6}, proxy4, "203.0.113.9 needs an IPv4 source"},
		{Config{SourceIPv4: self4}, proxy6, "2001:db8:ffff::9 needs an IPv6 source"},
	} {
		r := newRig(t, tc.cfg)
		r.answer.Proxy = tc.proxy
		if got := r.Handle(event(1), start); got != failed || !strings.Contains(r.last().Err, tc.want) {
			t.Errorf("outcome %v, error %q; want it to say %q", got, r.last().Err, tc.want)
		}
	}
}

func TestAnEventThatNoFormatCanCarryIsASendError(t *testing.T) {
	for name, edit := range map[string]func(*Event){
		"families differ": func(ev *Event) { ev.Receiver = proxy6 },
		"Destination QP":  func(ev *Event) { ev.DestQP = 1 << 24 },
	} {
		r := newRig(t, Config{})
		ev := event(1)
		edit(ev)
		if got := r.Handle(ev, start); got != failed || !strings.Contains(r.last().Err, name) {
			t.Errorf("%s: outcome %v, error %q", name, got, r.last().Err)
		}
	}
}

func TestReconfigureKeepsEventNumbersAndPacing(t *testing.T) {
	r := newRig(t, Config{})
	r.Handle(event(1), start)
	if err := r.Reconfigure(Config{DSCP: 99}); err == nil {
		t.Error("DSCP 99 is taken")
	}
	if err := r.Reconfigure(Config{SourceIPv4: self4, PaceWindow: time.Second}); err != nil {
		t.Fatal(err)
	}
	if got := r.Handle(event(1), start.Add(time.Millisecond)); got != paced {
		t.Errorf("outcome %v: the new window does not hold for what was sent before", got)
	}
	r.Handle(event(2), start.Add(time.Millisecond))
	if got := r.last().Congestion.Event; got != (evidence.EventNumber{Port: 49152, Count: 2}) {
		t.Errorf("event number %+v does not go on", got)
	}
}

func TestPacingStateIsBounded(t *testing.T) {
	r := newRig(t, Config{MaxFlows: 10, TotalBurst: 1000})
	for qp := range uint32(100) {
		r.Handle(event(qp), start)
	}
	if s := r.Stats(); s.Flows != 10 || s.FlowsEvicted != 90 || s.Proxies != 1 {
		t.Errorf("stats %+v", s)
	}
}

// Every event ends in exactly one outcome, whoever hands it in and whatever is changed meanwhile.
func TestOutcomesSumUpToEventsUnderLoad(t *testing.T) {
	const workers, each = 4, 5000
	r := newRig(t, Config{SampleN: 2, TotalPerSecond: 1000, TotalBurst: 100, MaxFlows: 16})
	r.wire.packets = nil
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			for i := range each {
				r.Handle(event(uint32(i%64)), start.Add(time.Duration(g*each+i)*time.Microsecond))
				if i%100 == 0 {
					r.SetEnabled(i%200 == 0)
				}
			}
		})
	}
	wg.Wait()
	c := r.rec
	if got := c.Sum(evidence.PartCongestionNode); got != workers*each || c.TotalReceived(evidence.PartCongestionNode) != workers*each {
		t.Errorf("%d events, %d received, %d outcomes", workers*each, c.TotalReceived(evidence.PartCongestionNode), got)
	}
	if got := c.Outcome(sent); got != uint64(len(r.wire.packets)) {
		t.Errorf("%d counted as sent, %d left", got, len(r.wire.packets))
	}
}

func TestConfigNamesTheFieldOutOfRange(t *testing.T) {
	for field, cfg := range map[string]Config{
		"SourceIPv4":       {SourceIPv4: self6},
		"SourceIPv6":       {SourceIPv6: self4},
		"DSCP":             {DSCP: 64},
		"SampleN":          {SampleN: -1},
		"PaceWindow":       {PaceWindow: -1},
		"PerFlowPerSecond": {PerFlowPerSecond: -1},
		"TotalPerSecond":   {TotalPerSecond: -1},
		"TotalBurst":       {TotalBurst: -1},
		"MaxFlows":         {MaxFlows: -1},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("a Notifier without anything to work with")
	}
}
