package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

	"pncd/dataplane/bpf/bpftest"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

var modes = []Mode{TCX, XDP, XDPNative, XDPGeneric, Clsact}

func attach(t testing.TB, k *Tap, ns *taptest.NS, name string) *Attachment {
	t.Helper()
	var a *Attachment
	err := ns.Do(func() (err error) {
		a, err = k.Attach(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// collector keeps what Run hands over.
type collector struct {
	mu     sync.Mutex
	events []seen
	done   chan error
	cancel context.CancelFunc
}

func collect(t *testing.T, k *Tap) *collector {
	ctx, cancel := context.WithCancel(context.Background())
	c := &collector{done: make(chan error, 1), cancel: cancel}
	go func() {
		c.done <- k.Run(ctx, func(e *Event) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.events = append(c.events, seen{*e, bytes.Clone(e.Data)})
		}, nil)
	}()
	t.Cleanup(cancel)
	return c
}

// stop ends Run when it has handed over all that the program handed up.
func (c *collector) stop(t *testing.T, k *Tap) []seen {
	t.Helper()
	testwait.UntilRight(t, func() string {
		n, err := k.Counters()
		if err != nil {
			return err.Error()
		}
		var want uint64
		for _, x := range n.HandedUp {
			want += x
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if uint64(len(c.events)) != want {
			return fmt.Sprintf("%d events of %d", len(c.events), want)
		}
		return ""
	})
	c.cancel()
	if err := <-c.done; err != nil {
		t.Fatal(err)
	}
	return c.events
}

// vlanOf is a frame as the program of a mode sees it, and the VLAN that stands beside it, -1 for none: the kernel takes the outer tag
// off before TCX and clsact.
func vlanOf(mode Mode, f []byte) (frame []byte, vlan int) {
	typ := uint16(f[12])<<8 | uint16(f[13])
	if mode != TCX && mode != Clsact || len(f) < 18 || typ != 0x8100 && typ != 0x88A8 {
		return f, -1
	}
	return append(bytes.Clone(f[:12]), f[16:]...), int(f[14]&0xF)<<8 | int(f[15])
}

// All that an interface receives goes through program and model, in order.
func TestInterfaceTakesWhatTheParserTakes(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			a, b := taptest.Pair(t)
			k := need(t, Config{Mode: mode, Interval: time.Hour})
			at := attach(t, k, a, "va")
			c := collect(t, k)
			in := taptest.NeedInjector(t, b, "vb")
			g, m := taptest.NewFrames(7), newModel()
			const frames = 10_000
			type expected struct {
				want  verdict
				frame []byte
				p     roce.Packet
			}
			var want []expected
			before := time.Now()
			for range frames {
				f := g.Next()
				if len(f) > 1514 {
					continue
				}
				copy(f, []byte{2, 0, 0, 0, 0, 2}) // noise may be addressed to anybody, but it must be sent
				if err := in.Send(f); err != nil {
					t.Fatal(err)
				}
				got, vlan := vlanOf(mode, f)
				v, p := m.take(got, vlan)
				want = append(want, expected{v, got, p})
			}
			got := c.stop(t, k)
			m.check(t, k)
			last := before.Add(-time.Millisecond)
			for _, w := range want {
				if w.want == never {
					continue
				}
				if len(got) == 0 || !bytes.Equal(got[0].data, w.frame[:min(len(got[0].data), len(w.frame))]) {
					if w.want == maybe {
						continue
					}
					t.Fatalf("missing: %x\nnext: %+v", w.frame, got[:min(len(got), 1)])
				}
				checkHandedUp(t, w.want, w.frame, &w.p, 0, got[:1])
				e := got[0]
				if e.IfIndex != at.IfIndex() || e.At.Before(last) || e.HasVLAN && e.VLAN() != w.p.VLAN {
					t.Fatalf("%+v\nlast at %v, VLAN %d", e.Event, last, w.p.VLAN)
				}
				last, got = e.At, got[1:]
			}
			if len(got) != 0 {
				t.Errorf("%d more were handed up, first %x", len(got), got[0].data)
			}
			if last.After(time.Now().Add(time.Millisecond)) {
				t.Errorf("last at %v, after now", last)
			}
		})
	}
}

// idsOf are the kernel's names of what a tap has made.
func idsOf(t *testing.T, k *Tap, a *Attachment) *bpftest.IDs {
	t.Helper()
	var links []link.Link
	if h, ok := a.hook.(*linkHook); ok {
		links = append(links, h.Link)
	}
	var out bpftest.IDs
	if err := out.Add(k.progs[a.slot], links...); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestCloseLeavesNothing(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			a, _ := taptest.Pair(t)
			k := need(t, Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16})
			at := attach(t, k, a, "va")
			made := idsOf(t, k, at)
			c := collect(t, k)
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-c.done; !errors.Is(err, ErrClosed) {
				t.Errorf("Run: %v", err)
			}
			testwait.UntilRight(t, made.Left)
			if err := at.Close(); err != nil {
				t.Errorf("close the attachment afterwards: %v", err)
			}
			if err := k.Close(); err != nil {
				t.Errorf("close again: %v", err)
			}
			if err := a.Do(func() error { _, err := k.Attach("va"); return err }); !errors.Is(err, ErrClosed) {
				t.Errorf("attach afterwards: %v", err)
			}
		})
	}
}

