package auth

import (
	"crypto/md5"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"time"

	"pncd/igp/ospf/packet"
)

// Where the authentication field has the parts of cryptographic authentication (RFC 2328 section D.3).
const (
	keyIDAt      = authAt + 2
	digestLenAt  = authAt + 3
	v2SequenceAt = authAt + 4
)

// password gives the authentication field of a simple password, padded with zeros.
func (k Key) password() []byte {
	field := make([]byte, maxPassword)
	copy(field, k.Secret)
	return field
}

// digestV2 computes the digest of a packet, which does not follow it yet.
func (k Key) digestV2(pkt []byte, a Addresses) ([]byte, error) {
	covered := make([]byte, len(pkt), len(pkt)+algorithms[k.Algorithm].size)
	copy(covered, pkt)
	if k.Algorithm == MD5 { // RFC 2328 section D.4.3: the key padded to 16 octets is put behind the packet
		secret := make([]byte, maxMD5)
		copy(secret, k.Secret)
		sum := md5.Sum(append(covered, secret...))
		return sum[:], nil
	}
	var source []byte
	if k.BindSource {
		from := a.Source.Unmap()
		if !from.Is4() {
			return nil, fmt.Errorf("%w: source %s, must be IPv4 (RFC 7474 section 5)", ErrAddress, a.Source)
		}
		source = from.AsSlice()
	}
	return k.hmac([]byte(k.Secret), covered[:cap(covered)], source), nil
}

// sealV2 finishes a packet whose checksum is 0.
func (k Key) sealV2(b, lls []byte, a Addresses, s *Sequence, now time.Time) ([]byte, error) {
	clear(b[auTypeAt:v2HeaderLen])
	switch k.Algorithm {
	case Null, Simple:
		if k.Algorithm == Simple {
			binary.BigEndian.PutUint16(b[auTypeAt:], packet.AuthSimple)
		}
		binary.BigEndian.PutUint16(b[checksumAt:], checksumV2(b))
		if k.Algorithm == Simple {
			copy(b[authAt:], k.password())
		}
		return append(b, lls...), nil
	}
	binary.BigEndian.PutUint16(b[auTypeAt:], packet.AuthCryptographic)
	b[keyIDAt], b[digestLenAt] = uint8(k.ID), uint8(algorithms[k.Algorithm].size)
	binary.BigEndian.PutUint32(b[v2SequenceAt:], s.v2(now))
	digest, err := k.digestV2(b, a)
	if err != nil {
		return nil, err
	}
	return append(append(b, digest...), lls...), nil
}

func (c Chain) verifyV2(b []byte, a Addresses, r *Replay) ([]byte, error) {
	length := packet.Length(b)
	pkt, behind := b[:length], b[length:]
	switch typ := binary.BigEndian.Uint16(b[auTypeAt:]); typ {
	case packet.AuthNull:
		if !c.acceptsNull() {
			return nil, ErrMissing
		}
		return behind, checkV2(pkt)
	case packet.AuthSimple:
		if err := c.verifyPassword(pkt); err != nil {
			return nil, err
		}
		return behind, checkV2(pkt)
	case packet.AuthCryptographic:
		return c.verifyDigestV2(pkt, behind, a, r)
	default:
		return nil, fmt.Errorf("%w: type %d", ErrType, typ)
	}
}

func checkV2(pkt []byte) error {
	if !checksumV2OK(pkt) {
		return ErrChecksum
	}
	return nil
}

func (c Chain) verifyPassword(pkt []byte) error {
	err := fmt.Errorf("%w: simple password", ErrType)
	for _, k := range c.accept() {
		if k.Algorithm != Simple || k.check(packet.V2) != nil {
			continue
		}
		if subtle.ConstantTimeCompare(k.password(), pkt[authAt:v2HeaderLen]) == 1 {
			return nil
		}
		err = ErrPassword
	}
	return err
}

// verifyDigestV2 tries the keys whose ID and length the header names.
func (c Chain) verifyDigestV2(pkt, behind []byte, a Addresses, r *Replay) ([]byte, error) {
	id, size := uint16(pkt[keyIDAt]), int(pkt[digestLenAt])
	if size > len(behind) {
		return nil, fmt.Errorf("%w: %d octets, but the digest has %d (RFC 2328 section D.3)", ErrTrailer, len(behind), size)
	}
	err := fmt.Errorf("%w: cryptographic", ErrType)
	for _, k := range c.accept() {
		if k.check(packet.V2) != nil || algorithms[k.Algorithm].size == 0 {
			continue
		}
		if k.ID != id || algorithms[k.Algorithm].size != size {
			if err != ErrDigest {
				err = fmt.Errorf("%w: key ID %d, a digest of %d octets", ErrKey, id, size)
			}
			continue
		}
		digest, e := k.digestV2(pkt, a)
		if e != nil {
			return nil, e
		}
		if subtle.ConstantTimeCompare(digest, behind[:size]) != 1 {
			err = ErrDigest
			continue
		}
		if err := r.v2(binary.BigEndian.Uint32(pkt[v2SequenceAt:])); err != nil {
			return nil, err
		}
		return behind[size:], nil
	}
	return nil, err
}
