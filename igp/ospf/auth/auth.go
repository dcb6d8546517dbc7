// Package auth makes and checks what keeps an OSPF packet whole and genuine: the checksums of OSPFv2 (RFC 2328
// section D.4) and OSPFv3 (RFC 5340 section A.3.1); null, simple password and MD5 authentication of OSPFv2
// (RFC 2328 appendix D), HMAC-SHA of OSPFv2 (RFC 5709, RFC 7474 section 5); the authentication trailer of
// OSPFv3 (RFC 7166).
//
// It is pure. Which keys count on which interface is decided by who makes the chains; who keeps a Replay for
// each neighbour forgets it with the neighbour.
//
// Not done: the authentication type 3 of RFC 7474 (extended sequence numbers), which is refused like any
// unknown type; the authentication of link-local signalling with OSPFv2 (RFC 5613 section 2.5): a block
// behind the digest is handed on, but nobody vouches for it; IPsec (RFC 4552).
package auth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"pncd/igp/ospf/packet"
)

// Chain is the keys of an interface. The zero chain is null authentication in both directions.
type Chain struct {
	Send Key
	// Accept are the keys that a received packet may have; Send is not among them by itself. The zero key
	// stands for null authentication. None: null authentication alone.
	Accept []Key
}

// Addresses are those of the IP header, without zones. OSPFv2 needs the source for keys that bind it; OSPFv3
// needs the source for the authentication trailer, both for the checksum.
type Addresses struct {
	Source, Destination netip.Addr
}

// Why a packet is refused. Errors of Verify wrap one of them.
var (
	ErrPacket   = errors.New("ospf: packet header")
	ErrChecksum = errors.New("ospf: the checksum is wrong (RFC 2328 section D.4, RFC 5340 section A.3.1)")
	ErrMissing  = errors.New("ospf: the packet is not authenticated, but must be (RFC 2328 section D.5, RFC 7166 section 2.1)")
	ErrType     = errors.New("ospf: the packet is authenticated in another way (RFC 2328 section D.5)")
	ErrPassword = errors.New("ospf: the password is wrong (RFC 2328 section D.5.2)")
	ErrKey      = errors.New("ospf: the packet is authenticated with an unknown key (RFC 2328 section D.5.3, RFC 7166 section 4.6)")
	ErrDigest   = errors.New("ospf: the digest is wrong (RFC 2328 section D.5.3, RFC 7166 section 4.6)")
	ErrReplay   = errors.New("ospf: the sequence number goes back (RFC 2328 section D.5.3, RFC 7166 section 4.6)")
	ErrTrailer  = errors.New("ospf: what follows the packet")
	ErrAddress  = errors.New("ospf: address of the IP header")
)

// Check says what makes a chain unfit for a version of OSPF.
func (c Chain) Check(v packet.Version) error {
	if err := c.Send.check(v); err != nil {
		return err
	}
	for _, k := range c.Accept {
		if err := k.check(v); err != nil {
			return err
		}
	}
	return nil
}

// Overhead is how many octets Seal puts behind a packet's length.
func (c Chain) Overhead(v packet.Version) int {
	size := algorithms[c.Send.Algorithm].size
	if v == packet.V3 && size > 0 {
		size += trailerLen
	}
	return size
}

// Seal writes a packet as it goes on the wire: with its checksum, authentication type, AT option and digest,
// whatever the packet says of them. Its Trailer is empty or a block of link-local signalling, which is put
// where it belongs. The sequence number is taken when the key asks for one.
func (c Chain) Seal(p *packet.Packet, a Addresses, s *Sequence, now time.Time) ([]byte, error) {
	if err := c.Send.check(p.Version); err != nil {
		return nil, err
	}
	plain := *p
	plain.Trailer = nil
	b := plain.Append(nil)
	if n := len(b) + len(p.Trailer) + c.Overhead(p.Version); n > 0xFFFF {
		return nil, fmt.Errorf("%w: %d octets with what follows, must be at most 65535", ErrPacket, n)
	}
	clear(b[checksumAt : checksumAt+2])
	if p.Version == packet.V2 {
		return c.Send.sealV2(b, p.Trailer, a, s, now)
	}
	return c.Send.sealV3(b, p.Trailer, a, s, now)
}

// Verify says why a packet, from the OSPF header to the end of the IP payload, is refused: its checksum is
// wrong, it is authenticated with none of the keys to accept, or it was sent before (Replay, nil where the
// neighbour is not known yet). It gives the block of link-local signalling, which refers to the input and is
// not authenticated with OSPFv2.
func (c Chain) Verify(v packet.Version, b []byte, a Addresses, r *Replay) (lls []byte, err error) {
	if err := packet.Check(v, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPacket, err)
	}
	if r == nil {
		r = &Replay{}
	}
	if v == packet.V2 {
		return c.verifyV2(b, a, r)
	}
	return c.verifyV3(b, a, r)
}

// accept are the keys to try.
func (c Chain) accept() []Key {
	if len(c.Accept) == 0 {
		return []Key{{}}
	}
	return c.Accept
}

// acceptsNull reports whether a packet may come without authentication.
func (c Chain) acceptsNull() bool {
	for _, k := range c.accept() {
		if k.Algorithm == Null {
			return true
		}
	}
	return false
}

// Where the header has its fields (RFC 2328 section A.3.1, RFC 5340 section A.3.1).
const (
	checksumAt  = 12
	auTypeAt    = 14 // OSPFv2
	authAt      = 16 // OSPFv2
	v2HeaderLen = 24
)

// optionsAt is where a hello or description has its options, one octet in OSPFv2, three in OSPFv3; 0 for the
// other types, which carry none.
func optionsAt(v packet.Version, b []byte) int {
	switch t := packet.PeekType(b); {
	case v == packet.V2 && t == packet.TypeHello:
		return 30
	case v == packet.V2 && t == packet.TypeDescription:
		return 26
	case t == packet.TypeHello:
		return 21
	case t == packet.TypeDescription:
		return 17
	}
	return 0
}

// options gives the options of a raw packet, 0 where they are not there.
func options(v packet.Version, b []byte) uint32 {
	at := optionsAt(v, b)
	switch {
	case at == 0:
	case v == packet.V2 && len(b) > at:
		return uint32(b[at])
	case v == packet.V3 && len(b) >= at+3:
		return binary.BigEndian.Uint32(b[at-1:]) & 0xFFFFFF
	}
	return 0
}