func TestAttachmentComesAndGoes(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			a, b := taptest.Pair(t)
			k := need(t, Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
			in := taptest.NeedInjector(t, b, "vb")
			count := func(want uint64) {
				t.Helper()
				if err := in.Send(frameOf(t, spec(writeOnly, 1))); err != nil {
					t.Fatal(err)
				}
				if c, err := k.Counters(); err != nil || c.Packets != want {
					t.Fatalf("%d packets, %v; want %d", c.Packets, err, want)
				}
			}
			count(0)
			at := attach(t, k, a, "va")
			count(1)
			if err := errors.Join(at.Check(), at.Close(), at.Close()); err != nil {
				t.Fatal(err)
			}
			count(1)
			again := attach(t, k, a, "va")
			count(2)
			if err := a.Delete("va"); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the interface gone", func() bool { return errors.Is(again.Check(), ErrInterfaceGone) })
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAttachSaysWhatIsWrong(t *testing.T) {
	a, _ := taptest.Pair(t)
	k := need(t, Config{Mode: XDP, MaxFlows: 1024, RingSize: 1 << 16})
	other := need(t, Config{Mode: XDP, MaxFlows: 1024, RingSize: 1 << 16})
	attach(t, k, a, "va")
	for name, want := range map[string]error{"none": ErrNoInterface, "va": ErrBusy} {
		err := a.Do(func() error { _, err := other.Attach(name); return err })
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	// TCX has room for several.
	first, second := need(t, Config{MaxFlows: 1024, RingSize: 1 << 16}), need(t, Config{MaxFlows: 1024, RingSize: 1 << 16})
	attach(t, first, a, "va")
	attach(t, second, a, "va")
}

func TestProbeKnowsWhatThisKernelDoes(t *testing.T) {
	a, _ := taptest.Pair(t)
	s := Probe()
	for mode, err := range map[Mode]error{TCX: s.TCX, XDP: s.XDP, Clsact: s.Clsact} {
		k, open := Open(Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16})
		if open == nil {
			open = a.Do(func() error { _, err := k.Attach("va"); return err })
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		}
		if (open == nil) != (err == nil) {
			t.Errorf("%v: the probe says %v, trying says %v", mode, err, open)
		}
	}
	no := fmt.Errorf("TCX (Linux 6.6): %w", ErrNotSupported)
	for _, tt := range []struct {
		s    Support
		mode Mode
		ok   bool
		why  string
	}{
		{Support{Kernel: "6.9"}, TCX, true, "Linux 6.9 has it"},
		{Support{TCX: no}, Clsact, true, "no TCX (Linux 6.6): not supported by this kernel"},
		{Support{TCX: no, Clsact: ErrPermission}, 0, false, "TCX (Linux 6.6): not supported by this kernel; clsact: needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"},
	} {
		if mode, ok, why := tt.s.Choose(); mode != tt.mode || ok != tt.ok || why != tt.why {
			t.Errorf("%+v: %v, %v, %s", tt, mode, ok, why)
		}
	}
}
