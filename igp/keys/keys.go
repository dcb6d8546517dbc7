// Package keys is what the cryptographic authentication of IS-IS (RFC 5310), OSPFv2 (RFC 5709) and OSPFv3
// (RFC 7166) does the same way: how a key is prepared and what stands where the digest will be.
package keys

import (
	"crypto/hmac"
	"hash"
)

// FillApad fills the room of a digest with 0x878FE1F3, repeated (RFC 5310 section 3.3, RFC 5709 section 3.3,
// RFC 7166 section 4.5).
func FillApad(room []byte) {
	for i := range room {
		room[i] = [...]byte{0x87, 0x8F, 0xE1, 0xF3}[i%4]
	}
}

// HMAC gives the HMAC of what is covered with Ko, the key as the three RFCs prepare it: one longer than the
// digest is replaced by its hash. Plain HMAC does so only beyond the length of a block.
func HMAC(h func() hash.Hash, secret, covered []byte) []byte {
	if d := h(); len(secret) > d.Size() {
		d.Write(secret)
		secret = d.Sum(nil)
	}
	m := hmac.New(h, secret)
	m.Write(covered)
	return m.Sum(nil)
}
