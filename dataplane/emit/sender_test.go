package emit

import (
	"bytes"
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func TestSendPutsPacketsOnTheWireUnchangedAndInOrder(t *testing.T) {
	w := newWire(t, Config{BatchSize: 7})
	w.watch(t)
	var pkts [][]byte
	for i := range 100 {
		// Runs of one family and mixed ones, and the identification zero, which Don't Fragment preserves.
		pkts = append(pkts, cnp(t, i%10 > 6 || i%2 == 1 && i < 30, uint16(i), uint32(i)))
	}
	n, err := w.s.Send(pkts)
	if n != len(pkts) || err != nil {
		t.Fatalf("Send: %d of %d, %v", n, len(pkts), err)
	}
	for i, want := range pkts {
		got := w.frame(t)[14:]
		if !bytes.Equal(got, want) {
			t.Fatalf("packet %d:\ngot  %x\nwant %x", i, got, want)
		}
		if ok, err := roce.VerifyICRC(got); !ok || err != nil {
			t.Fatalf("packet %d: ICRC %v, %v", i, ok, err)
		}
	}
}

func TestSendCarriesNotificationsToASocket(t *testing.T) {
	w := newWire(t, Config{})
	for _, v6 := range []bool{false, true} {
		src, dst, family := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("10.0.0.2"), unix.AF_INET
		if v6 {
			src, dst, family = netip.MustParseAddr("2001:db8:9::9"), netip.MustParseAddr("2001:db8::2"), unix.AF_INET6
		}
		var fd int
		if err := w.b.Do(func() (err error) {
			if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			tv := unix.NsecToTimeval(int64(patience))
			err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
			if v6 {
				return errors.Join(err, unix.Bind(fd, &unix.SockaddrInet6{Port: 1021}))
			}
			return errors.Join(err, unix.Bind(fd, &unix.SockaddrInet4{Port: 1021}))
		}); err != nil {
			t.Fatal(err)
		}
		payload := []byte("sixteen octets..")
		if n, err := w.s.Send([][]byte{udp(src, dst, 50001, 1021, payload)}); n != 1 || err != nil {
			t.Fatalf("Send: %d, %v", n, err)
		}
		buf := make([]byte, 100)
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if err != nil || !bytes.Equal(buf[:n], payload) {
			t.Errorf("IPv6 %v: received %q, %v", v6, buf[:max(n, 0)], err)
		}
		switch a := from.(type) {
		case *unix.SockaddrInet4:
			if netip.AddrFrom4(a.Addr) != src || a.Port != 50001 {
				t.Errorf("from %v port %d", a.Addr, a.Port)
			}
		case *unix.SockaddrInet6:
			if netip.AddrFrom16(a.Addr) != src || a.Port != 50001 {
				t.Errorf("from %v port %d", a.Addr, a.Port)
			}
		}
		_ = unix.Close(fd)
	}
}

func TestSendStopsAtThePacketThatFailsAndNamesIt(t *testing.T) {
	w := newWire(t, Config{BatchSize: 4})
	w.watch(t)
	good, good6 := cnp(t, false, 1, 1), cnp(t, true, 1, 1)
	edit := func(b []byte, f func([]byte)) []byte {
		c := bytes.Clone(b)
		f(c)
		return c
	}
	long, err := roce.AppendPacket(nil, &roce.PacketSpec{
		Src: netip.MustParseAddr("192.0.2.77"), Dst: netip.MustParseAddr("10.0.0.2"), IPID: 1, Body: make([]byte, 2000),
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		bad  []byte
		want error
		says string
	}{
		{"no IPv4 route", edit(good, func(b []byte) { copy(b[16:], []byte{203, 0, 113, 5}) }), unix.ENETUNREACH, "203.0.113.5"},
		{"no IPv6 route", edit(good6, func(b []byte) { b[25] = 0xFF }), unix.ENETUNREACH, "20ff:db8::2"},
		{"longer than the MTU", long, unix.EMSGSIZE, "10.0.0.2"},
		{"empty", nil, ErrPacket, "IP header"},
		{"version 5", edit(good, func(b []byte) { b[0] = 0x55 }), ErrPacket, "IP version"},
		{"IPv4 length", good[:59], ErrPacket, "IP length"},
		{"IPv6 length", good6[:79], ErrPacket, "IP length"},
		{"IPv4 header cut", good[:19], ErrPacket, "IP header"},
		{"IPv6 header cut", good6[:39], ErrPacket, "IP header"},
		{"identification 0 without DF", edit(good, func(b []byte) { b[5], b[6] = 0, 0 }), ErrPacket, "identification"},
		{"no source", edit(good, func(b []byte) { clear(b[12:16]) }), ErrPacket, "source"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for at := range 6 {
				pkts := [][]byte{good, good, good6, good, good6, good6}
				pkts[at] = tt.bad
				n, err := w.s.Send(pkts)
				var pe *PacketError
				if n != at || !errors.As(err, &pe) || pe.Index != at || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
					t.Fatalf("bad packet at %d: sent %d, error %v", at, n, err)
				}
				if m, err := w.s.Send(pkts[at+1:]); m != 5-at || err != nil {
					t.Fatalf("the rest: sent %d of %d, %v", m, 5-at, err)
				}
				for range 5 {
					w.frame(t)
				}
			}
		})
	}
}

