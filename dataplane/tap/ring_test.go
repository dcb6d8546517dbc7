package tap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func TestRingSeesEachIncomingFrameOnceInOrder(t *testing.T) {
	a, b := taptest.Pair(t)
	r := open(t, a, Config{Interface: "va"})
	c := collect(t, r.Run)
	in := taptest.NeedInjector(t, b, "vb")
	const batches, batch = 300, 50
	before := time.Now()
	frames := make([][]byte, batch)
	for i := range frames {
		frames[i] = taptest.Ethernet(packet(t, i%2 == 1, 0, 0))
	}
	for n := range batches {
		for i, f := range frames {
			binary.BigEndian.PutUint32(f[len(f)-8:], uint32(n*batch+i))
		}
		send(t, in, frames...)
	}
	c.wait(t, batches*batch)
	after := time.Now()
	got := c.stop(t)
	if len(got) != batches*batch {
		t.Fatalf("%d frames, want %d", len(got), batches*batch)
	}
	last := before
	for i, f := range got {
		want := frames[i%batch]
		binary.BigEndian.PutUint32(want[len(want)-8:], uint32(i))
		if !bytes.Equal(f.data, want) {
			t.Fatalf("frame %d:\ngot  %x\nwant %x", i, f.data, want)
		}
		if f.HasVLAN || f.Truncated || f.Wire != len(want) || f.IfIndex != r.IfIndex() {
			t.Fatalf("frame %d: %+v", i, f.Frame)
		}
		if f.At.Before(last) || f.At.After(after) {
			t.Fatalf("frame %d: captured at %v, not within %v and %v", i, f.At, last, after)
		}
		last = f.At
	}
	if s := r.Stats(); s.Packets != batches*batch || s.Drops != 0 {
		t.Errorf("stats %+v, want %d packets", s, batches*batch)
	}
}

func TestRingAdmitsOneDirection(t *testing.T) {
	a, b := taptest.Pair(t)
	in := open(t, a, Config{Interface: "va"})
	out := open(t, a, Config{Interface: "va", Direction: Outgoing})
	ce := open(t, a, Config{Interface: "va", Direction: Outgoing, CEOnly: true})
	cin, cout, cce := collect(t, in.Run), collect(t, out.Run), collect(t, ce.Run)
	near, far := taptest.NeedInjector(t, a, "va"), taptest.NeedInjector(t, b, "vb")

	const n = 100
	leaving, marked := taptest.Ethernet(packet(t, false, 0, 0)), taptest.Ethernet(packet(t, true, 3, 0))
	arriving := taptest.Ethernet(packet(t, true, 0, 0))
	for range n {
		send(t, near, leaving, marked)
		send(t, far, arriving, arriving, arriving)
	}
	cin.wait(t, 3*n)
	cout.wait(t, 2*n)
	cce.wait(t, n)
	for name, tt := range map[string]struct {
		got  []seen
		want int
		one  []byte
	}{
		"incoming":        {cin.stop(t), 3 * n, arriving},
		"outgoing":        {cout.stop(t), 2 * n, nil},
		"outgoing and CE": {cce.stop(t), n, marked},
	} {
		if len(tt.got) != tt.want {
			t.Errorf("%s: %d frames, want %d", name, len(tt.got), tt.want)
		}
		for _, f := range tt.got {
			if tt.one != nil && !bytes.Equal(f.data, tt.one) {
				t.Fatalf("%s: saw %x", name, f.data)
			}
		}
	}
}

