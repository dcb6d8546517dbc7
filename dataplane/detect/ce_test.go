package detect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/dataplane/tap/taptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func packet(tb testing.TB, v6 bool, tos uint8, op roce.Opcode, qp uint32) []byte {
	tb.Helper()
	s := roce.PacketSpec{
		Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.2.2"), TOS: tos, SrcPort: 0xC123, IPID: 1,
		BTH: roce.BTH{Opcode: op, PKey: 0xFFFF, DestQP: qp}, Body: make([]byte, 32),
	}
	if v6 {
		s.Src, s.Dst = netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:2::2")
	}
	b, err := roce.AppendPacket(nil, &s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// counted are the opcodes that count when marked: RC and UC requests, and READ responses.
func counted(op int) bool {
	switch {
	case op <= 0x10, op == 0x13, op == 0x14, op == 0x16, op == 0x17, op == 0x1C, op == 0x1D:
		return true
	case op >= 0x20 && op <= 0x2B:
		return true
	}
	return false
}

func TestOnlyMarkedRequestsAndReadResponsesCount(t *testing.T) {
	for op := range 256 {
		for ecn := range uint8(4) {
			p := roce.Packet{TOS: 0x68 | ecn, BTH: roce.BTH{Opcode: roce.Opcode(op)}}
			if got, want := Counts(&p), ecn == 3 && counted(op); got != want {
				t.Errorf("opcode 0x%02x, ECN %d: counts %v, want %v", op, ecn, got, want)
			}
		}
	}
}

func openCE(t *testing.T, ns *taptest.NS, name string) *CE {
	t.Helper()
	var c *CE
	if err := ns.Do(func() (err error) {
		c, err = OpenCE(Config{Interface: name})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// events runs c for the time of the test.
func events(t *testing.T, c *CE) <-chan Event {
	t.Helper()
	ch := make(chan Event, 1<<14)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, func(e Event) { ch <- e }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ch
}

func next(t *testing.T, ch <-chan Event) Event {
	t.Helper()
	select {
	case e := <-ch:
		return e
	case <-time.After(patience):
		t.Fatal("no event")
		return Event{}
	}
}

func TestCEReportsTheFlowOfEachMarkedDataPacketThatLeaves(t *testing.T) {
	a, b := taptest.Pair(t)
	c := openCE(t, a, "va")
	ch := events(t, c)
	near, far := taptest.NeedInjector(t, a, "va"), taptest.NeedInjector(t, b, "vb")
	before := time.Now()
	const write, readResp, ack, ud, uc = 0x0A, 0x0D, 0x11, 0x64, 0x24
	malformed := taptest.Ethernet(packet(t, false, 3, write, 9))
	malformed[14+25]++ // the UDP length
	for _, f := range [][]byte{
		taptest.Ethernet(packet(t, false, 0x6B, write, 1)),
		taptest.Ethernet(packet(t, true, 0x6B, readResp, 2)),
		taptest.Ethernet(packet(t, false, 0x6B, uc, 3), [2]uint16{0x8100, 3<<13 | 42}),
		taptest.Ethernet(packet(t, false, 0x6A, write, 4)),          // not marked
		taptest.Ethernet(packet(t, false, 0x6B, ack, 5)),            // never counts
		taptest.Ethernet(packet(t, false, 0x6B, roce.OpcodeCNP, 6)), // never counts
		taptest.Ethernet(packet(t, false, 0x6B, ud, 7)),             // can't be notified
		malformed,
	} {
		if err := near.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := far.Send(taptest.Ethernet(packet(t, false, 0x6B, write, 8))); err != nil { // arrives
		t.Fatal(err)
	}
	if err := near.Send(taptest.Ethernet(packet(t, false, 0x6B, write, 99))); err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Sender: netip.MustParseAddr("10.0.1.1"), Receiver: netip.MustParseAddr("10.0.2.2"), DestQP: 1},
		{Sender: netip.MustParseAddr("2001:db8:1::1"), Receiver: netip.MustParseAddr("2001:db8:2::2"), DestQP: 2},
		{Sender: netip.MustParseAddr("10.0.1.1"), Receiver: netip.MustParseAddr("10.0.2.2"), DestQP: 3, VLAN: 42},
		{Sender: netip.MustParseAddr("10.0.1.1"), Receiver: netip.MustParseAddr("10.0.2.2"), DestQP: 99},
	}
	for _, w := range want {
		w.SrcPort, w.DstPort, w.Proto, w.CECount, w.Source, w.Interface = 0xC123, 4791, 17, 1, "ce", "va"
		got := next(t, ch)
		if got.At.Before(before) || got.At.After(time.Now()) {
			t.Errorf("QP %d: at %v", w.DestQP, got.At)
		}
		got.At = time.Time{}
		if got != w {
			t.Errorf("got  %+v\nwant %+v", got, w)
		}
	}
	if s := c.Stats(); s != (Stats{Events: 4, Ignored: 3, Malformed: 1}) {
		t.Errorf("stats %+v", s)
	}
}

// The mark may be set on the way out: the ring must look after the hooks that do it.
func TestCESeesMarksSetByAnEgressFilter(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("needs nft")
	}
	a, b := taptest.Pair(t)
	rules := "table netdev t {\n chain e {\n type filter hook egress device \"va\" priority 0;\n udp dport 4791 ip ecn set ce\n }\n}\n"
	if err := a.Do(func() error {
		cmd := exec.Command(nft, "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_ = b
	ch := events(t, openCE(t, a, "va"))
	in := taptest.NeedInjector(t, a, "va")
	if err := in.Send(taptest.Ethernet(packet(t, false, 0x6A, 0x0A, 0x42))); err != nil {
		t.Fatal(err)
	}
	if e := next(t, ch); e.DestQP != 0x42 {
		t.Errorf("event %+v", e)
	}
}

func TestCECountsExactly(t *testing.T) {
	a, _ := taptest.Pair(t)
	c := openCE(t, a, "va")
	ch := events(t, c)
	in := taptest.NeedInjector(t, a, "va")
	frames := [][]byte{
		taptest.Ethernet(packet(t, false, 3, 0x0A, 1)), taptest.Ethernet(packet(t, false, 2, 0x0A, 1)),
		taptest.Ethernet(packet(t, true, 3, 0x0A, 1)),
	}
	const n = 1000
	for range n {
		if err := in.Send(frames...); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * n {
		next(t, ch)
	}
	if s := c.Stats(); s != (Stats{Events: 2 * n}) {
		t.Errorf("stats %+v, want %d events", s, 2*n)
	}
}

func TestRunEndsWhenTheLinkIsGone(t *testing.T) {
	a, _ := taptest.Pair(t)
	c := openCE(t, a, "va")
	done := make(chan error, 1)
	go func() { done <- c.Run(context.Background(), func(Event) {}) }()
	if err := a.Delete("va"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, tap.ErrInterfaceGone) {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Run did not end")
	}
}

func TestOpenCENamesAnUnknownLink(t *testing.T) {
	err := taptest.Need(t).Do(func() error {
		_, err := OpenCE(Config{Interface: "nope0"})
		return err
	})
	if !errors.Is(err, tap.ErrNoInterface) || !strings.Contains(err.Error(), "nope0") {
		t.Errorf("OpenCE: %v", err)
	}
}

func BenchmarkObserve(b *testing.B) {
	c := &CE{ring: &tap.Ring{}}
	f := tap.Frame{Data: taptest.Ethernet(packet(b, false, 3, 0x0A, 1))}
	var p roce.Packet
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.observe(&p, &f); !ok {
			b.Fatal("no event")
		}
	}
}
