package auth

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"pncd/igp/ospf/packet"
)

// The authentication trailer (RFC 7166 section 4.1): type, length, reserved, security association ID,
// sequence number, digest.
const (
	trailerLen    = 16 // octets without the digest
	trailerType   = 1  // HMAC cryptographic authentication
	lengthAt      = 2
	associationAt = 6
	v3SequenceAt  = 8
	llsHeaderLen  = 4 // RFC 5613 section 2.1: checksum, length in words of 4 octets
)

// digestV3 computes the digest of a packet with what follows it, up to the end of the trailer.
func (k Key) digestV3(b []byte, a Addresses) ([]byte, error) {
	if !a.Source.Is6() {
		return nil, fmt.Errorf("%w: source %s, must be IPv6 (RFC 7166 section 4.5)", ErrAddress, a.Source)
	}
	source := a.Source.As16()
	// Section 4.5: the protocol-specific key Ks has the cryptographic protocol ID behind it.
	id := "\x00\x01"
	if k.SwapProtocolID {
		id = "\x01\x00"
	}
	return k.hmac([]byte(k.Secret+id), slices.Clone(b), source[:]), nil
}

// sealV3 finishes a packet whose checksum is 0.
func (k Key) sealV3(b, lls []byte, a Addresses, s *Sequence, now time.Time) ([]byte, error) {
	authenticated := k.Algorithm != Null
	if at := optionsAt(packet.V3, b); at > 0 {
		const bit = packet.V3OptAT >> 8 // in the middle one of the three octets
		b[at+1] &^= bit
		if authenticated {
			b[at+1] |= bit
		}
	}
	if !authenticated {
		sum, err := checksumV3(b, a)
		if err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint16(b[checksumAt:], sum)
		return append(b, lls...), nil
	}
	if n, err := llsLen(packet.V3, b, lls); err != nil || n != len(lls) {
		return nil, fmt.Errorf("%w: %d octets that the L option and the length of a block don't announce (RFC 5613 section 2.1)", ErrTrailer, len(lls))
	}
	size := algorithms[k.Algorithm].size
	b = append(b, lls...)
	at := len(b)
	b = append(b, make([]byte, trailerLen+size)...)
	binary.BigEndian.PutUint16(b[at:], trailerType)
	binary.BigEndian.PutUint16(b[at+lengthAt:], uint16(trailerLen+size))
	binary.BigEndian.PutUint16(b[at+associationAt:], k.ID)
	binary.BigEndian.PutUint64(b[at+v3SequenceAt:], s.v3(now))
	digest, err := k.digestV3(b, a)
	if err != nil {
		return nil, err
	}
	copy(b[at+trailerLen:], digest)
	return b, nil
}

// llsLen gives the length of the block of link-local signalling that begins what follows a packet.
func llsLen(v packet.Version, pkt, behind []byte) (int, error) {
	bit := uint32(packet.V2OptL)
	if v == packet.V3 {
		bit = packet.V3OptL
	}
	if options(v, pkt)&bit == 0 {
		return 0, nil
	}
	if len(behind) < llsHeaderLen {
		return 0, fmt.Errorf("%w: %d octets, but the L option announces a block of at least %d (RFC 5613 section 2.1)", ErrTrailer, len(behind), llsHeaderLen)
	}
	n := 4 * int(binary.BigEndian.Uint16(behind[2:]))
	if n < llsHeaderLen || n > len(behind) {
		return 0, fmt.Errorf("%w: a block of %d octets, must be %d to %d (RFC 5613 section 2.1)", ErrTrailer, n, llsHeaderLen, len(behind))
	}
	return n, nil
}

func (c Chain) verifyV3(b []byte, a Addresses, r *Replay) ([]byte, error) {
	length := packet.Length(b)
	pkt, behind := b[:length], b[length:]
	// Types without options don't say whether a trailer follows: the keys and what is there decide
	// (RFC 7166 section 2.1: as the neighbour's hellos and descriptions have it).
	announced := options(packet.V3, pkt)&packet.V3OptAT != 0
	if optionsAt(packet.V3, pkt) == 0 {
		announced = len(behind) > 0
	}
	if !announced {
		if !c.acceptsNull() {
			return nil, fmt.Errorf("%w: no AT option or no trailer", ErrMissing)
		}
		ok, err := checksumV3OK(pkt, a)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, ErrChecksum
		}
		return behind, nil
	}
	n, err := llsLen(packet.V3, pkt, behind)
	if err != nil {
		return nil, err
	}
	return behind[:n], c.verifyTrailer(b, length+n, a, r)
}

// verifyTrailer tries the keys that the trailer at an offset can be of.
func (c Chain) verifyTrailer(b []byte, at int, a Addresses, r *Replay) error {
	t := b[at:]
	if len(t) < trailerLen {
		return fmt.Errorf("%w: an authentication trailer of %d octets, must be at least %d (RFC 7166 section 4.1)", ErrTrailer, len(t), trailerLen)
	}
	if typ := binary.BigEndian.Uint16(t); typ != trailerType {
		return fmt.Errorf("%w: trailer of type %d", ErrType, typ)
	}
	if n := int(binary.BigEndian.Uint16(t[lengthAt:])); n != len(t) {
		return fmt.Errorf("%w: an authentication trailer of %d octets where %d are (RFC 7166 section 4.1)", ErrTrailer, n, len(t))
	}
	id := binary.BigEndian.Uint16(t[associationAt:])
	err := fmt.Errorf("%w: authentication trailer", ErrType)
	for _, k := range c.accept() {
		if k.Algorithm == Null || k.check(packet.V3) != nil {
			continue
		}
		if k.ID != id || trailerLen+algorithms[k.Algorithm].size != len(t) {
			if err != ErrDigest {
				err = fmt.Errorf("%w: security association %d, a digest of %d octets", ErrKey, id, len(t)-trailerLen)
			}
			continue
		}
		digest, e := k.digestV3(b, a)
		if e != nil {
			return e
		}
		if subtle.ConstantTimeCompare(digest, t[trailerLen:]) == 1 {
			return r.v3(packet.PeekType(b), binary.BigEndian.Uint64(t[v3SequenceAt:]))
		}
		err = ErrDigest
	}
	return err
}