func TestRingShowsTheOuterTagAsMetadata(t *testing.T) {
	a, b := taptest.Pair(t)
	c := collect(t, open(t, a, Config{Interface: "va"}).Run)
	in := taptest.NeedInjector(t, b, "vb")
	v4, v6 := packet(t, false, 0, 0), packet(t, true, 0, 0)
	const outer, inner = 3<<13 | 100, 200
	tests := []struct {
		name       string
		sent, data []byte
		tci, tpid  uint16
	}{
		{"untagged", taptest.Ethernet(v4), taptest.Ethernet(v4), 0, 0},
		{"802.1Q IPv4", taptest.Ethernet(v4, [2]uint16{0x8100, outer}), taptest.Ethernet(v4), outer, 0x8100},
		{"802.1Q IPv6", taptest.Ethernet(v6, [2]uint16{0x8100, outer}), taptest.Ethernet(v6), outer, 0x8100},
		{"802.1ad, 802.1Q", taptest.Ethernet(v4, [2]uint16{0x88A8, outer}, [2]uint16{0x8100, inner}),
			taptest.Ethernet(v4, [2]uint16{0x8100, inner}), outer, 0x88A8},
	}
	for _, tt := range tests {
		send(t, in, tt.sent)
	}
	got := c.wait(t, len(tests))
	for i, tt := range tests {
		f := got[i]
		if !bytes.Equal(f.data, tt.data) {
			t.Errorf("%s:\ngot  %x\nwant %x", tt.name, f.data, tt.data)
		}
		if f.HasVLAN != (tt.tpid != 0) || f.VLANTCI != tt.tci || f.VLANTPID != tt.tpid || f.VLAN() != tt.tci&0xFFF {
			t.Errorf("%s: %+v", tt.name, f.Frame)
		}
	}
}

func TestRingCutsFramesToTheSnapLength(t *testing.T) {
	a, b := taptest.Pair(t)
	c := collect(t, open(t, a, Config{Interface: "va", SnapLen: 128}).Run)
	in := taptest.NeedInjector(t, b, "vb")
	long := taptest.Ethernet(packet(t, false, 0, 40))
	send(t, in, long)
	f := c.wait(t, 1)[0]
	if len(long) <= 128 || !bytes.Equal(f.data, long[:128]) || !f.Truncated || f.Wire != len(long) {
		t.Errorf("got %d octets of %d: %+v", len(f.data), len(long), f.Frame)
	}
}

