package packet

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"pncd/igp/wire"
)

// Constants of the architecture (RFC 2328 appendix B). Ages are seconds.
const (
	MaxAge     = 3600
	MaxAgeDiff = 900
	DoNotAge   = 0x8000 // RFC 1793 section 2.2: the age does not grow

	InitialSequence = int32(-0x7FFFFFFF) // 0x80000001
	MaxSequence     = int32(0x7FFFFFFF)
)

// HeaderLen is the length of an LSA's header, in octets.
const HeaderLen = 20

// Where an LSA has its fields.
const (
	lsaOptionsAt  = 2 // OSPFv2
	lsaTypeAt     = 2 // two octets in OSPFv3, the second alone in OSPFv2
	lsaIDAt       = 4
	lsaAdvAt      = 8
	lsaSequenceAt = 12
	lsaChecksumAt = 16
	lsaLengthAt   = 18
)

// Key names an LSA whatever its instance (RFC 2328 section 12.1).
type Key struct {
	Type LSType
	ID   ID
	Adv  ID // advertising router
}

// String gives the key as in 0x2001/0.0.0.0/10.255.0.1.
func (k Key) String() string { return fmt.Sprintf("%#x/%s/%s", uint16(k.Type), k.ID, k.Adv) }

// Compare orders keys.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Type, o.Type), cmp.Compare(k.ID, o.ID), cmp.Compare(k.Adv, o.Adv))
}

// Header is an LSA's header (RFC 2328 section A.4.1, RFC 5340 section A.4.2).
type Header struct {
	Age     uint16 // seconds, with the DoNotAge bit
	Options uint8  // OSPFv2
	Key
	Sequence int32
	Checksum uint16
	Length   uint16 // octets, with the header
}

// ParseHeader reads the header at the begin of b.
func ParseHeader(v Version, b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, fault(len(b), "LSA header", "%d octets, must be 20 (RFC 2328 section A.4.1)", len(b))
	}
	h := Header{
		Age: binary.BigEndian.Uint16(b),
		Key: Key{
			Type: LSType(binary.BigEndian.Uint16(b[lsaTypeAt:])),
			ID:   ID(binary.BigEndian.Uint32(b[lsaIDAt:])),
			Adv:  ID(binary.BigEndian.Uint32(b[lsaAdvAt:])),
		},
		Sequence: int32(binary.BigEndian.Uint32(b[lsaSequenceAt:])),
		Checksum: binary.BigEndian.Uint16(b[lsaChecksumAt:]),
		Length:   binary.BigEndian.Uint16(b[lsaLengthAt:]),
	}
	if v == V2 {
		h.Options, h.Type = b[lsaOptionsAt], h.Type&0xFF
	}
	if h.Length < HeaderLen {
		return Header{}, fault(lsaLengthAt, "LSA length", "%d, must be at least 20 (RFC 2328 section A.4.1)", h.Length)
	}
	return h, nil
}

// Append writes the header.
func (h Header) Append(v Version, dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, h.Age)
	if v == V2 {
		dst = append(dst, h.Options, uint8(h.Type))
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(h.Type))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.ID))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Adv))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Sequence))
	dst = binary.BigEndian.AppendUint16(dst, h.Checksum)
	return binary.BigEndian.AppendUint16(dst, h.Length)
}

// AgeSeconds gives the age without the DoNotAge bit, at most MaxAge.
func (h Header) AgeSeconds() uint16 { return min(h.Age&^DoNotAge, MaxAge) }

// Newer compares two instances of an LSA as RFC 2328 section 13.1 does: above zero when h is the more recent
// one, below when o is, zero when they are the same instance.
func (h Header) Newer(o Header) int {
	if c := cmp.Compare(h.Sequence, o.Sequence); c != 0 {
		return c
	}
	if c := cmp.Compare(h.Checksum, o.Checksum); c != 0 {
		return c
	}
	a, b := int(h.AgeSeconds()), int(o.AgeSeconds())
	switch {
	case a == b:
		return 0
	case a == MaxAge:
		return 1
	case b == MaxAge:
		return -1
	case a-b > MaxAgeDiff:
		return -1
	case b-a > MaxAgeDiff:
		return 1
	}
	return 0
}

// LSA is a link state advertisement: its header, and all of its octets, header included.
type LSA struct {
	Header
	Raw []byte
}

// ParseLSA reads the LSA at the begin of b, which may go on behind it. It does not look at the checksum: see
// ChecksumOK.
func ParseLSA(v Version, b []byte) (LSA, error) {
	h, err := ParseHeader(v, b)
	if err != nil {
		return LSA{}, err
	}
	if int(h.Length) > len(b) {
		return LSA{}, fault(lsaLengthAt, "LSA length", "%d, but %d octets are left", h.Length, len(b))
	}
	return LSA{Header: h, Raw: b[:h.Length:h.Length]}, nil
}

// NewLSA makes an LSA of a header and a body; length and checksum are computed.
func NewLSA(v Version, h Header, body []byte) (LSA, error) {
	if n := HeaderLen + len(body); n > 0xFFFF {
		return LSA{}, fault(lsaLengthAt, "LSA length", "%d octets, at most 65535", n)
	}
	h.Length = uint16(HeaderLen + len(body))
	raw := append(h.Append(v, make([]byte, 0, h.Length)), body...)
	// The age is left out, so that it may grow on the way (RFC 2328 section 12.1.7).
	h.Checksum = wire.SetFletcher(raw[lsaOptionsAt:], lsaChecksumAt-lsaOptionsAt)
	return LSA{Header: h, Raw: raw}, nil
}

// Body gives what follows the header.
func (l LSA) Body() []byte { return l.Raw[HeaderLen:] }

// ChecksumOK verifies the checksum (RFC 2328 section 12.1.7).
func (l LSA) ChecksumOK() bool {
	return wire.FletcherOK(l.Raw[lsaOptionsAt:], lsaChecksumAt-lsaOptionsAt)
}

// Append writes the LSA with another age, seconds.
func (l LSA) Append(dst []byte, age uint16) []byte {
	at := len(dst)
	dst = append(dst, l.Raw...)
	binary.BigEndian.PutUint16(dst[at:], age)
	return dst
}
