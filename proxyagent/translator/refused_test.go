package translator

import (
	"net"
	"net/netip"
	"os"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/testwait"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/message"
	"pncd/proxyagent/notifier"
)

// packetsTo builds n notifications to l as whole packets, those for which bad says so with a wrong
// checksum.
func packetsTo(t *testing.T, l *Listener, n int, bad func(i int) bool) [][]byte {
	t.Helper()
	w := &wire{}
	rec, err := evidence.NewRecorder(evidence.Config{Capacity: 1})
	if err != nil {
		t.Fatal(err)
	}
	source, err := notifier.New(notifier.Config{SourceIPv4: node4, SourceIPv6: node6, Port: l.Addr().Port(), TotalBurst: n}, notifier.Deps{
		Resolver: notifier.ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution {
			return pnc.Resolution{Reason: pnc.ReasonFound, Proxy: l.Addr().Addr()}
		}),
		Sender: w, Recorder: rec, Random: func() uint64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	source.SetEnabled(true)
	for i := range n {
		source.Handle(&notifier.Event{Sender: sender4, Receiver: recv4, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: uint32(i)}, start)
	}
	if len(w.packets) != n {
		t.Fatalf("%d packets", len(w.packets))
	}
	for i, p := range w.packets {
		if bad(i) {
			sum := len(p) - message.Format1LenIPv4 - 2
			p[sum] ^= 0xff
			p[sum+1] ^= 0x01
		}
	}
	return w.packets
}

// kernelCounts reads what the kernel of this thread's namespace counted: datagrams that were read,
// dropped for a full queue, and with a wrong checksum.
func kernelCounts(t *testing.T, v4 bool) (read, overflow, bad uint64) {
	t.Helper()
	values := [3]uint64{}
	for i, name := range []string{"InDatagrams", "RcvbufErrors", "InCsumErrors"} {
		path, prefix, column := "/proc/thread-self/net/snmp6", "Udp6"+name, ""
		if v4 {
			path, prefix, column = "/proc/thread-self/net/snmp", "Udp:", name
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if values[i], err = parseCounter(b, prefix, column); err != nil {
			t.Fatal(err)
		}
	}
	return values[0], values[1], values[2]
}

func TestWrongChecksumsAndOverflowsAreCountedAsTheKernelDoes(t *testing.T) {
	for _, proxy := range []netip.Addr{proxy4, proxy6} {
		for _, tc := range []struct {
			name   string
			buffer int
			n      int
			bad    func(int) bool
		}{
			{"wrong checksums", 0, 300, func(i int) bool { return i%3 == 0 }},
			{"a full queue", 1, 2000, func(int) bool { return false }},
			{"both", 1, 2000, func(i int) bool { return i%2 == 0 }},
		} {
			t.Run(proxy.String()+" "+tc.name, func(t *testing.T) {
				enterNetns(t, "203.0.113.1/32", "203.0.113.9/32", "2001:db8:ffff::1/128", "2001:db8:ffff::9/128")
				r := newRig(t, nil)
				l := listen(t, ListenConfig{Address: netip.AddrPortFrom(proxy, 0), ReceiveBuffer: tc.buffer})
				if sent, err := openSender(t).Send(packetsTo(t, l, tc.n, tc.bad)); sent != tc.n {
					t.Fatalf("%d sent: %v", sent, err)
				}
				stop := serve(t, r.Translator, l)
				// The loopback's backlog may lose some under load, so the kernel is asked what arrived.
				var read, overflow, bad uint64
				defer func() {
					t.Logf("the kernel counts %d read, %d overflows, %d wrong checksums", read, overflow, bad)
				}()
				testwait.Until(t, "as many outcomes as datagrams arrived", func() bool {
					read, overflow, bad = kernelCounts(t, proxy.Is4())
					return r.rec.Outcome(translated) > 0 && r.rec.Sum(evidence.PartProxy) == read+overflow+bad
				})
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				read, overflow, bad = kernelCounts(t, proxy.Is4())
				r.checkSum(t, read+overflow+bad)
				got := r.rec.Outcome
				// Those that were still queued at the stop were read too.
				if n := got(translated) + got(pncv1.Outcome_OUTCOME_PROXY_SHUTDOWN); n != read {
					t.Errorf("%d read, the kernel counts %d", n, read)
				}
				if n := got(pncv1.Outcome_OUTCOME_PROXY_RECEIVE_OVERFLOW); n != overflow {
					t.Errorf("%d overflows, the kernel counts %d", n, overflow)
				}
				if n := got(pncv1.Outcome_OUTCOME_PROXY_BAD_CHECKSUM); n != bad {
					t.Errorf("%d wrong checksums, the kernel counts %d", n, bad)
				}
				if (overflow > 0) != (tc.buffer == 1) || (bad > 0) != tc.bad(0) {
					t.Errorf("the load has %d overflows and %d wrong checksums", overflow, bad)
				}
			})
		}
	}
}

func TestAWrongChecksumHasItsRecord(t *testing.T) {
	for _, proxy := range []netip.Addr{proxy4, proxy6} {
		t.Run(proxy.String(), func(t *testing.T) {
			enterNetns(t, "203.0.113.1/32", "203.0.113.9/32", "2001:db8:ffff::1/128", "2001:db8:ffff::9/128")
			r := newRig(t, nil)
			l := listen(t, ListenConfig{Address: netip.AddrPortFrom(proxy, 0)})
			serve(t, r.Translator, l)
			if sent, err := openSender(t).Send(packetsTo(t, l, 1, func(int) bool { return true })); sent != 1 {
				t.Fatal(err)
			}
			testwait.Until(t, "a record", func() bool { return len(r.rec.List(evidence.Filter{}, 0)) == 1 })
			rec := r.rec.List(evidence.Filter{}, 0)[0]
			if tr := rec.Translation; rec.Outcome != pncv1.Outcome_OUTCOME_PROXY_BAD_CHECKSUM || !tr.Node.IsValid() ||
				tr.Node.Is4() != proxy.Is4() || tr.EventPort != message.EventPortBase || rec.Flow.Sender.IsValid() {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

// An ordinary socket's checksum is left to the device, which loopback and veth never fill in: the
// kernel knows that, and the filter must not take it for a wrong one.
func TestAChecksumLeftToTheDeviceIsNotWrong(t *testing.T) {
	for _, proxy := range []netip.Addr{proxy4, proxy6} {
		t.Run(proxy.String(), func(t *testing.T) {
			enterNetns(t, "203.0.113.1/32", "203.0.113.9/32", "2001:db8:ffff::1/128", "2001:db8:ffff::9/128")
			r := newRig(t, func(c *Config) { c.MinTTL = 0 })
			l := listen(t, ListenConfig{Address: netip.AddrPortFrom(proxy, 0)})
			stop := serve(t, r.Translator, l)
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(l.Addr()))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for i := range 100 {
				dg := notification(uint32(i), 0)
				if _, err := c.Write(dg.Payload); err != nil {
					t.Fatal(err)
				}
			}
			testwait.Until(t, "all have an outcome", func() bool { return r.rec.Sum(evidence.PartProxy) >= 100 })
			if err := stop(); err != nil { // looks for wrong checksums a last time
				t.Fatal(err)
			}
			r.checkSum(t, 100)
			if got := r.rec.Outcome(pncv1.Outcome_OUTCOME_PROXY_BAD_CHECKSUM); got != 0 {
				t.Errorf("%d taken for wrong", got)
			}
		})
	}
}
