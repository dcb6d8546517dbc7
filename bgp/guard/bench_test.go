package guard

import (
	"encoding/binary"
	"testing"
	"time"
)

// fullUpdate is an UPDATE of nearly the greatest length: n /24 with NHC and the usual attributes.
func fullUpdate(n int) []byte {
	var prefixes []byte
	for i := range n {
		prefixes = append(prefixes, 24, 10, byte(i>>8), byte(i))
	}
	a := hx(aBase + aMED + aPref + "c0 08 04 fc000001" + aNHC)
	b := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(a)))
	return message(typeUpdate, append(append(b, a...), prefixes...))
}

// BenchmarkUpdate measures the check of UPDATEs that pass unchanged, with a copy of the same octets as the
// baseline: ratio is time per time.
func BenchmarkUpdate(b *testing.B) {
	for _, c := range []struct {
		name string
		msg  []byte
	}{
		{"one-prefix", fullUpdate(1)},
		{"950-prefixes", fullUpdate(950)},
		{"ipv6", updateOf("", aOrigin+aPath+aReach6+aNHC, "")},
		{"vpn", updateOf("", aOrigin+aPath+aReachVPN+aNHC, "")},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := sessionOf(b, Config{}, as4)
			into := make([]byte, len(c.msg))
			const copies = 1 << 20
			start := time.Now()
			for range copies {
				copy(into, c.msg)
			}
			baseline := float64(time.Since(start).Nanoseconds()) / copies
			b.ReportAllocs()
			for b.Loop() {
				if v := s.FromPeer(c.msg); len(v.Pass) == 0 {
					b.Fatal(v)
				}
			}
			per := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(per/baseline, "ratio-to-copy")
			b.SetBytes(int64(len(c.msg)))
		})
	}
}

// TestNoMemoryForWhatPasses holds that the common case takes no memory.
func TestNoMemoryForWhatPasses(t *testing.T) {
	s := sessionOf(t, Config{}, as4)
	for _, c := range updateCases {
		if !c.same || c.ebgp {
			continue
		}
		msg := c.msg()
		if n := testing.AllocsPerRun(100, func() { s.FromPeer(msg) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
