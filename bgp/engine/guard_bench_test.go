package engine

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"pncd/bgp/guard"
)

// BenchmarkGuardBesideDecode measures the guard's check of an UPDATE that it passes unchanged, and as the
// baseline how long GoBGP takes to decode the same one: ratio is time per time.
func BenchmarkGuardBesideDecode(b *testing.B) {
	attrs := []byte{
		0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfc, 1, 0x40, 3, 4, 192, 0, 2, 1, 0x40, 5, 4, 0, 0, 0, 100,
		0xc0, 39, 16, 0, 1, 1, 4, 192, 0, 2, 1, 0xff, 0x78, 0, 4, 198, 51, 100, 1,
	}
	for _, c := range []struct {
		name     string
		prefixes int
	}{{"one-prefix", 1}, {"950-prefixes", 950}} {
		b.Run(c.name, func(b *testing.B) {
			body := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(attrs)))
			body = append(body, attrs...)
			for i := range c.prefixes {
				body = append(body, 24, 10, byte(i>>8), byte(i))
			}
			msg := make([]byte, 16)
			for i := range msg {
				msg[i] = 0xff
			}
			msg = binary.BigEndian.AppendUint16(msg, uint16(guard.HeaderLen+len(body)))
			msg = append(append(msg, bgp.BGP_MSG_UPDATE), body...)
			g := newBehindGuard(b, 0)

			rounds := 1 + 100_000/c.prefixes
			start := time.Now()
			for range rounds {
				if _, err := bgp.ParseBGPMessage(msg); err != nil {
					b.Fatal(err)
				}
			}
			decode := float64(time.Since(start).Nanoseconds()) / float64(rounds)
			b.ReportAllocs()
			for b.Loop() {
				if v := g.guard.FromPeer(msg); len(v.Pass) != len(msg) {
					b.Fatal(v)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/decode, "ratio-to-decode")
		})
	}
}
