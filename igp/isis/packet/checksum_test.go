package packet

import (
	"math/rand/v2"
	"testing"
)

func TestAComputedChecksumVerifiesAtEveryLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := headerLen[L2LSP]; n < 1600; n++ {
		b := make([]byte, n)
		for i := range b {
			switch n % 3 {
			case 0:
				b[i] = byte(r.Uint32())
			case 1:
				b[i] = 0xFF
			}
		}
		if SetChecksum(b); !ChecksumOK(b) {
			t.Fatalf("%d octets: %#x doesn't verify", n, b[lspChecksumAt:lspChecksumAt+2])
		}
		if b[lspChecksumAt] == 0 || b[lspChecksumAt+1] == 0 {
			t.Fatalf("%d octets: an octet of the checksum is zero", n)
		}
	}
}

func TestAChecksumOfZeroIsNeverRight(t *testing.T) {
	b := make([]byte, headerLen[L2LSP])
	if ChecksumOK(b) { // both sums are zero here
		t.Error("accepted")
	}
}

func TestSumsDontOverflow(t *testing.T) {
	b := make([]byte, maxPDU)
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
