package wire

import "encoding/binary"

// Fletcher's checksum of ISO 8473 (RFC 1008, RFC 905 annex B): the two octets of the checksum are chosen so
// that both sums over the whole are zero. LSPs (ISO 10589 clause 7.3.11) and LSAs (RFC 2328 section 12.1.7)
// carry it.

// sums gives Fletcher's sums modulo 255.
func sums(b []byte) (c0, c1 uint32) {
	// So many octets can be added before a 32-bit sum overflows, beginning at sums below 255.
	const run = 4096
	for len(b) > 0 {
		n := min(run, len(b))
		for _, v := range b[:n] {
			c0 += uint32(v)
			c1 += c0
		}
		c0 %= 255
		c1 %= 255
		b = b[n:]
	}
	return c0, c1
}

// FletcherOK verifies b, whose checksum is the two octets at the offset. A checksum of zero is never right.
func FletcherOK(b []byte, at int) bool {
	if binary.BigEndian.Uint16(b[at:]) == 0 {
		return false
	}
	c0, c1 := sums(b)
	return c0 == 0 && c1 == 0
}

// SetFletcher computes the checksum of b and writes it at the offset.
func SetFletcher(b []byte, at int) uint16 {
	binary.BigEndian.PutUint16(b[at:], 0)
	c0, c1 := sums(b)
	after := uint32(len(b)-at-1) % 255 // octets behind the first of the two
	x := (after*c0 + 255 - c1) % 255
	y := (c1 + 255*255 - (after+1)*c0%255) % 255
	// Zero and 255 are the same to the sums, and an octet of zero would mean that there is no checksum.
	if x == 0 {
		x = 255
	}
	if y == 0 {
		y = 255
	}
	sum := uint16(x<<8 | y)
	binary.BigEndian.PutUint16(b[at:], sum)
	return sum
}
