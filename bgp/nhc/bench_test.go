package nhc

import "testing"

// BenchmarkParseAndMatch is what each path with an NHC attribute costs.
func BenchmarkParseAndMatch(b *testing.B) {
	a, err := New(AFIIPv4, SAFIUnicast, addr("192.0.2.1"), pncTLV(b, "192.0.2.7"))
	if err != nil {
		b.Fatal(err)
	}
	raw, err := a.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	route := Route{AFI: AFIIPv4, SAFI: SAFIUnicast, NextHop: addr("192.0.2.1")}
	b.ReportAllocs()
	for b.Loop() {
		a, err := Parse(raw)
		if err != nil || a.Match(route) != nil || !a.PNC(DefaultPNCCode).Present {
			b.Fatal(err)
		}
	}
}
