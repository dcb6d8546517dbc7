package tcx

import (
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"pncd/dataplane/detect"
	"pncd/dataplane/tap/taptest"
)

const writeOnly = 0x0A

// Each packet is an event exactly when its flow had none for the time of the gate.
func TestFlowIsReportedOncePerGate(t *testing.T) {
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true})
	flows := [][]byte{
		taptest.Ethernet(packet(t, false, 3, writeOnly, 1)),
		taptest.Ethernet(packet(t, false, 3, writeOnly, 2)),
		taptest.Ethernet(packet(t, true, 3, writeOnly, 1)),
	}
	type state struct {
		last         time.Time
		packets, sum uint64
		events       int
	}
	states := make([]state, len(flows))
	for i := 0; states[0].events < 20 || states[1].events < 20 || states[2].events < 20; i++ {
		s := &states[i%len(flows)]
		before := time.Now()
		_, events := run(t, d, flows[i%len(flows)])
		s.packets++
		const clocks = 50 * time.Microsecond // that the two clocks may drift apart in the test
		switch {
		case len(events) > 1:
			t.Fatalf("%d events of a packet", len(events))
		case len(events) == 0:
			if quiet := before.Sub(s.last); quiet >= DefaultGate+clocks {
				t.Fatalf("no event of flow %d, whose last was %v before", i%len(flows), quiet)
			}
		default:
			if quiet := events[0].At.Sub(s.last); quiet < DefaultGate-clocks {
				t.Fatalf("event of flow %d %v after its last", i%len(flows), quiet)
			}
			s.last = events[0].At
			s.events++
			s.sum += events[0].CECount
			if s.sum != s.packets {
				t.Fatalf("the events of flow %d stand for %d packets of %d", i%len(flows), s.sum, s.packets)
			}
		}
	}
	var want SourceCounters
	for _, s := range states {
		want.Events += uint64(s.events)
		want.Gated += s.packets - uint64(s.events)
	}
	if got := d.mustCount(t); got != (Counters{CE: want}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhatTheRingBufferDoesNotHoldIsCounted(t *testing.T) {
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true, Gate: eachPacket})
	f := taptest.Ethernet(packet(t, false, 3, writeOnly, 1))
	const packets = 40_000
	if _, err := d.prog.Run(&ebpf.RunOptions{Data: f, Repeat: packets}); err != nil {
		t.Fatal(err)
	}
	c := d.mustCount(t).CE
	if c.Lost == 0 || c.Events < 9000 || c.Packets() != packets {
		t.Errorf("%+v of %d packets", c, packets)
	}
	events := pending(t, d)
	if uint64(len(events)) != c.Events {
		t.Errorf("%d events, counted %d", len(events), c.Events)
	}
	_, after := run(t, d, f)
	if len(after) != 1 || after[0].CECount != c.Lost+1 {
		t.Errorf("%+v after %d lost ones", after, c.Lost)
	}
}

// The gate forgets flows and does not fail: more flows than it has room for are all reported.
func TestMoreFlowsThanTheGateHoldsAreReported(t *testing.T) {
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true, Flows: minFlows, Gate: time.Minute})
	const flows = 5000
	for qp := range uint32(flows) {
		_, events := run(t, d, taptest.Ethernet(packet(t, false, 3, writeOnly, qp)))
		if len(events) != 1 || events[0].DestQP != qp || events[0].Sender != netip.MustParseAddr("10.0.1.1") {
			t.Fatalf("QP %d: %+v", qp, events)
		}
	}
	if c := d.mustCount(t); c != (Counters{Forgotten: flows - minFlows, CE: SourceCounters{Events: flows}}) {
		t.Errorf("%+v", c)
	}
	// One that is there is not entered again.
	run(t, d, taptest.Ethernet(packet(t, false, 3, writeOnly, flows-1)))
	if c := d.mustCount(t); c.Forgotten != flows-minFlows || c.CE.Gated != 1 {
		t.Errorf("%+v", c)
	}
}

// A read that fails gives the counts of before: who takes differences must not see them step back.
func TestCountersThatCantBeReadStandStill(t *testing.T) {
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true, Gate: eachPacket})
	run(t, d, taptest.Ethernet(packet(t, false, 3, writeOnly, 1)))
	want := d.mustCount(t)
	counts := d.maps.Counts
	d.maps.Counts = d.maps.Queues // whose values are of another size
	got, err := d.Counters()
	d.maps.Counts = counts
	if err == nil || got != want || got.CE.Events != 1 {
		t.Errorf("%+v, %v, want %+v and an error", got, err, want)
	}
}

func TestCloseCountsWhatNobodyRead(t *testing.T) {
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true, Gate: eachPacket})
	const packets = 10
	if _, err := d.prog.Run(&ebpf.RunOptions{Data: taptest.Ethernet(packet(t, false, 3, writeOnly, 1)), Repeat: packets}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if c := d.mustCount(t); c != (Counters{CE: SourceCounters{Lost: packets}}) {
		t.Errorf("%+v", c)
	}
	if err := d.Run(t.Context(), func(detect.Event) {}); err == nil {
		t.Error("Run after Close")
	}
}