func TestRingCountsWhatItDropped(t *testing.T) {
	a, b := taptest.Pair(t)
	r := open(t, a, Config{Interface: "va", BlockSize: 8192, Blocks: 2})
	in := taptest.NeedInjector(t, b, "vb")
	const n = 2000
	frame := taptest.Ethernet(packet(t, false, 0, 0))
	for range n / 100 {
		for range 100 {
			send(t, in, frame)
		}
	}
	s := r.Stats() // nobody read so far
	if s.Packets+s.Drops != n || s.Packets == 0 || s.Drops == 0 || s.Freezes == 0 {
		t.Fatalf("stats %+v, want %d packets and drops together", s, n)
	}
	c := collect(t, r.Run)
	c.wait(t, int(s.Packets))
	if again := r.Stats(); again != s {
		t.Errorf("stats changed from %+v to %+v", s, again)
	}
	send(t, in, frame) // the ring goes on after it was full
	c.wait(t, int(s.Packets)+1)
	if got := c.stop(t); len(got) != int(s.Packets)+1 {
		t.Errorf("%d frames, want %d", len(got), s.Packets+1)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if last := r.Stats(); last.Packets != s.Packets+1 || last.Drops != s.Drops {
		t.Errorf("after Close: stats %+v, want one packet more than %+v", last, s)
	}
}

func TestRingGoesOnWhenTheInterfaceComesBackUp(t *testing.T) {
	a, b := taptest.Pair(t)
	r := open(t, a, Config{Interface: "va"})
	c := collect(t, r.Run)
	in := taptest.NeedInjector(t, b, "vb")
	frame := taptest.Ethernet(packet(t, false, 0, 0))
	send(t, in, frame)
	c.wait(t, 1)
	if err := a.SetLink("va", false); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the ring counts the interface down", func() bool { return r.Stats().Downs > 0 })
	if err := errors.Join(a.SetLink("va", true), a.WaitUp("va"), b.WaitUp("vb")); err != nil {
		t.Fatal(err)
	}
	send(t, in, frame)
	c.wait(t, 2)
	if got := c.stop(t); len(got) != 2 {
		t.Errorf("%d frames, want 2", len(got))
	}
}

func TestRunEndsWhenTheInterfaceIsGone(t *testing.T) {
	a, _ := taptest.Pair(t)
	r := open(t, a, Config{Interface: "va"})
	c := collect(t, r.Run)
	if err := a.Delete("va"); err != nil {
		t.Fatal(err)
	}
	err := c.result(t)
	if !errors.Is(err, ErrInterfaceGone) || !strings.Contains(err.Error(), "va") {
		t.Errorf("Run: %v, want ErrInterfaceGone that names va", err)
	}
}

func TestRunMayBeRepeatedButNotDoubled(t *testing.T) {
	a, b := taptest.Pair(t)
	r := open(t, a, Config{Interface: "va"})
	in := taptest.NeedInjector(t, b, "vb")
	frame := taptest.Ethernet(packet(t, false, 0, 0))
	for range 3 {
		c := collect(t, r.Run)
		send(t, in, frame)
		c.wait(t, 1)
		if err := r.Run(context.Background(), func(*Frame) {}); !errors.Is(err, ErrRunning) {
			t.Fatalf("second Run: %v, want ErrRunning", err)
		}
		c.stop(t)
	}
}

func TestCloseEndsRunAndIsIdempotent(t *testing.T) {
	a, _ := taptest.Pair(t)
	r := open(t, a, Config{Interface: "va"})
	c := collect(t, r.Run)
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Run may not even have begun when Close came.
	if err := c.result(t); !errors.Is(err, ErrClosed) {
		t.Errorf("Run: %v, want ErrClosed", err)
	}
	if err := r.Run(context.Background(), func(*Frame) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("Run after Close: %v, want ErrClosed", err)
	}
}

func TestOpenNamesAnUnknownInterface(t *testing.T) {
	ns := taptest.Need(t)
	err := ns.Do(func() error {
		_, err := Open(Config{Interface: "nope0"})
		return err
	})
	if !errors.Is(err, ErrNoInterface) || !strings.Contains(err.Error(), "nope0") {
		t.Errorf("Open: %v", err)
	}
}

func TestOpenWithoutTheCapabilitySaysSo(t *testing.T) {
	taptest.Need(t) // root, or the capability is missing anyway and the thread can't drop it
	err := withoutNetRaw(func() error {
		_, err := Open(Config{Interface: "lo"})
		return err
	})
	if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Errorf("Open: %v", err)
	}
}

// withoutNetRaw runs fn on a thread that has given up CAP_NET_RAW, and ends that thread.
func withoutNetRaw(fn func() error) error {
	ch := make(chan error)
	go func() {
		runtime.LockOSThread()
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var d [2]unix.CapUserData
		if err := unix.Capget(&h, &d[0]); err != nil {
			ch <- err
			return
		}
		d[0].Effective &^= 1 << unix.CAP_NET_RAW
		if err := unix.Capset(&h, &d[0]); err != nil {
			ch <- err
			return
		}
		ch <- fn()
	}()
	return <-ch
}

func TestOpenNamesTheFieldThatIsOutOfRange(t *testing.T) {
	for want, c := range map[string]Config{
		"interface":      {},
		"15 octets":      {Interface: "sixteen-octets-x"},
		"direction":      {Interface: "lo", Direction: 9},
		"snap length":    {Interface: "lo", SnapLen: 12},
		"sample":         {Interface: "lo", Sample: 1 << 17},
		"block size":     {Interface: "lo", BlockSize: 1000},
		"blocks":         {Interface: "lo", Blocks: 1},
		"retire timeout": {Interface: "lo", RetireTimeout: time.Microsecond},
	} {
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error about the %s", c, err, want)
		}
	}
}
