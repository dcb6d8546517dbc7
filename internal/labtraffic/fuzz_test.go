package labtraffic

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pncd/dataplane/roce"
)

// Any file is an error, or packets that every pass rewrites to valid ones.
func FuzzReadCapture(f *testing.F) {
	for _, dir := range []string{os.Getenv("PNCD_VECTORS"), "../../../shared/vectors"} {
		for _, name := range []string{"cm-write.pcap", "dc-negative.pcap"} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				f.Add(b)
			}
		}
	}
	f.Add([]byte("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x00\x00"))
	f.Add([]byte(pcapngMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := readCapture(bytes.NewReader(b), false)
		if err != nil {
			return
		}
		_, _, _ = c.Pair() // must not panic; there may be none
		r := replayer(c, ReplayConfig{}, "10.0.0.1", "10.0.0.2")
		var buf []byte
		for pass := range uint32(2) {
			for i := range c.packets {
				s, err := r.rewrite(&c.packets[i], pass)
				if err != nil {
					t.Fatalf("packet %d: %v", i, err)
				}
				if buf, err = roce.AppendPacket(buf[:0], &s); err != nil {
					continue // a captured packet of the greatest length has no room for a longer header
				}
				if ok, err := roce.VerifyICRC(buf); !ok || err != nil {
					t.Fatalf("packet %d: ICRC wrong: %v", i, err)
				}
			}
		}
	})
}
