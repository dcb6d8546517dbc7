package tcx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"pncd/dataplane/bpf/bpftest"
	"pncd/dataplane/detect"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

// collector keeps the events of a detector.
type collector struct {
	mu     sync.Mutex
	events []detect.Event
	done   chan error
	cancel context.CancelFunc
}

func collect(t *testing.T, d *Detector) *collector {
	ctx, cancel := context.WithCancel(context.Background())
	c := &collector{done: make(chan error, 1), cancel: cancel}
	go func() {
		c.done <- d.Run(ctx, func(e detect.Event) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.events = append(c.events, e)
		})
	}()
	t.Cleanup(cancel)
	return c
}

// wait returns the events when there are n.
func (c *collector) wait(t *testing.T, n int) []detect.Event {
	t.Helper()
	var out []detect.Event
	testwait.UntilRight(t, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if out = c.events; len(out) != n {
			return fmt.Sprintf("%d events, want %d", len(out), n)
		}
		return ""
	})
	return out
}

func TestLinkReportsMarkedPacketsThatLeave(t *testing.T) {
	a, b := taptest.Pair(t)
	d := need(t, a, Config{Interface: "va", CE: true, Gate: eachPacket})
	c := collect(t, d)
	near, far := taptest.NeedInjector(t, a, "va"), taptest.NeedInjector(t, b, "vb")
	before := time.Now()
	const readResp, ack, ud, uc = 0x0D, 0x11, 0x64, 0x24
	if err := far.Send(taptest.Ethernet(packet(t, false, 0x6B, writeOnly, 8))); err != nil { // arrives
		t.Fatal(err)
	}
	for _, f := range [][]byte{
		taptest.Ethernet(packet(t, false, 0x6B, writeOnly, 1)),
		taptest.Ethernet(packet(t, true, 0x6B, readResp, 2)),
		taptest.Ethernet(packet(t, false, 0x6B, uc, 3), [2]uint16{0x8100, 3<<13 | 42}),
		taptest.Ethernet(packet(t, false, 0x6A, writeOnly, 4)),
		taptest.Ethernet(packet(t, false, 0x6B, ack, 5)),
		taptest.Ethernet(packet(t, false, 0x6B, roce.OpcodeCNP, 6)),
		taptest.Ethernet(packet(t, false, 0x6B, ud, 7)),
		taptest.Ethernet(packet(t, false, 0x6B, writeOnly, 99)),
	} {
		if err := near.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	got := c.wait(t, 4)
	for i, want := range []detect.Event{
		{Sender: netip.MustParseAddr("10.0.1.1"), Receiver: netip.MustParseAddr("10.0.2.2"), DestQP: 1},
		{Sender: netip.MustParseAddr("2001:db8:1::1"), Receiver: netip.MustParseAddr("2001:db8:2::2"), DestQP: 2},
		{Sender: netip.MustParseAddr("10.0.1.1"), Receiver: netip.MustParseAddr("10.0.2.2"), DestQP: 3, VLAN: 42},
		{Sender: netip.MustParseAddr("10.0.1.1"), Receiver: netip.MustParseAddr("10.0.2.2"), DestQP: 99},
	} {
		want.SrcPort, want.DstPort, want.Proto, want.CECount, want.Source, want.Interface = 0xC123, 4791, 17, 1, "ce", "va"
		if at := got[i].At; at.Before(before.Add(-time.Millisecond)) || at.After(time.Now().Add(time.Millisecond)) {
			t.Errorf("QP %d: at %v", want.DestQP, at)
		}
		if got[i].At = (time.Time{}); got[i] != want {
			t.Errorf("got  %+v\nwant %+v", got[i], want)
		}
	}
	if n := d.mustCount(t); n != (Counters{Ignored: 3, CE: SourceCounters{Events: 4}}) {
		t.Errorf("%+v", n)
	}
}

// A VLAN device hands its tag to the link as metadata; here a program in front of the detector's does.
func TestLinkKnowsATagInMetadata(t *testing.T) {
	a, _ := taptest.Pair(t)
	d := need(t, a, Config{Interface: "va", CE: true})
	push, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R2, 0x0081), // 0x8100 in network order
		asm.Mov.Imm(asm.R3, 42),
		asm.FnSkbVlanPush.Call(),
		asm.Mov.Imm(asm.R0, -1), // TCX_NEXT
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = push.Close() }()
	var l link.Link
	if err := a.Do(func() (err error) {
		l, err = link.AttachTCX(link.TCXOptions{Interface: d.ifIndex, Program: push, Attach: ebpf.AttachTCXEgress, Anchor: link.Head()})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c := collect(t, d)
	in := taptest.NeedInjector(t, a, "va")
	for _, v6 := range []bool{false, true} {
		if err := in.Send(taptest.Ethernet(packet(t, v6, 3, writeOnly, 1))); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range c.wait(t, 2) {
		if e.VLAN != 42 || e.DestQP != 1 {
			t.Errorf("%+v", e)
		}
	}
}

// frames collects what an interface receives.
func frames(t *testing.T, ns *taptest.NS, name string) (wait func(n int) [][]byte) {
	t.Helper()
	var ring *tap.Ring
	if err := ns.Do(func() (err error) {
		ring, err = tap.Open(tap.Config{Interface: name, Blocks: 8, RetireTimeout: time.Millisecond})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got [][]byte
	done := make(chan error, 1)
	go func() {
		done <- ring.Run(context.Background(), func(f *tap.Frame) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, bytes.Clone(f.Data))
		})
	}()
	t.Cleanup(func() {
		_ = ring.Close()
		if err := <-done; !errors.Is(err, tap.ErrClosed) {
			t.Error(err)
		}
	})
	return func(n int) (out [][]byte) {
		t.Helper()
		testwait.UntilRight(t, func() string {
			mu.Lock()
			defer mu.Unlock()
			if out = got; len(out) != n {
				return fmt.Sprintf("%d frames, want %d", len(out), n)
			}
			return ""
		})
		return out
	}
}

func TestRunEndsWhenTheLinkIsGone(t *testing.T) {
	a, _ := taptest.Pair(t)
	d := need(t, a, Config{Interface: "va", CE: true})
	c := collect(t, d)
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete("va"); err != nil {
		t.Fatal(err)
	}
	if err := <-c.done; !errors.Is(err, ErrDetached) {
		t.Error(err)
	}
}

func TestRunEndsWhenSomebodyDetaches(t *testing.T) {
	a, _ := taptest.Pair(t)
	d := need(t, a, Config{Interface: "va", CE: true})
	c := collect(t, d)
	type detacher interface{ Detach() error }
	if err := d.link.(detacher).Detach(); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(); !errors.Is(err, ErrDetached) {
		t.Errorf("Check: %v", err)
	}
	if err := <-c.done; !errors.Is(err, ErrDetached) {
		t.Errorf("Run: %v", err)
	}
}

func TestRunStopsAndGoesOn(t *testing.T) {
	a, _ := taptest.Pair(t)
	d := need(t, a, Config{Interface: "va", CE: true, Gate: eachPacket})
	in := taptest.NeedInjector(t, a, "va")
	for range 3 {
		if err := in.Send(taptest.Ethernet(packet(t, false, 3, writeOnly, 1))); err != nil {
			t.Fatal(err)
		}
		c := collect(t, d)
		c.wait(t, 1)
		c.cancel()
		if err := <-c.done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	a, _ := taptest.Pair(t)
	d := need(t, a, Config{Interface: "va", CE: true, Queue: &Queue{Rate: 1e9, Kmin: 1e4, Kmax: 2e4, Pmax: 1}})
	var made bpftest.IDs
	if err := made.Add(d.prog, d.link); err != nil {
		t.Fatal(err)
	}
	c := collect(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-c.done; !errors.Is(err, ErrClosed) {
		t.Errorf("Run: %v", err)
	}
	testwait.UntilRight(t, made.Left)
	if err := d.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}
