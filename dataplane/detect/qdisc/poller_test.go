package qdisc

import (
	"context"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
)

var roceA, roceB = netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("10.0.2.2")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, ns *taptest.NS, c Config) *Poller {
	t.Helper()
	var p *Poller
	if err := ns.Do(func() (err error) {
		p, err = Open(c)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// tc runs tc(8) in a namespace; a kernel without the discipline skips the test.
func tc(t *testing.T, ns *taptest.NS, args string) {
	t.Helper()
	if err := ns.Do(func() error {
		out, err := exec.Command("tc", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return errors.New(string(out))
		}
		return nil
	}); err != nil {
		if strings.Contains(err.Error(), "unknown") || strings.Contains(err.Error(), "executable file not found") {
			t.Skipf("tc %s: %v", args, err)
		}
		t.Fatal(err)
	}
}

// A slow queue: its backlog is found while packets wait in it, and the kinds of the link follow what is there.
func TestPollerFindsTheBacklogOfAQueue(t *testing.T) {
	a, _ := taptest.Pair(t)
	p := open(t, a, Config{Interface: "va", Interval: MinInterval, Backlog: 20_000})
	if kinds := p.Kinds(); kinds != "noqueue" {
		t.Errorf("at first %q", kinds)
	}
	tc(t, a, "qdisc add dev va root tbf rate 100kbit burst 2k limit 100k")
	found := make(chan Congestion, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- p.Run(ctx, func(c Congestion) {
			select {
			case found <- c:
			default:
			}
		})
	}()
	frame := make([]byte, 1000)
	copy(frame, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 1, 0x88, 0xB5}) // local experimental (IEEE 802)
	in := taptest.NeedInjector(t, a, "va")
	for range 40 { // 38 KB wait for 3 s
		if err := in.Send(frame); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case c := <-found:
		if c.Marks != 0 || c.Depth < 20_000 || c.Depth > 100_000 {
			t.Errorf("%+v", c)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing found in %d looks", p.counters.Polls.Load())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if congested, polls := p.counters.Congested.Load(), p.counters.Polls.Load(); p.Kinds() != "tbf" || congested == 0 || polls < congested || p.counters.Marks.Load() != 0 {
		t.Errorf("%q: congested in %d of %d looks", p.Kinds(), congested, polls)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// Where the kernel has RED, the marks that it sets are counted.
func TestPollerCountsTheMarksOfRED(t *testing.T) {
	a, _ := taptest.Pair(t)
	tc(t, a, "qdisc add dev va root handle 1: tbf rate 500kbit burst 2k limit 200k")
	tc(t, a, "qdisc add dev va parent 1: handle 2: red limit 400000 min 3000 max 9000 avpkt 1000 burst 5 ecn bandwidth 1mbit")
	p := open(t, a, Config{Interface: "va", Interval: MinInterval})
	found := make(chan Congestion, 1)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		done <- p.Run(ctx, func(c Congestion) {
			select {
			case found <- c:
			default:
			}
		})
	}()
	in := taptest.NeedInjector(t, a, "va")
	b, err := roce.AppendPacket(nil, &roce.PacketSpec{Src: roceA, Dst: roceB, TOS: 2, SrcPort: 0xC123, BTH: roce.BTH{Opcode: 0x0A, PKey: 0xFFFF, DestQP: 1}, Body: make([]byte, 900)})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if err := in.Send(taptest.Ethernet(b)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case c := <-found:
		if c.Marks == 0 {
			t.Errorf("%+v", c)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("nothing found in %d looks", p.counters.Polls.Load())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPollerSaysWhenThereIsNothingToLookAt(t *testing.T) {
	a, _ := taptest.Pair(t)
	p := open(t, a, Config{Interface: "va", Interval: time.Second})
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "va: none of its queueing disciplines (noqueue) counts marks: give a backlog") {
		t.Error(err)
	}
}

func TestRunEndsWhenTheLinkIsGone(t *testing.T) {
	a, _ := taptest.Pair(t)
	p := open(t, a, Config{Interface: "va", Interval: MinInterval, Backlog: 1})
	done := make(chan error, 1)
	go func() { done <- p.Run(context.Background(), func(Congestion) {}) }()
	if err := a.Delete("va"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, ErrInterfaceGone) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run did not end")
	}
	if p.Check() == nil {
		t.Error("nothing is wrong")
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	ns := taptest.Need(t)
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Interface: "lo"}, "interval 0s: not within 1ms to 1m0s"},
		{Config{Interface: "lo", Interval: time.Hour}, "interval 1h0m0s"},
		{Config{Interface: "nope0", Interval: time.Second}, "nope0: no such interface"},
	} {
		err := ns.Do(func() error { _, err := Open(tt.c); return err })
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.c, err, tt.want)
		}
	}
}
