package kernel

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
)

// BenchmarkProgram runs the programs in the kernel's test run, without an interface: ns/packet is the least of the
// runs, so that what else the machine does matters little. All is in the processor's caches: what the flow map costs
// with many flows, `make bench BENCH='tap-forwarding-*'` tells.
func BenchmarkProgram(b *testing.B) {
	ack := withMSN(spec(ack, 100), 1)
	v6 := spec(writeOnly, 100)
	v6.Src, v6.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for _, tt := range []struct {
		name  string
		frame []byte
		state State
	}{
		{"followed request", frameOf(b, spec(writeOnly, 100)), Followed},
		{"followed response", frameOf(b, ack), Followed},
		{"followed IPv6", frameOf(b, v6), Followed},
		{"followed QinQ", taptest.Ethernet(frameOf(b, spec(writeOnly, 100))[14:], [2]uint16{0x88A8, 1}, [2]uint16{0x8100, 2}), Followed},
		{"quiet", frameOf(b, spec(writeOnly, 100)), Quiet},
		{"CNP", frameOf(b, spec(0x81, 0)), Watched},
		{"not RoCEv2", withPort(frameOf(b, spec(writeOnly, 100)), 53), Watched},
	} {
		for _, m := range []Mode{TCX, XDP} {
			b.Run(tt.name+"/"+m.String(), func(b *testing.B) {
				k := need(b, Config{Mode: m, MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
				if _, err := k.progs[0].Run(runOptions(tt.frame)); err != nil {
					b.Fatal(err)
				}
				var p roce.Packet
				if roce.ParseEthernet(tt.frame, &p) == nil && p.BTH.Opcode.Transport() != roce.TransportCNP {
					if err := k.SetState(KeyOf(&p), tt.state); err != nil {
						b.Fatal(err)
					}
				}
				least := math.Inf(1)
				for b.Loop() {
					_, took, err := k.progs[0].Benchmark(tt.frame, 100_000, nil)
					if err != nil {
						b.Fatal(err)
					}
					least = min(least, float64(took))
				}
				b.ReportMetric(least, "ns/packet")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func withPort(frame []byte, port byte) []byte {
	frame[14+20+2], frame[14+20+3] = 0, port
	return frame
}
