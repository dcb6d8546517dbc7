package packet

import "testing"

// BenchmarkParseLSP reads an LSP of 1,492 octets with all its prefixes.
func BenchmarkParseLSP(b *testing.B) {
	p := LSP{Header: Header{Type: L2LSP}, Lifetime: 1200, Sequence: 1, Flags: 3}
	raw, err := p.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	for len(raw) < 1492 {
		value := make([]byte, 0, maxValue)
		for len(value)+8 <= maxValue && len(raw)+2+len(value)+8 <= 1492 {
			value = append(value, 0, 0, 0, 10, 24, 10, 1, byte(len(value)))
		}
		if len(value) == 0 {
			break
		}
		raw = append(append(raw, TLVExtendedIPReach, uint8(len(value))), value...)
	}
	raw[8], raw[9] = byte(len(raw)>>8), byte(len(raw))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := ParseLSP(raw)
		if err != nil {
			b.Fatal(err)
		}
		for _, t := range p.TLVs {
			if _, err := ParsePrefixes(t.Value, false); err != nil {
				b.Fatal(err)
			}
		}
	}
}
