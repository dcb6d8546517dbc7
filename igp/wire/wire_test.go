package wire

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func TestAComputedChecksumVerifiesAtEveryLength(t *testing.T) {
	const at = 12
	r := rand.New(rand.NewPCG(1, 2))
	for n := at + 2; n < 1600; n++ {
		b := make([]byte, n)
		for i := range b {
			switch n % 3 {
			case 0:
				b[i] = byte(r.Uint32())
			case 1:
				b[i] = 0xFF
			}
		}
		if SetFletcher(b, at); !FletcherOK(b, at) {
			t.Fatalf("%d octets: %#x doesn't verify", n, b[at:at+2])
		}
		if b[at] == 0 || b[at+1] == 0 {
			t.Fatalf("%d octets: an octet of the checksum is zero", n)
		}
	}
}

func TestAChecksumOfZeroIsNeverRight(t *testing.T) {
	if FletcherOK(make([]byte, 20), 12) { // both sums are zero here
		t.Error("accepted")
	}
}

func TestSumsDontOverflow(t *testing.T) {
	b := make([]byte, 1<<16)
	for i := range b {
		b[i] = 0xFE
	}
	var c0, c1 uint64
	for _, v := range b {
		c0 += uint64(v)
		c1 += c0 % 255
	}
	if g0, g1 := sums(b); uint64(g0) != c0%255 || uint64(g1) != c1%255 {
		t.Errorf("%d, %d; want %d, %d", g0, g1, c0%255, c1%255)
	}
}

func TestShifted(t *testing.T) {
	inner := &Error{"ospf", 2, "length", "at least 20 octets (RFC 2328)"}
	if got, want := Shifted(inner, 24).Error(), "ospf: offset 26: length: at least 20 octets (RFC 2328)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if inner.Offset != 2 {
		t.Error("the inner error was changed")
	}
	if other := errors.New("x"); Shifted(other, 1) != other {
		t.Error("another error was changed")
	}
}
