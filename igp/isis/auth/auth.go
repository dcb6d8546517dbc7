// Package auth authenticates IS-IS PDUs: HMAC-MD5 (RFC 5304) and HMAC with SHA-1 and SHA-2 (RFC 5310).
//
// It is pure. Which keys count on which circuit and level is decided by who makes the chains. Clear-text
// passwords are not supported.
package auth

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"pncd/igp/isis/packet"
	"pncd/igp/keys"
)

// Algorithm is how a digest is made.
type Algorithm uint8

// The algorithms.
const (
	HMACMD5  Algorithm = iota + 1 // RFC 5304
	HMACSHA1                      // RFC 5310, and so on
	HMACSHA224
	HMACSHA256
	HMACSHA384
	HMACSHA512
)

var algorithms = map[Algorithm]struct {
	name string
	make func() hash.Hash
	size int
}{
	HMACMD5:    {"hmac-md5", md5.New, md5.Size},
	HMACSHA1:   {"hmac-sha-1", sha1.New, sha1.Size},
	HMACSHA224: {"hmac-sha-224", sha256.New224, sha256.Size224},
	HMACSHA256: {"hmac-sha-256", sha256.New, sha256.Size},
	HMACSHA384: {"hmac-sha-384", sha512.New384, sha512.Size384},
	HMACSHA512: {"hmac-sha-512", sha512.New, sha512.Size},
}

// String gives the name that ParseAlgorithm reads.
func (a Algorithm) String() string { return algorithms[a].name }

// ParseAlgorithm reads a name, as in hmac-sha-256.
func ParseAlgorithm(s string) (Algorithm, error) {
	var names []string
	for a, v := range algorithms {
		if v.name == s {
			return a, nil
		}
		names = append(names, v.name)
	}
	slices.Sort(names)
	return 0, fmt.Errorf("isis: authentication algorithm %q is none of %s", s, strings.Join(names, ", "))
}

// Authentication types in TLV 10.
const (
	typeCrypto = 3  // RFC 5310
	typeMD5    = 54 // RFC 5304
)

// Key is one secret.
type Key struct {
	ID        uint16 // RFC 5310 alone
	Algorithm Algorithm
	Secret    string
}

// String names the key without its secret.
func (k Key) String() string { return fmt.Sprintf("%s key %d", k.Algorithm, k.ID) }

// Chain is the keys of a circuit or a level. The zero chain neither adds nor asks for authentication.
type Chain struct {
	Send   Key   // no Algorithm: nothing is added
	Accept []Key // Send is not among them by itself; none: everything is accepted
}

// Why a PDU is refused.
var (
	ErrMissing = errors.New("isis: the PDU has no authentication TLV")
	ErrType    = errors.New("isis: the PDU is authenticated in another way")
	ErrKey     = errors.New("isis: the PDU is authenticated with an unknown key")
	ErrDigest  = errors.New("isis: the digest is wrong")
	ErrPurge   = errors.New("isis: the purge holds TLVs that a purge must not have (RFC 6233)")
)

// overhead is the length of the TLV, octets.
func (k Key) overhead() int {
	size := algorithms[k.Algorithm].size
	if k.Algorithm == HMACMD5 {
		return 3 + size
	}
	return 5 + size
}

// Overhead is how many octets Sign adds to a PDU.
func (c Chain) Overhead() int {
	if c.Send.Algorithm == 0 {
		return 0
	}
	return c.Send.overhead()
}

// Sign gives the PDU with the authentication TLV as its first. The PDU has none yet, and nothing follows it.
// An LSP's checksum is to be computed afterwards.
func (c Chain) Sign(pdu []byte) ([]byte, error) {
	if c.Send.Algorithm == 0 {
		return pdu, nil
	}
	fixed, err := packet.FixedLen(pdu)
	if err != nil {
		return nil, err
	}
	k := c.Send
	tlv := make([]byte, k.overhead())
	tlv[0], tlv[1], tlv[2] = packet.TLVAuthentication, uint8(len(tlv)-2), typeMD5
	if k.Algorithm != HMACMD5 {
		tlv[2] = typeCrypto
		binary.BigEndian.PutUint16(tlv[3:], k.ID)
	}
	out := slices.Concat(pdu[:fixed], tlv, pdu[fixed:])
	packet.SetLength(out)
	at := fixed + len(tlv) - algorithms[k.Algorithm].size
	copy(out[at:], k.digest(out, at))
	return out, nil
}

// digest computes the digest of a PDU with room for it at an offset.
func (k Key) digest(pdu []byte, at int) []byte {
	a := algorithms[k.Algorithm]
	covered := slices.Clone(pdu)
	packet.ZeroMutable(covered) // RFC 5304 section 2, RFC 5310 section 3.4: lifetime and checksum of an LSP
	room := covered[at : at+a.size]
	clear(room)
	if k.Algorithm != HMACMD5 {
		keys.FillApad(room)
		return keys.HMAC(a.make, []byte(k.Secret), covered)
	}
	h := hmac.New(a.make, []byte(k.Secret)) // RFC 5304 section 2: plain HMAC
	h.Write(covered)
	return h.Sum(nil)
}

// Verify says whether the PDU is authenticated with one of the keys to accept, and why not. What follows the
// PDU is ignored.
func (c Chain) Verify(b []byte) error {
	if len(c.Accept) == 0 {
		return nil
	}
	pdu, err := packet.Trim(b)
	if err != nil {
		return err
	}
	fixed, err := packet.FixedLen(pdu)
	if err != nil {
		return err
	}
	list, err := packet.ParseTLVs(pdu[fixed:])
	if err != nil {
		return err
	}
	at := fixed
	for _, t := range list {
		if t.Type == packet.TLVAuthentication {
			if err := c.verify(pdu, at+2, t.Value); err != nil {
				return err
			}
			return checkPurge(pdu, list)
		}
		at += 2 + len(t.Value)
	}
	return ErrMissing
}

// verify tries the keys that the TLV's value, at an offset, can be of.
func (c Chain) verify(pdu []byte, at int, value []byte) error {
	if len(value) == 0 || value[0] != typeMD5 && value[0] != typeCrypto {
		return ErrType
	}
	err := ErrType
	for _, k := range c.Accept {
		head := 1
		if k.Algorithm != HMACMD5 {
			head = 3
		}
		if (value[0] == typeMD5) != (k.Algorithm == HMACMD5) {
			continue
		}
		if len(value) != head+algorithms[k.Algorithm].size || head == 3 && binary.BigEndian.Uint16(value[1:]) != k.ID {
			if err == ErrType {
				err = ErrKey
			}
			continue
		}
		if hmac.Equal(k.digest(pdu, at+head), value[head:]) {
			return nil
		}
		err = ErrDigest
	}
	return err
}

// checkPurge keeps somebody from making a purge of a recorded LSP by setting its lifetime, which the digest
// leaves out, to zero: a purge that is authenticated holds nothing that an LSP that lives holds.
func checkPurge(pdu []byte, list packet.TLVs) error {
	p, err := packet.ParseLSP(pdu)
	if err != nil || p.Lifetime != 0 {
		return nil // no LSP, or one that lives
	}
	for _, t := range list {
		switch t.Type {
		case packet.TLVAuthentication, packet.TLVPurgeOriginator, packet.TLVDynamicHostname:
		default:
			return ErrPurge
		}
	}
	return nil
}
