package tcx

import (
	"testing"

	"pncd/dataplane/tap/taptest"
)

// BenchmarkProgram reports what the program costs a packet, as the kernel measures it (BPF_PROG_TEST_RUN).
func BenchmarkProgram(b *testing.B) {
	q := slow
	marked := taptest.Ethernet(packet(b, false, 3, writeOnly, 1))
	for _, bb := range []struct {
		name   string
		config Config
		frame  []byte
	}{
		{"unmarked", Config{CE: true}, taptest.Ethernet(packet(b, false, 2, writeOnly, 1))},
		{"gated", Config{CE: true}, marked},
		{"lost", Config{CE: true, Gate: eachPacket}, marked}, // the ring buffer is full: all of an event but the wake-up
		{"virtual-queue", Config{Queue: &q}, taptest.Ethernet(packet(b, false, 0, writeOnly, 1))},
	} {
		b.Run(bb.name, func(b *testing.B) {
			bb.config.Interface = "lo"
			d := need(b, taptest.Need(b), bb.config)
			_, perPacket, err := d.prog.Benchmark(bb.frame, max(b.N, 1000), b.ResetTimer)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(perPacket.Nanoseconds()), "ns/packet")
		})
	}
}
