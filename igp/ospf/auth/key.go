package auth

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"slices"
	"strings"

	"pncd/igp/keys"
	"pncd/igp/ospf/packet"
)

// Algorithm is how a packet is authenticated.
type Algorithm uint8

// The algorithms.
const (
	Null     Algorithm = iota
	Simple             // OSPFv2: a password in clear text (RFC 2328 section D.2)
	MD5                // OSPFv2: keyed MD5, no HMAC (RFC 2328 section D.3)
	HMACSHA1           // OSPFv2: RFC 5709; OSPFv3: RFC 7166; and so on
	HMACSHA256
	HMACSHA384
	HMACSHA512
)

var algorithms = [...]struct {
	name string
	make func() hash.Hash
	size int // octets of the digest
}{
	Null:       {"null", nil, 0},
	Simple:     {"simple", nil, 0},
	MD5:        {"md5", md5.New, md5.Size},
	HMACSHA1:   {"hmac-sha-1", sha1.New, sha1.Size},
	HMACSHA256: {"hmac-sha-256", sha256.New, sha256.Size},
	HMACSHA384: {"hmac-sha-384", sha512.New384, sha512.Size384},
	HMACSHA512: {"hmac-sha-512", sha512.New, sha512.Size},
}

// String gives the name that ParseAlgorithm reads.
func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a].name
	}
	return fmt.Sprintf("algorithm-%d", uint8(a))
}

// ParseAlgorithm reads a name, as in hmac-sha-256.
func ParseAlgorithm(s string) (Algorithm, error) {
	var names []string
	for a, v := range algorithms {
		if v.name == s {
			return Algorithm(a), nil
		}
		names = append(names, v.name)
	}
	slices.Sort(names)
	return 0, fmt.Errorf("ospf: authentication algorithm %q is none of %s", s, strings.Join(names, ", "))
}

// Lengths that RFC 2328 sets, in octets.
const (
	maxPassword = 8  // section D.2
	maxMD5      = 16 // section D.3
)

// Key is one secret. The zero key is null authentication.
type Key struct {
	ID        uint16 // OSPFv2: key ID, 0 to 255, with a digest alone; OSPFv3: security association ID
	Algorithm Algorithm
	Secret    string
	// BindSource puts the IP source address into the digest of OSPFv2's HMAC-SHA (RFC 7474 section 5), so
	// that a packet can't be replayed from another address. Both ends must do the same. OSPFv3 always does.
	BindSource bool
	// SwapProtocolID swaps the octets of the cryptographic protocol ID that OSPFv3 puts behind the secret
	// (RFC 7166 section 4.5): ospf6d of FRR 8.4.4 was seen to do so on a little-endian machine. BIRD
	// 2 keeps to the RFC.
	SwapProtocolID bool
}

// String names the key without its secret.
func (k Key) String() string { return fmt.Sprintf("%s key %d", k.Algorithm, k.ID) }

// check says what makes the key unfit for a version.
func (k Key) check(v packet.Version) error {
	switch {
	case int(k.Algorithm) >= len(algorithms):
		return fmt.Errorf("ospf: key %d: %s is not known", k.ID, k.Algorithm)
	case k.Algorithm == Null:
		return nil
	case v == packet.V3 && k.Algorithm < HMACSHA1:
		return fmt.Errorf("ospf: %s: OSPFv3 has HMAC-SHA alone (RFC 7166 section 4.1)", k)
	case k.Secret == "":
		return fmt.Errorf("ospf: %s: the secret is empty", k)
	case v == packet.V2 && k.ID > 0xFF:
		return fmt.Errorf("ospf: %s: the key ID must be at most 255 (RFC 2328 section D.3)", k)
	case k.Algorithm == Simple && len(k.Secret) > maxPassword:
		return fmt.Errorf("ospf: %s: %d octets, a password has at most %d (RFC 2328 section D.2)", k, len(k.Secret), maxPassword)
	case k.Algorithm == MD5 && len(k.Secret) > maxMD5:
		return fmt.Errorf("ospf: %s: %d octets, a secret for MD5 has at most %d (RFC 2328 section D.3)", k, len(k.Secret), maxMD5)
	case k.BindSource && (v != packet.V2 || k.Algorithm < HMACSHA1):
		return fmt.Errorf("ospf: %s: only HMAC-SHA of OSPFv2 leaves a choice whether to bind the source address (RFC 7474 section 5)", k)
	case k.SwapProtocolID && v != packet.V3:
		return fmt.Errorf("ospf: %s: only OSPFv3 has a protocol ID to swap (RFC 7166 section 4.5)", k)
	}
	return nil
}

// hmac gives the digest of HMAC-SHA: covered ends with the room for it, which is overwritten with Apad, its first octets with
// the source address.
func (k Key) hmac(secret, covered, source []byte) []byte {
	a := algorithms[k.Algorithm]
	room := covered[len(covered)-a.size:]
	keys.FillApad(room)
	copy(room, source)
	return keys.HMAC(a.make, secret, covered)
}
