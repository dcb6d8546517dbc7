package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/detect"
	"pncd/dataplane/detect/tcx"
	tapkernel "pncd/dataplane/tap/kernel"
	"pncd/internal/config"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/notifier"
)

func TestHowALinkIsWatchedIsChosenAndSaid(t *testing.T) {
	has := tapkernel.Support{Kernel: "6.12"}
	hasNot := tapkernel.Support{Kernel: "6.1", TCX: errors.New("TCX (Linux 6.6): not supported by this kernel")}
	queue := config.VirtualQueue{Interface: "eth2"}
	for _, tt := range []struct {
		s       detectorSettings
		support tapkernel.Support
		marks   string
		want    string
	}{
		{detectorSettings{mode: "auto"}, has, "", "tcx: Linux 6.12 has it"},
		{detectorSettings{mode: "auto"}, has, "red", "ring: its queueing discipline red may mark packets, behind TCX"},
		{detectorSettings{mode: "auto"}, hasNot, "", "ring: TCX (Linux 6.6): not supported by this kernel"},
		{detectorSettings{mode: "auto"}, hasNot, "red", "ring: TCX (Linux 6.6): not supported by this kernel"},
		{detectorSettings{mode: "ring"}, has, "", "ring: congestion_node.detect.mode asks for it"},
		{detectorSettings{mode: "tcx"}, hasNot, "", "tcx: congestion_node.detect.mode asks for it"},
		{detectorSettings{mode: "tcx"}, has, "red", "tcx: congestion_node.detect.mode asks for it; what its queueing discipline red marks, behind the program, is not seen"},
		{detectorSettings{mode: "auto", queue: queue}, has, "red", "tcx: a virtual queue needs it; what its queueing discipline red marks, behind the program, is not seen"},
		{detectorSettings{mode: "ring", queue: queue}, hasNot, "", "tcx: a virtual queue needs it"},
	} {
		if got := tt.s.choose(func() tapkernel.Support { return tt.support }, tt.marks).String(); got != tt.want {
			t.Errorf("%+v, qdisc %q: %q, want %q", tt.s, tt.marks, got, tt.want)
		}
	}
}

// What the kernel offers is asked by loading a program: only where the answer counts.
func TestTheKernelIsAskedOnlyForAuto(t *testing.T) {
	asked := 0
	probe := func() tapkernel.Support { asked++; return tapkernel.Support{} }
	for _, s := range []detectorSettings{{mode: "ring"}, {mode: "tcx"}, {mode: "auto", queue: config.VirtualQueue{Interface: "eth2"}}} {
		if s.choose(probe, ""); asked != 0 {
			t.Fatalf("asked for %+v", s)
		}
	}
	s := detectorSettings{mode: "auto"}
	if s.choose(probe, ""); asked != 1 {
		t.Errorf("asked %d times for auto", asked)
	}
}