func TestSendReportsWhatAQueueDropped(t *testing.T) {
	w := newWire(t, Config{})
	w.slow(t)
	pkts := batchOf(t, 200)
	sent, failed := 0, 0
	for len(pkts) > 0 {
		n, err := w.s.Send(pkts)
		sent += n
		if err == nil {
			break
		}
		if !errors.Is(err, unix.ENOBUFS) {
			t.Fatal(err)
		}
		failed++
		pkts = pkts[n+1:]
	}
	if sent+failed != 200 || failed == 0 || sent == 0 {
		t.Errorf("%d sent, %d dropped, want both and 200 together", sent, failed)
	}
}

func TestSendWaitsForRoomInTheSocketsBuffer(t *testing.T) {
	w := newWire(t, Config{})
	frames, _ := newFrames(t, w, "va", 0)
	w.queue(t, 2e6, 1e6)
	pkts := batchOf(t, 4000) // a socket's buffer holds a few hundred
	for name, send := range map[string]func([][]byte) (int, error){"raw": w.s.Send, "frames": frames.Send} {
		if n, err := send(pkts); n != len(pkts) || err != nil {
			t.Errorf("%s: %d of %d sent, %v", name, n, len(pkts), err)
		}
	}
}

func TestSendersShareASender(t *testing.T) {
	w := newWire(t, Config{BatchSize: 8})
	w.watch(t)
	const senders, batches, batch = 4, 50, 10
	var all errgroup.Group
	for k := range senders {
		pkts := make([][]byte, batch)
		for i := range pkts {
			pkts[i] = cnp(t, i%3 == 0, uint16(k*batch+i), uint32(k))
		}
		all.Go(func() error {
			for range batches {
				if n, err := w.s.Send(pkts); n != batch || err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	got := make(map[uint32]int)
	for range senders * batches * batch {
		c, err := roce.ParseCNP(w.frame(t)[14:])
		if err != nil {
			t.Fatal(err)
		}
		got[c.DestQP]++
	}
	for k := range uint32(senders) {
		if got[k] != batches*batch {
			t.Errorf("sender %d: %d packets, want %d", k, got[k], batches*batch)
		}
	}
}

func TestSendAllocatesNothing(t *testing.T) {
	w := newWire(t, Config{})
	pkts := [][]byte{cnp(t, false, 1, 1), cnp(t, false, 2, 2), cnp(t, true, 0, 3)}
	if n := testing.AllocsPerRun(100, func() {
		if n, err := w.s.Send(pkts); n != len(pkts) || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func TestOpenAppliesTheMarkAndTheInterface(t *testing.T) {
	w := newWire(t, Config{Mark: 0x77, Interface: "va"})
	for _, fd := range []int{w.s.fd4, w.s.fd6} {
		mark, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK)
		if err != nil || mark != 0x77 {
			t.Errorf("mark %#x, %v", mark, err)
		}
		dev, err := unix.GetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
		if err != nil || dev != "va" {
			t.Errorf("device %q, %v", dev, err)
		}
	}
	err := w.a.Do(func() error {
		_, err := Open(Config{Interface: "nope0"})
		return err
	})
	if !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), "nope0") {
		t.Errorf("unknown interface: %v", err)
	}
}

func TestOpenRefusesABatchSizeOutOfRange(t *testing.T) {
	for _, n := range []int{-1, 1025} {
		if _, err := Open(Config{BatchSize: n}); err == nil || !strings.Contains(err.Error(), "batch size") {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestOpenWithoutTheCapabilitySaysSo(t *testing.T) {
	taptest.Need(t) // root: else there is no capability to give up
	ch := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its capabilities
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
		_, err := Open(Config{})
		ch <- err
	}()
	if err := <-ch; !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Errorf("Open: %v", err)
	}
}

func TestSendAfterCloseFails(t *testing.T) {
	w := newWire(t, Config{})
	for range 2 {
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := w.s.Send([][]byte{cnp(t, false, 1, 1)}); n != 0 || !errors.Is(err, ErrClosed) {
		t.Errorf("Send: %d, %v", n, err)
	}
}

func BenchmarkSend(b *testing.B) {
	w := newWire(b, Config{})
	pkts := make([][]byte, DefaultBatchSize)
	for i := range pkts {
		pkts[i] = cnp(b, false, uint16(i+1), 0x118)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.s.Send(pkts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pkts)), "ns/packet")
}
