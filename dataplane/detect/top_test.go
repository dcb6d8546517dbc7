package detect

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

var topStart = time.Unix(1_700_000_000, 0)

func topFlow(qp uint32) *TopFlow {
	return &TopFlow{Sender: netip.MustParseAddr("10.0.1.1"), Receiver: netip.MustParseAddr("10.0.2.2"), SrcPort: 0xC000, DestQP: qp}
}

// qps are the flows that are named, in order.
func qps(list []TopFlow) (out []uint32) {
	for _, f := range list {
		out = append(out, f.DestQP)
	}
	return out
}

func TestTopFlowsAreThoseWithTheirShare(t *testing.T) {
	top := NewTopFlows(TopConfig{Window: time.Second, Count: 3, Share: 10})
	for i := range 100 {
		at := topStart.Add(time.Duration(i) * time.Millisecond)
		top.Observe(topFlow(1), 4000, at) // 40 %
		top.Observe(topFlow(2), 3000, at)
		top.Observe(topFlow(3), 1500, at)
		top.Observe(topFlow(4), 1000, at)           // as much as is asked for, and one too many
		top.Observe(topFlow(uint32(10+i)), 500, at) // mice
	}
	got := top.Top(topStart.Add(100 * time.Millisecond))
	if !slices.Equal(qps(got), []uint32{1, 2, 3}) || got[0].Octets != 400_000 || got[0].SrcPort != 0xC000 {
		t.Errorf("%+v", got)
	}
	top.config.Count = 10
	if got := qps(top.Top(topStart.Add(100 * time.Millisecond))); !slices.Equal(got, []uint32{1, 2, 3, 4}) {
		t.Errorf("%v", got)
	}
}