func TestAnEventIsToldWithoutAllocating(t *testing.T) {
	var got notifier.Event
	d := &detector{detectorSettings: detectorSettings{iface: "eth2", context: "blue"}, now: time.Now, sources: recordSources("eth2 of blue"), handle: func(ev *notifier.Event, _ time.Time) { got = *ev }}
	var ev notifier.Event
	e := detect.Event{Source: detect.SourceVirtualQueue, DestQP: 7, QueueDepth: 9}
	if n := testing.AllocsPerRun(100, func() { d.tell(&ev, &e) }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
	if got.Source != "virtual-queue eth2 of blue" || got.Context != "blue" || got.DestQP != 7 || got.QueueDepth != 9 {
		t.Errorf("%+v", got)
	}
}

// Another queueing discipline ends the detector only where another kind of it has to take over, and shows in what it says
// of itself all the same.
func TestAnotherQdiscEndsADetectorWhereItDecides(t *testing.T) {
	has, hasNot := tapkernel.Support{Kernel: "6.12"}, tapkernel.Support{TCX: errors.New("no TCX")}
	for _, tt := range []struct {
		s        detectorSettings
		support  tapkernel.Support
		from, to string
		ends     bool
	}{
		{detectorSettings{mode: "auto"}, has, "", "red", true},
		{detectorSettings{mode: "auto"}, has, "red", "", true},
		{detectorSettings{mode: "auto"}, has, "red", "fq_codel", false},
		{detectorSettings{mode: "auto"}, hasNot, "", "red", false},
		{detectorSettings{mode: "ring"}, has, "", "red", false},
		{detectorSettings{mode: "tcx"}, has, "", "red", false},
		{detectorSettings{mode: "auto", queue: config.VirtualQueue{Interface: "eth2"}}, has, "red", "", false},
	} {
		d := &detector{detectorSettings: tt.s, probe: func() tapkernel.Support { return tt.support }}
		c := d.choose(d.probe, tt.from)
		d.choice.Store(&c)
		if err := d.rechoose(tt.to); errors.Is(err, errQdiscChanged) != tt.ends {
			t.Errorf("%+v, from %q to %q: %v", tt.s, tt.from, tt.to, err)
		} else if want := d.choose(d.probe, tt.to).String(); !tt.ends && d.Detail() != want {
			t.Errorf("%+v, from %q to %q: it says %q, want %q", tt.s, tt.from, tt.to, d.Detail(), want)
		}
	}
}

func TestDetectorsFollowTheConfiguration(t *testing.T) {
	n := &config.CongestionNode{Interfaces: []string{"eth1", "eth2"}, Detect: config.Detect{
		Mode: "auto", Gate: config.Duration{Duration: time.Millisecond}, Flows: 4096,
		VirtualQueues: []config.VirtualQueue{{Interface: "eth2", RateMbit: 100, Kmin: 10, Kmax: 20, Pmax: 50}, {Interface: "eth3", RateMbit: 1, Kmin: 1, Kmax: 2, Pmax: 1}},
	}}
	c := &config.Config{CongestionNode: n}
	all := detectorsOf(c)
	if len(all) != 3 || all[0].iface != "eth1" || all[0].hasQueue() || !all[0].ce || !all[1].hasQueue() || !all[1].ce || all[2].ce || !all[2].hasQueue() {
		t.Fatalf("%+v", all)
	}
	p := all[1].program()
	if p.Interface != "eth2" || !p.CE || p.Gate != time.Millisecond || p.Flows != 4096 || *p.Queue != (tcx.Queue{Rate: 100e6, Kmin: 10, Kmax: 20, Pmax: 0.5}) {
		t.Errorf("%+v %+v", p, p.Queue)
	}
	n.Detect.Gate.Duration = 0
	if p := detectorsOf(c)[0].program(); p.Gate >= 0 || p.Queue != nil {
		t.Errorf("%+v", p)
	}
	if a, b := all[0].key(), detectorsOf(c)[0].key(); a == b {
		t.Errorf("another gate is the same unit: %s", a)
	}
	n.Detect.Mode = "ring"
	ring := detectorsOf(c)[0].key()
	n.Detect.Gate.Duration = time.Second
	if got := detectorsOf(c)[0].key(); got != ring {
		t.Errorf("a ring has no gate: %s, %s", ring, got)
	}
}

func TestWhatADetectorLosesIsAnOutcome(t *testing.T) {
	r := start(t, template)
	var lost atomic.Pointer[ringStats]
	lost.Store(&ringStats{Drops: 5, GateFull: 2})
	r.rings.opened("eth9", roleDetector, func() ringStats { return *lost.Load() })
	r.rings.opened("eth9", roleLearner, func() ringStats { return ringStats{Drops: 100} })
	check := func(overflow, gateFull uint64) {
		t.Helper()
		got := map[string]uint64{}
		for _, c := range r.Counters() {
			if c.GetPart() == "congestion-node" && c.GetValue() > 0 {
				got[c.GetName()] = c.GetValue()
			}
		}
		if got["detector-overflow"] != overflow || got["detector-gate-full"] != gateFull || got["received"] != overflow+gateFull || len(got) != 3 {
			t.Errorf("%v, want %d and %d", got, overflow, gateFull)
		}
	}
	check(5, 2)
	check(5, 2)
	lost.Store(&ringStats{Drops: 7, GateFull: 3})
	check(7, 3)
	var seen int
	for _, rec := range r.recorder.List(evidence.Filter{}, 0) {
		if rec.Congestion.Source != "detector eth9" || rec.Err == "" {
			t.Errorf("%+v", rec)
		}
		if rec.Outcome == pncv1.Outcome_OUTCOME_DETECTOR_OVERFLOW {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d records of overflow", seen)
	}
}

// A daemon with the default mode changes to the packet ring and back, and says which it is.
func TestReloadChangesHowALinkIsWatched(t *testing.T) {
	const ring, auto = "detect: {mode: ring}", "detect: {mode: auto}"
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	detail := func() string {
		for _, p := range r.partList() {
			if p.GetName() == "detector:lo" {
				if p.GetState() != pncv1.PartState_PART_STATE_READY {
					t.Errorf("%v", p)
				}
				return p.GetDetail()
			}
		}
		return ""
	}
	for _, tt := range []struct{ edit, want string }{
		{auto, detectorsOf(&config.Config{CongestionNode: &config.CongestionNode{Interfaces: []string{"lo"}, Detect: config.Detect{Mode: "auto"}}})[0].choose(r.probe, "").String()},
		{ring, "ring: congestion_node.detect.mode asks for it"},
	} {
		if _, err := r.edit(ring, tt.edit); err != nil {
			t.Fatal(err)
		}
		if got := detail(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.edit, got, tt.want)
		}
	}
}
