package roce

import (
	"net/netip"
	"testing"
)

func benchCNP(b *testing.B, src, dst string) {
	c := CNP{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst), TOS: DefaultCNPTOS, SrcPort: 49152, DestQP: 0x118}
	buf := make([]byte, 0, CNPLenIPv6)
	b.ReportAllocs()
	for b.Loop() {
		c.IPID++
		out, err := AppendCNP(buf, &c)
		if err != nil {
			b.Fatal(err)
		}
		_ = out
	}
}

func BenchmarkAppendCNPv4(b *testing.B) { benchCNP(b, "192.0.2.1", "198.51.100.2") }
func BenchmarkAppendCNPv6(b *testing.B) { benchCNP(b, "2001:db8:1::7", "2001:db8:2::8") }

func BenchmarkParseEthernet(b *testing.B) {
	for name, v := range vectors(b) {
		b.Run(name, func(b *testing.B) {
			var p Packet
			b.ReportAllocs()
			for b.Loop() {
				if err := ParseEthernet(v.frame, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerifyICRC(b *testing.B) {
	ip := vectors(b)["uc-send-only-v4"].ip
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := VerifyICRC(ip); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkParseMAD(b *testing.B) {
	m := MAD{BaseVersion: 1, Class: 7, ClassVersion: 2, Method: 3, AttrID: uint16(CMREQ), CM: CM{Kind: CMREQ, LocalQPN: 0xDC}}
	body, err := m.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseMAD(body); err != nil {
			b.Fatal(err)
		}
	}
}
