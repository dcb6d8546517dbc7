package translator

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/internal/testwait"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/notifier"
)

func TestListenSaysWhatToDo(t *testing.T) {
	loop := netip.MustParseAddr("127.0.0.1")
	needRoot(t)
	taken := listen(t, ListenConfig{Address: netip.AddrPortFrom(loop, 0)})
	for _, tc := range []struct {
		name string
		addr netip.AddrPort
		is   error
		want string
	}{
		{"taken", taken.Addr(), unix.EADDRINUSE, "another port"},
		{"not ours", netip.MustParseAddrPort("203.0.113.77:2021"), unix.EADDRNOTAVAIL, "no such address"},
		{"not an address", netip.AddrPort{}, nil, "must be an IPv4 or IPv6 address"},
		{"mapped", netip.MustParseAddrPort("[::ffff:127.0.0.1]:2021"), nil, "must be an IPv4 or IPv6 address"},
	} {
		_, err := Listen(ListenConfig{Address: tc.addr})
		if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.addr.String()) {
			t.Errorf("%s: error %v", tc.name, err)
		}
	}
	if _, err := Listen(ListenConfig{Address: netip.AddrPortFrom(loop, 0), ReceiveBuffer: -1}); err == nil {
		t.Error("a negative receive buffer is taken")
	}
	if err := taken.Close(); err != nil {
		t.Errorf("first close: %v", err)
	}
	if err := taken.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestAPortUnder1024WithoutTheCapabilityNamesIt(t *testing.T) {
	enterNetns(t)
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends without its capabilities
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&hdr, &none[0]); err != nil {
			errs <- err
			return
		}
		_, err := Listen(ListenConfig{Address: netip.MustParseAddrPort("127.0.0.1:1021")})
		errs <- err
	}()
	err := <-errs
	if !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE") {
		t.Errorf("error %v", err)
	}
}

// serve runs Serve until the test ends or stop is called; stop gives its error.
func serve(t *testing.T, h Handler, l ...*Listener) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error, 1)
	go func() { errs <- Serve(ctx, h, l...) }()
	stop = func() error {
		cancel()
		err := <-errs
		errs <- err
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return stop
}

