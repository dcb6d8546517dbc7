package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

var (
	flow4 = Notification{
		Src: netip.MustParseAddr("198.51.100.2"), Dst: netip.MustParseAddr("192.0.2.1"),
		SrcPort: 0xc123, DstPort: 4791, Proto: 17, DestQP: 0x00018d,
	}
	flow6 = Notification{
		Src: netip.MustParseAddr("2001:db8:2::8"), Dst: netip.MustParseAddr("2001:db8:1::7"),
		SrcPort: 49152, DstPort: 4791, Proto: 17, DestQP: 0xfffffe,
	}
)

func TestFormat1VectorsHoldTheOrderOfTheFields(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    Notification
		hex  string
	}{
		{"ipv4", flow4, "c6336402" + "c0000201" + "c123" + "12b7" + "11" + "00018d"},
		{"ipv6", flow6, "20010db8000200000000000000000008" + "20010db8000100000000000000000007" + "c000" + "12b7" + "11" + "fffffe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, err := hex.DecodeString(tc.hex)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tc.n.Append([]byte{0xaa})
			if err != nil {
				t.Fatal(err)
			}
			if got[0] != 0xaa || !bytes.Equal(got[1:], want) {
				t.Errorf("Append = %x, want aa%x", got, want)
			}
			n, err := Parse(want)
			if err != nil {
				t.Fatal(err)
			}
			if n != tc.n {
				t.Errorf("Parse = %+v, want %+v", n, tc.n)
			}
		})
	}
}

func TestLengthAloneTellsFormatAndFamily(t *testing.T) {
	for n := 0; n <= 64; n++ {
		_, err := Parse(make([]byte, n))
		if check := CheckLength(Format1, n); (check == nil) != (err == nil) || check != nil && check.Error() != err.Error() {
			t.Errorf("%d octets: CheckLength gives %v, Parse %v", n, check, err)
		}
		switch n {
		case 16, 40:
			if err != nil || FormatOf(n) != Format1 {
				t.Errorf("%d octets: format %d, error %v; want format 1", n, FormatOf(n), err)
			}
		case 20, 44:
			if !errors.Is(err, ErrFormat2) || FormatOf(n) != Format2 {
				t.Errorf("%d octets: format %d, error %v; want format 2", n, FormatOf(n), err)
			}
		default:
			if !errors.Is(err, ErrLength) || FormatOf(n) != FormatUnknown {
				t.Errorf("%d octets: format %d, error %v; want ErrLength", n, FormatOf(n), err)
			}
		}
	}
}

func TestAppendNamesTheFieldThatCannotBeSent(t *testing.T) {
	for _, tc := range []struct {
		field string
		edit  func(*Notification)
	}{
		{"source address: not given", func(n *Notification) { n.Src = netip.Addr{} }},
		{"destination address: not given", func(n *Notification) { n.Dst = netip.Addr{} }},
		{"families differ", func(n *Notification) { n.Dst = flow6.Dst }},
		{"a zone", func(n *Notification) { n.Src = netip.MustParseAddr("fe80::1%eth0"); n.Dst = flow6.Dst }},
		{"a zone", func(n *Notification) { n.Src = flow6.Src; n.Dst = netip.MustParseAddr("fe80::1%eth0") }},
		{"Destination QP 0x1000000", func(n *Notification) { n.DestQP = 1 << 24 }},
	} {
		n := flow4
		tc.edit(&n)
		dst := []byte{1, 2}
		got, err := n.Append(dst)
		if err == nil || !strings.Contains(err.Error(), tc.field) {
			t.Errorf("error %v, want one naming %q", err, tc.field)
		}
		if !bytes.Equal(got, dst) {
			t.Errorf("%s: dst changed to %x", tc.field, got)
		}
	}
}

func TestRoundTripOfAnyNotification(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		n := Notification{
			SrcPort: uint16(rng.Uint32()), DstPort: uint16(rng.Uint32()),
			Proto: uint8(rng.Uint32()), DestQP: rng.Uint32() & MaxQP,
		}
		var a, b [16]byte
		for i := range a {
			a[i], b[i] = byte(rng.Uint32()), byte(rng.Uint32())
		}
		if rng.Uint32()&1 == 0 {
			n.Src, n.Dst = netip.AddrFrom4([4]byte(a[:])), netip.AddrFrom4([4]byte(b[:]))
		} else {
			n.Src, n.Dst = netip.AddrFrom16(a), netip.AddrFrom16(b)
		}
		w, err := n.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(w)
		if err != nil || got != n {
			t.Fatalf("%+v came back as %+v, error %v", n, got, err)
		}
	}
}

func TestCodecDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, MaxLen)
	for _, n := range []Notification{flow4, flow6} {
		if allocs := testing.AllocsPerRun(100, func() {
			b, err := n.Append(buf)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(b); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Errorf("%v allocations for each notification", allocs)
		}
	}
}

func TestEventNumberTravelsAsPort(t *testing.T) {
	for _, tc := range []struct {
		n    uint64
		port uint16
	}{{0, 49152}, {1, 49153}, {16383, 65535}, {16384, 49152}, {1<<64 - 1, 65535}} {
		if got := EventPort(tc.n); got != tc.port {
			t.Errorf("EventPort(%d) = %d, want %d", tc.n, got, tc.port)
		}
		idx, ok := EventIndex(tc.port)
		if !ok || uint64(idx) != tc.n%EventPortCount {
			t.Errorf("EventIndex(%d) = %d, %v", tc.port, idx, ok)
		}
	}
	for _, port := range []uint16{0, 4791, 49151} {
		if _, ok := EventIndex(port); ok {
			t.Errorf("port %d carries no event number", port)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, MaxLen)
	for b.Loop() {
		if _, err := flow6.Append(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	w, err := flow4.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Parse(w); err != nil {
			b.Fatal(err)
		}
	}
}
