package daemon

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/detect"
	"pncd/internal/config"
	"pncd/proxyagent/evidence"
)

const withoutQueues, withQueues = "detect: {mode: ring}", "detect: {mode: ring, qdiscs: [{interface: lo, interval: 1m, backlog: 1000}], api: {interfaces: [lo], rate: 1, burst: 3}}"

// part returns a part of the status; nil when there is none.
func (r *running) part(name string) *pncv1.Part {
	for _, p := range r.partList() {
		if p.GetName() == name {
			return p
		}
	}
	return nil
}

// reason is the reason of an API error, or its field.
func reason(err error) string {
	var own *api.Error
	if !errors.As(err, &own) {
		return ""
	}
	return own.Field + own.Reason
}

func TestReportsBecomeEvents(t *testing.T) {
	r := start(t, strings.Replace(template, withoutQueues, withQueues, 1))
	b := reportsBackend{r.Daemon}
	flow := &api.Report{Interface: "Ethernet12", Queue: "3", Depth: 7, DepthUnit: pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_CELLS, CECount: 5, Flow: &api.ReportedFlow{
		Sender: netip.MustParseAddr("203.0.113.1"), Receiver: netip.MustParseAddr("203.0.113.2"), SrcPort: 50000, DestQP: 9}}
	queue := &api.Report{Interface: "lo"}
	if _, err := b.Report(flow); reason(err) != api.ReasonDisabled {
		t.Errorf("while it is off: %v", err)
	}
	if p := r.part("reports"); p.GetState() != pncv1.PartState_PART_STATE_DISABLED {
		t.Errorf("%v", p)
	}
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.reportGates.get("").rate = &reportRate{interval: time.Hour, slack: 2 * time.Hour} // three at once
	events, err := b.Report(flow)
	if err != nil || len(events) != 1 || events[0].GetOutcome() != pncv1.Outcome_OUTCOME_NO_PROXY || events[0].GetFlow().GetDestinationQp() != 9 {
		t.Errorf("%v, %v", events, err)
	}
	if events, err = b.Report(queue); err != nil || len(events) != 1 || events[0].GetOutcome() != pncv1.Outcome_OUTCOME_FLOW_UNKNOWN || events[0].GetFlow() != nil {
		t.Errorf("%v, %v", events, err)
	}
	if _, err := b.Report(&api.Report{Interface: "Ethernet12"}); reason(err) != "flow" {
		t.Errorf("no flow: %v", err)
	}
	if _, err := b.Report(flow); err != nil {
		t.Error(err)
	}
	var own *api.Error
	if _, err := b.Report(flow); !errors.As(err, &own) || own.Code != codes.ResourceExhausted {
		t.Errorf("the fourth of a burst of three: %v", err)
	}
	b.Refused()

	got := map[string]uint64{}
	for _, c := range r.Counters() {
		if c.GetValue() > 0 && (c.GetPart() == "reports" || c.GetPart() == "congestion-node") {
			got[c.GetName()] = c.GetValue()
		}
	}
	for name, want := range map[string]uint64{
		"reports{result=accepted}": 3, "reports{result=invalid}": 2, "reports{result=rate-limited}": 1, "reports{result=disabled}": 1,
		"received": 3, "no-proxy": 2, "flow-unknown": 1,
	} {
		if got[name] != want {
			t.Errorf("%s: %d, want %d", name, got[name], want)
		}
	}
	if len(got) != 7 {
		t.Errorf("%v", got)
	}
	if p := r.part("reports"); p.GetState() != pncv1.PartState_PART_STATE_READY || p.GetDetail() != "3 accepted, 4 refused" {
		t.Errorf("%v", p)
	}
	records := r.recorder.List(evidence.Filter{}, 0)
	if first := records[0]; first.Congestion.Source != "api Ethernet12 queue 3" || first.Congestion.QueueDepth != 7 || first.Congestion.DepthUnit != flow.DepthUnit || first.Flow.DestQP != 9 {
		t.Errorf("%+v", first)
	}
	if second := records[1]; second.Congestion.Source != "api lo" || second.Flow.Sender.IsValid() || second.Err != "" {
		t.Errorf("%+v", second)
	}

	// Taken out of the configuration, it takes nothing; the units go.
	if _, err := r.edit(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Report(flow); reason(err) != api.ReasonNotConfigured {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"reports", "qdisc:lo", "top-flows:lo"} {
		if p := r.part(name); p != nil {
			t.Errorf("%v", p)
		}
	}
}

func TestQueueSourcesShowInTheStatus(t *testing.T) {
	const short, marks = "detect: {mode: ring, qdiscs: [{interface: lo, interval: 1m, backlog: 1000}]}", "detect: {mode: ring, qdiscs: [{interface: lo, interval: 1m}]}"
	r := start(t, strings.Replace(template, withoutQueues, short, 1))
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	if p := r.part("qdisc:lo"); p.GetState() != pncv1.PartState_PART_STATE_READY || p.GetDetail() != "noqueue each 1m0s: congested in 0 of 1 looks" {
		t.Errorf("%v", p)
	}
	if p := r.part("top-flows:lo"); p.GetState() != pncv1.PartState_PART_STATE_READY || !strings.HasPrefix(p.GetDetail(), "of one RoCEv2 packet in 16: at most 8 flows") {
		t.Errorf("%v", p)
	}
	if r.part("reports") != nil {
		t.Error("reports are taken though nobody asked for it")
	}
	if _, err := r.edit(withoutQueues, marks); err != nil {
		t.Fatal(err)
	}
	if p := r.part("qdisc:lo"); p.GetState() != pncv1.PartState_PART_STATE_FAILED || !strings.Contains(p.GetDetail(), "(noqueue) counts marks: give a backlog") {
		t.Errorf("%v", p)
	}
	// The count goes on when the unit is another.
	if n := r.qdiscs.of("lo").Polls.Load(); n != 2 {
		t.Errorf("%d looks", n)
	}
}

func TestReportsHaveARateAndABurst(t *testing.T) {
	r, at := newReportRate(10, 3), time.Unix(1_700_000_000, 0)
	take := func(after time.Duration, want int) {
		t.Helper()
		at = at.Add(after)
		for n := 0; ; n++ {
			if !r.take(at) {
				if n != want {
					t.Errorf("after another %v %d are taken, want %d", after, n, want)
				}
				return
			}
		}
	}
	take(0, 3)
	take(99*time.Millisecond, 0)
	take(time.Millisecond, 1)
	take(250*time.Millisecond, 2)
	take(50*time.Millisecond, 1)
	take(time.Hour, 3)
}

// Without a sampler the queue's outcome says why no flow is named.
func TestAQueueWithoutASamplerIsAnOutcome(t *testing.T) {
	r := start(t, template)
	out := r.tellQueue(r.parts.Load().notifier, &queueEvent{link: "eth9", source: "qdisc eth9", depth: 5}, r.now())
	records := r.recorder.List(evidence.Filter{}, 0)
	if len(out) != 1 || out[0].outcome != pncv1.Outcome_OUTCOME_FLOW_UNKNOWN || len(records) != 1 || records[0].Err != errNotSampled.Error() || records[0].Congestion.QueueDepth != 5 {
		t.Errorf("%+v, %+v", out, records)
	}
}

func TestTheNewerOfALinkCounts(t *testing.T) {
	var b linkBook[*detect.Sampler]
	first, second := new(detect.Sampler), new(detect.Sampler)
	closeFirst := b.opened("eth1", first)
	closeSecond := b.opened("eth1", second)
	if b.get("eth1") != second || b.get("eth2") != nil {
		t.Error("the newer one does not count")
	}
	closeSecond() // a change that is taken back
	if b.get("eth1") != first {
		t.Error("the older one is forgotten")
	}
	closeFirst()
	closeFirst()
	if b.get("eth1") != nil {
		t.Error("a closed one is found")
	}
}

func TestQueueSourcesFollowTheConfiguration(t *testing.T) {
	n := &config.CongestionNode{Contexts: []config.NodeContext{{Name: "blue", Interfaces: []string{"eth3"}}}, Detect: config.Detect{
		Qdiscs: []config.Qdisc{{Interface: "eth2"}, {Interface: "eth3"}}, API: &config.DetectAPI{Interfaces: []string{"eth2", "eth4"}, Rate: 1, Burst: 1}}}
	d := &Daemon{}
	names := func(n *config.CongestionNode) string {
		c := &config.Config{CongestionNode: n}
		var out []string
		for _, s := range append(append(d.samplerSpecs(c), d.qdiscSpecs(c, nil)...), d.reportSpecs(c, nil)...) {
			out = append(out, s.name)
		}
		return strings.Join(out, " ")
	}
	if got, want := names(n), "top-flows:eth2 top-flows:blue/eth3 top-flows:eth4 qdisc:eth2 qdisc:blue/eth3 reports"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	queue := config.VirtualQueue{Interface: "eth2"}
	n.Detect.VirtualQueues = []config.VirtualQueue{queue}
	key := func() string { return d.reportSpecs(&config.Config{CongestionNode: n}, nil)[0].key }
	before := key()
	n.Detect.VirtualQueues = []config.VirtualQueue{queue} // as a file that was read again
	if after := key(); before != after {
		t.Errorf("the same is another unit: %s, %s", before, after)
	}
	if got := names(&config.CongestionNode{Interfaces: []string{"eth2"}}); got != "" {
		t.Errorf("off by default, and there is %s", got)
	}
}