// The whole way over real sockets: event, notification, CNP at the sender, for both families, outer
// and inner.
func TestFromEventToCNPOverRealSockets(t *testing.T) {
	enterNetns(t, "203.0.113.1/32", "203.0.113.9/32", "198.51.100.2/32", "2001:db8:ffff::1/128", "2001:db8:ffff::9/128", "2001:db8:2::8/128")
	r := newRig(t, func(c *Config) { c.Interfaces = []string{"lo"}; c.MinTTL = 255 })
	r.settings.Load().home.sender = openSender(t)
	r.now = time.Now
	stop := serve(t, r.Translator,
		listen(t, ListenConfig{Address: netip.MustParseAddrPort("0.0.0.0:1021")}),
		listen(t, ListenConfig{Address: netip.MustParseAddrPort("[::]:1021")}))

	proxy := proxy4
	n, err := notifier.New(notifier.Config{SourceIPv4: node4, SourceIPv6: node6}, notifier.Deps{
		Resolver: notifier.ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution {
			return pnc.Resolution{Reason: pnc.ReasonFound, Proxy: proxy}
		}),
		Sender: openSender(t), Recorder: r.rec, Random: func() uint64 { return 16_382 },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.SetEnabled(true)
	nics := map[netip.Addr]*Listener{
		sender4: listen(t, ListenConfig{Address: netip.AddrPortFrom(sender4, roce.UDPPort)}),
		sender6: listen(t, ListenConfig{Address: netip.AddrPortFrom(sender6, roce.UDPPort)}),
	}
	qp := uint32(0)
	for _, outer := range []netip.Addr{proxy4, proxy6} {
		for _, flow := range []struct{ sender, receiver netip.Addr }{{sender4, recv4}, {sender6, recv6}} {
			qp++
			proxy = outer
			ev := &notifier.Event{Sender: flow.sender, Receiver: flow.receiver, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: qp, CECount: 1, Source: "test"}
			if got := n.Handle(ev, time.Now()); got != pncv1.Outcome_OUTCOME_SENT {
				t.Fatalf("%v by %v: outcome %v", flow, outer, got)
			}
			got, err := nics[flow.sender].Read(time.Now().Add(10 * time.Second))
			if err != nil || len(got) != 1 {
				for _, rec := range r.rec.List(evidence.Filter{}, 0) {
					t.Logf("%v", r.rec.ToProto(&rec))
				}
				t.Fatalf("%v by %v: %d CNPs, %v", flow, outer, len(got), err)
			}
			cnp := got[0]
			if cnp.From.Addr() != flow.receiver || cnp.From.Port() != uint16(49152+qp) || cnp.Length != 32 || cnp.TTL != 64 {
				t.Errorf("%v by %v: CNP %+v", flow, outer, cnp)
			}
			if b := cnp.Payload; b[0] != 0x81 || b[4] != 0x40 || uint32(b[5])<<16|uint32(b[6])<<8|uint32(b[7]) != qp+0x1000 {
				t.Errorf("%v by %v: BTH %x", flow, outer, b[:12])
			}
			testwait.Until(t, "the outcome is counted", func() bool { return r.rec.Outcome(translated) == uint64(qp) })
			var only evidence.OutcomeSet
			only.Add(translated)
			rec := r.rec.List(evidence.Filter{Outcomes: only}, 1)[0]
			tr := rec.Translation
			if tr.Gap != 0 || tr.Latency <= 0 || tr.Receipt != uint64(qp) || time.Since(rec.At) > time.Minute || rec.At.After(time.Now()) {
				t.Errorf("%v by %v: record %+v", flow, outer, rec)
			}
		}
	}
	if got := r.Nodes(); len(got) != 2 || got[0].Received != 2 || got[0].Addr != node6 || got[1].Addr != node4 {
		t.Errorf("nodes %+v", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	r.checkSum(t, 4)
}

func TestADatagramTellsAllThatTheKernelKnows(t *testing.T) {
	enterNetns(t, "203.0.113.1/32", "2001:db8:ffff::1/128")
	for _, self := range []netip.Addr{node4, node6} {
		l := listen(t, ListenConfig{Address: netip.AddrPortFrom(self, 0)})
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(l.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		from := c.LocalAddr().(*net.UDPAddr).AddrPort()
		before := time.Now()
		for _, size := range []int{0, 16, keep, keep + 1, 4000} {
			if _, err := c.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			got, err := l.Read(time.Now().Add(10 * time.Second))
			if err != nil || len(got) != 1 {
				t.Fatalf("%d datagrams, %v", len(got), err)
			}
			d := got[0]
			if d.Length != size || len(d.Payload) != min(size, keep) || d.From != from || d.To != self || d.TTL != 64 || d.IfIndex != 1 || d.IfName != "lo" || d.BadSum {
				t.Errorf("%d octets: %+v", size, d)
			}
			if d.At.Before(before.Add(-time.Second)) || d.At.After(d.ReadAt.Add(time.Second)) {
				t.Errorf("received at %v, read at %v", d.At, d.ReadAt)
			}
		}
		if _, err := l.Read(time.Now()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("nothing there: error %v", err)
		}
	}
}

func TestWhatIsQueuedAtTheStopEndsInShutdown(t *testing.T) {
	enterNetns(t, "203.0.113.1/32", "203.0.113.9/32")
	r := newRig(t, nil)
	l := listen(t, ListenConfig{Address: netip.AddrPortFrom(proxy4, 0)})
	if sent, err := openSender(t).Send(packetsTo(t, l, 150, func(int) bool { return false })); sent != 150 {
		t.Fatalf("%d sent: %v", sent, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Serve(ctx, r.Translator, l); err != nil {
		t.Fatal(err)
	}
	if got := r.rec.Outcome(pncv1.Outcome_OUTCOME_PROXY_SHUTDOWN); got != 150 || len(r.wire.packets) != 0 {
		t.Errorf("%d outcomes, %d CNPs", got, len(r.wire.packets))
	}
	r.checkSum(t, 150)
}

func TestServeEndsWhenASocketFails(t *testing.T) {
	needRoot(t)
	l := listen(t, ListenConfig{Address: netip.MustParseAddrPort("127.0.0.1:0")})
	other := listen(t, ListenConfig{Address: netip.MustParseAddrPort("127.0.0.1:0")})
	errs := make(chan error)
	go func() { errs <- Serve(context.Background(), newRig(t, nil).Translator, l, other) }()
	l.Close()
	select {
	case err := <-errs:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("error %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Serve goes on")
	}
}

// Whichever of its sockets notices first, and wherever it is: a look at the raw one is under way here.
func TestAListenerThatIsClosedWhileItReadsSaysSo(t *testing.T) {
	enterNetns(t, "203.0.113.1/32", "203.0.113.9/32")
	l := listen(t, ListenConfig{Address: netip.AddrPortFrom(proxy4, 0)})
	if sent, err := openSender(t).Send(packetsTo(t, l, 1, func(int) bool { return true })); sent != 1 {
		t.Fatal(err)
	}
	closed := false
	_, err := l.Refused(func([]Datagram) {
		closed = true
		l.Close()
	})
	if !closed || !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v, error %v", closed, err)
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	enterNetns(t, "203.0.113.1/32", "203.0.113.9/32")
	l := listen(t, ListenConfig{Address: netip.AddrPortFrom(proxy4, 0)})
	s := openSender(t)
	packets := packetsTo(t, l, MaxBatch, func(int) bool { return false })
	r := newRig(t, func(c *Config) { c.TotalPerSecond, c.TotalBurst = 1e9, 1<<30 })
	r.settings.Load().home.sender = sink{}
	if allocs := testing.AllocsPerRun(100, func() {
		if _, err := s.Send(packets); err != nil {
			t.Fatal(err)
		}
		batch, err := l.read()
		if err != nil {
			t.Fatal(err)
		}
		r.Process(batch, batch[0].ReadAt)
	}); allocs >= 1 { // once a second a name is asked for
		t.Errorf("%v allocations for each batch", allocs)
	}
}

func TestControlMessagesThatAreCutAreLeftOut(t *testing.T) {
	for n := range controlLen {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(n)
		}
		d := Datagram{TTL: UnknownTTL}
		d.control(b) // must not panic
		if n >= unix.SizeofCmsghdr {
			clear(b)
			b[0] = unix.SizeofCmsghdr // a message without data
			b[8], b[12] = unix.IPPROTO_IP, unix.IP_TTL
			d.control(b)
		}
		if d.TTL != UnknownTTL {
			t.Errorf("%d octets give TTL %d", n, d.TTL)
		}
	}
}
