package notifier

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

func TestHandleDoesNotAllocate(t *testing.T) {
	r := newRig(t, Config{TotalPerSecond: 1e9, TotalBurst: 1 << 30})
	n, err := New(Config{SourceIPv4: self4}, Deps{
		Resolver: ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution { return r.answer }),
		Sender:   sink{}, Recorder: r.rec, Random: func() uint64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.SetEnabled(true)
	ev, now := event(1), start
	if allocs := testing.AllocsPerRun(1000, func() {
		now = now.Add(30 * time.Microsecond)
		n.Handle(ev, now)
	}); allocs != 0 {
		t.Errorf("%v allocations for each event", allocs)
	}
}

type sink struct{}

func (sink) Send(p [][]byte) (int, error) { return len(p), nil }

func BenchmarkHandle(b *testing.B) {
	b.ReportAllocs()
	rec, err := evidence.NewRecorder(evidence.Config{})
	if err != nil {
		b.Fatal(err)
	}
	answer := pnc.Resolution{Reason: pnc.ReasonFound, Proxy: proxy4}
	n, err := New(Config{SourceIPv4: self4}, Deps{
		Resolver: ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution { return answer }),
		Sender:   sink{}, Recorder: rec, Random: func() uint64 { return 0 },
	})
	if err != nil {
		b.Fatal(err)
	}
	n.SetEnabled(true)
	ev, now := event(1), start
	for b.Loop() {
		now = now.Add(time.Microsecond)
		ev.DestQP = (ev.DestQP + 1) & 0xfff
		n.Handle(ev, now)
	}
	b.ReportMetric(float64(rec.Outcome(sent))/float64(b.N), "sent/op")
}

func ExampleNew() {
	rec, _ := evidence.NewRecorder(evidence.Config{Node: "r1"})
	n, err := New(Config{SourceIPv4: netip.MustParseAddr("203.0.113.1")}, Deps{
		Resolver: ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution {
			return pnc.Resolution{Reason: pnc.ReasonFound, Proxy: netip.MustParseAddr("203.0.113.9")}
		}),
		Sender: sink{}, Recorder: rec, Random: func() uint64 { return 0 },
	})
	if err != nil {
		panic(err)
	}
	n.SetEnabled(true)
	ev := &Event{
		Sender: netip.MustParseAddr("198.51.100.2"), Receiver: netip.MustParseAddr("192.0.2.1"),
		SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: 0x118, CECount: 1, Source: "ce eth1",
	}
	now := time.Unix(1_800_000_000, 0)
	fmt.Println(evidence.Name(n.Handle(ev, now)), evidence.Name(n.Handle(ev, now)))
	// Output: sent paced
}
