package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

var (
	nrp4 = Notification2{Src: flow4.Src, Dst: flow4.Dst, SrcPort: flow4.SrcPort, DstPort: flow4.DstPort, Proto: 17, NRP: 0x01020304}
	nrp6 = Notification2{Src: flow6.Src, Dst: flow6.Dst, SrcPort: flow6.SrcPort, DstPort: flow6.DstPort, Proto: 17, NRP: 0xfffffffe}
)

func TestFormat2VectorsHoldTheOrderOfTheFields(t *testing.T) {
	for _, tc := range []struct {
		name         string
		n            Notification2
		before, nrps string // around the reserved octets
	}{
		{"ipv4", nrp4, "c6336402" + "c0000201" + "c123" + "12b7" + "11", "01020304"},
		{"ipv6", nrp6, "20010db8000200000000000000000008" + "20010db8000100000000000000000007" + "c000" + "12b7" + "11", "fffffffe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, err := hex.DecodeString(tc.before + "000000" + tc.nrps)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tc.n.Append([]byte{0xaa})
			if err != nil || got[0] != 0xaa || !bytes.Equal(got[1:], want) {
				t.Errorf("Append = %x, %v, want aa%x", got, err, want)
			}
			for _, reserved := range []string{"000000", "ffffff", "00018d"} {
				b, err := hex.DecodeString(tc.before + reserved + tc.nrps)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := ParseFormat2(b); err != nil || n != tc.n {
					t.Errorf("reserved %s: %+v, %v, want %+v", reserved, n, err, tc.n)
				}
			}
		})
	}
}

func TestEachFormatIsReadByItsOwnParserOnly(t *testing.T) {
	for n := range 65 {
		_, err := ParseFormat2(make([]byte, n))
		if check := CheckLength(Format2, n); (check == nil) != (err == nil) || check != nil && check.Error() != err.Error() {
			t.Errorf("%d octets: CheckLength gives %v, ParseFormat2 %v", n, check, err)
		}
		var want error
		switch n {
		case 20, 44:
		case 16, 40:
			want = ErrFormat1
		default:
			want = ErrLength
		}
		if !errors.Is(err, want) {
			t.Errorf("%d octets: %v, want %v", n, err, want)
		}
	}
}

func TestFormat2AppendNamesTheFieldThatCannotBeSent(t *testing.T) {
	for _, edit := range []func(*Notification2){
		func(n *Notification2) { n.Src = netip.Addr{} },
		func(n *Notification2) { n.Dst = netip.Addr{} },
		func(n *Notification2) { n.Dst = flow6.Dst },
		func(n *Notification2) { n.Src = netip.MustParseAddr("fe80::1%eth0"); n.Dst = flow6.Dst },
	} {
		n, dst := nrp4, []byte{1, 2}
		edit(&n)
		if got, err := n.Append(dst); err == nil || !bytes.Equal(got, dst) {
			t.Errorf("%+v: %x, %v", n, got, err)
		}
	}
}

func TestRoundTripOfAnyFormat2Notification(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	buf := make([]byte, 0, MaxLen)
	for i := range 10_000 {
		n := Notification2{SrcPort: uint16(rng.Uint32()), DstPort: uint16(rng.Uint32()), Proto: uint8(rng.Uint32()), NRP: rng.Uint32()}
		var a, b [16]byte
		for i := range a {
			a[i], b[i] = byte(rng.Uint32()), byte(rng.Uint32())
		}
		n.Src, n.Dst = netip.AddrFrom16(a), netip.AddrFrom16(b)
		if i%2 == 0 {
			n.Src, n.Dst = netip.AddrFrom4([4]byte(a[:])), netip.AddrFrom4([4]byte(b[:]))
		}
		w, err := n.Append(buf)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseFormat2(w); err != nil || got != n {
			t.Fatalf("%+v came back as %+v, error %v", n, got, err)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		w, _ := nrp6.Append(buf)
		_, _ = ParseFormat2(w)
	}); allocs != 0 {
		t.Errorf("%v allocations for each notification", allocs)
	}
}

// Whatever arrives either parses and is written back octet for octet, but for the reserved ones, or gives one
// of the two errors.
func FuzzParseFormat2(f *testing.F) {
	for _, n := range []Notification2{nrp4, nrp6} {
		b, err := n.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-4]) // format 1
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseFormat2(b)
		if err != nil {
			if n != (Notification2{}) || errors.Is(err, ErrLength) == errors.Is(err, ErrFormat1) {
				t.Fatalf("error %v with a notification %+v", err, n)
			}
			return
		}
		w, err := n.Append(nil)
		if err != nil {
			t.Fatalf("parsed %+v cannot be written: %v", n, err)
		}
		want := bytes.Clone(b)
		clear(want[len(want)-7 : len(want)-4])
		if !bytes.Equal(w, want) {
			t.Fatalf("%x came back as %x", b, w)
		}
	})
}