func TestTopFlowsAreForgottenAfterTwoWindows(t *testing.T) {
	top := NewTopFlows(TopConfig{Window: time.Second, Count: 8, Share: 5})
	see := func(qp uint32, after time.Duration) {
		for range minSeen {
			top.Observe(topFlow(qp), 1000, topStart.Add(after))
		}
	}
	at := func(after time.Duration, want ...uint32) {
		t.Helper()
		if got := qps(top.Top(topStart.Add(after))); !slices.Equal(got, want) {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	at(0)
	see(1, 0)
	at(900*time.Millisecond, 1)
	see(2, 1500*time.Millisecond)
	at(1900*time.Millisecond, 1, 2)
	at(2100*time.Millisecond, 2)
	at(3100 * time.Millisecond)
	see(3, 10*time.Second)
	at(10*time.Second, 3)
	see(4, 10*time.Second-5*time.Millisecond) // read later than one after it
	at(10*time.Second, 3, 4)
	at(time.Hour)
}

func TestFewPacketsNameNoFlow(t *testing.T) {
	top := NewTopFlows(TopConfig{Window: time.Second, Count: 8, Share: 5})
	for range minSeen - 1 {
		top.Observe(topFlow(1), 1000, topStart)
	}
	if got := top.Top(topStart); got != nil {
		t.Errorf("%+v", got)
	}
	top.Observe(topFlow(1), 1000, topStart.Add(time.Second)) // of the other window
	if got := top.Top(topStart.Add(time.Second)); len(got) != 1 || got[0].Octets != minSeen*1000 {
		t.Errorf("%+v", got)
	}
}

// However many flows there are: what is said of a flow is never more than what it had, and a flow that has its share is
// named.
func TestMoreFlowsThanTheSummaryHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	top := NewTopFlows(TopConfig{Window: time.Hour, Count: 64, Share: 5})
	truth, total := map[uint32]uint64{}, uint64(0)
	for i := range 200_000 {
		qp := 100 + r.Uint32N(20_000)
		if i%5 == 0 {
			qp = 1 + r.Uint32N(2) // 10 % each
		}
		octets := 100 + r.IntN(4000)
		truth[qp] += uint64(octets)
		total += uint64(octets)
		top.Observe(topFlow(qp), octets, topStart)
	}
	got := top.Top(topStart)
	if names := qps(got); len(names) != 2 || !slices.Contains(names, 1) || !slices.Contains(names, 2) {
		t.Fatalf("%v", names)
	}
	for _, f := range got {
		if f.Octets > truth[f.DestQP] || f.Octets < truth[f.DestQP]-total/topEntries {
			t.Errorf("QP %d: %d octets, it had %d", f.DestQP, f.Octets, truth[f.DestQP])
		}
	}
	if n := len(top.now.counters); n != topEntries || len(top.now.at) != n {
		t.Errorf("%d entries, %d names", n, len(top.now.at))
	}
}

// A flow that takes the least one's place has none of its octets: with them it would have its share.
func TestANewcomerIsNotNamedForWhatItsPlaceHad(t *testing.T) {
	top := NewTopFlows(TopConfig{Window: time.Hour, Count: 64, Share: 1})
	for qp := range uint32(topEntries) {
		for range 50 {
			top.Observe(topFlow(qp), 1000, topStart)
		}
	}
	see := func(n int) {
		for range n {
			top.Observe(topFlow(9999), 1000, topStart)
		}
	}
	see(100) // of 12,900; the place had 50
	if got := top.Top(topStart); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	see(30)
	if got := top.Top(topStart); len(got) != 1 || got[0].Octets != 130_000 {
		t.Errorf("%+v", got)
	}
}

func TestSamplerNamesWhatLeavesByTheLink(t *testing.T) {
	a, b := taptest.Pair(t)
	var s *Sampler
	if err := a.Do(func() (err error) {
		s, err = OpenSampler(SamplerConfig{Interface: "va", Sample: 1, Top: TopConfig{Window: time.Hour, Count: 8, Share: 20}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context()) }()
	near, far := taptest.NeedInjector(t, a, "va"), taptest.NeedInjector(t, b, "vb")
	const write, ack, n = 0x0A, 0x11, 10
	for range n {
		for _, f := range [][]byte{
			taptest.Ethernet(packet(t, false, 2, write, 1)), taptest.Ethernet(packet(t, true, 2, write, 2), [2]uint16{0x8100, 42}),
			taptest.Ethernet(packet(t, false, 2, ack, 3)), taptest.Ethernet(packet(t, false, 2, roce.OpcodeCNP, 4)),
		} {
			if err := near.Send(f); err != nil {
				t.Fatal(err)
			}
		}
		if err := far.Send(taptest.Ethernet(packet(t, false, 2, write, 5))); err != nil { // arrives
			t.Fatal(err)
		}
	}
	testwait.UntilRight(t, func() string {
		if got := s.Stats(); got != (SamplerStats{Seen: 2 * n, Ignored: 2 * n}) {
			return fmt.Sprintf("%+v", got)
		}
		return ""
	})
	got := s.Top(time.Now())
	if len(got) != 2 || !slices.Contains(qps(got), 1) || !slices.Contains(qps(got), 2) || got[0].SrcPort != 0xC123 {
		t.Errorf("%+v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("Run ended without an error when it was closed")
	}
}

// The kernel draws the sample: of many packets about one in so many is seen, and it is the flow that has most of them.
func TestSamplerIsShownOneInSoMany(t *testing.T) {
	a, _ := taptest.Pair(t)
	var s *Sampler
	if err := a.Do(func() (err error) {
		s, err = OpenSampler(SamplerConfig{Interface: "va", Sample: 8, Top: TopConfig{Window: time.Hour, Count: 8, Share: 50}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context()) }()
	in := taptest.NeedInjector(t, a, "va")
	const rounds = 1600
	few, many := taptest.Ethernet(packet(t, false, 2, 0x0A, 1)), taptest.Ethernet(packet(t, false, 2, 0x0A, 2))
	for range rounds {
		if err := in.Send(few, many, many, many); err != nil {
			t.Fatal(err)
		}
	}
	// 800 are expected, with a deviation of 26.
	testwait.Until(t, "the sample", func() bool { return s.Stats().Seen > 800-8*26 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if n := s.Stats().Seen; n > 800+8*26 {
		t.Errorf("%d of %d packets are in the sample", n, 4*rounds)
	}
	if got := s.Top(time.Now()); len(got) != 1 || got[0].DestQP != 2 {
		t.Errorf("%+v", got)
	}
}
