package packet

import "encoding/binary"

// The checksum of an LSP is Fletcher's of ISO 8473 over everything from the LSP ID to the end (ISO 10589
// clause 7.3.11); the two octets are chosen so that both sums over the whole are zero.

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

// ChecksumOK verifies the checksum of a raw LSP, which must be one that ParseLSP takes, without what
// followed it in the frame. A checksum of zero is never right.
func ChecksumOK(lsp []byte) bool {
	if binary.BigEndian.Uint16(lsp[lspChecksumAt:]) == 0 {
		return false
	}
	c0, c1 := sums(lsp[lspIDAt:])
	return c0 == 0 && c1 == 0
}

// SetChecksum computes the checksum of a raw LSP and writes it there.
func SetChecksum(lsp []byte) uint16 {
	binary.BigEndian.PutUint16(lsp[lspChecksumAt:], 0)
	covered := lsp[lspIDAt:]
	c0, c1 := sums(covered)
	after := uint32(len(covered)-(lspChecksumAt-lspIDAt)-1) % 255 // octets behind the first of the two
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
	binary.BigEndian.PutUint16(lsp[lspChecksumAt:], sum)
	return sum
}
