package message

import (
	"encoding/binary"
	"math"
)

// Version is the version of the protocol.
const Version = 1

// HeaderLen is the length of a message's header, in octets.
const HeaderLen = 8

// Sequence numbers of requests (FRR, ospfd/ospf_api.h). The daemon's own messages have 0.
const (
	MinSequence uint32 = 1
	MaxSequence uint32 = math.MaxInt32
)

// Header is in front of each message.
type Header struct {
	Type     Type
	Length   uint16 // of the body, octets
	Sequence uint32
}

// ParseHeader reads the header at the begin of b.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, fault(len(b), "header", "%d octets, must be 8", len(b))
	}
	if b[0] != Version {
		return Header{}, fault(0, "version", "%d, must be 1", b[0])
	}
	return Header{Type: Type(b[1]), Length: binary.BigEndian.Uint16(b[2:]), Sequence: binary.BigEndian.Uint32(b[4:])}, nil
}

// Body is what follows the header.
type Body interface {
	Type() Type
	append(dst []byte) []byte
}

// Request is a message that a client of this package may send.
type Request interface {
	Body
	request()
}

// Message is a whole message.
type Message struct {
	Sequence uint32
	Body     Body
}

// Parse reads a message that is the whole of b. What it gives refers to b.
func Parse(b []byte) (Message, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return Message{}, err
	}
	body := b[HeaderLen:]
	if int(h.Length) != len(body) {
		return Message{}, fault(2, "length", "%d, but %d octets follow the header", h.Length, len(body))
	}
	m := Message{Sequence: h.Sequence}
	parse := parsers[h.Type]
	if parse == nil {
		m.Body = Unknown{Kind: h.Type, Octets: body}
		return m, nil
	}
	if m.Body, err = parse(body); err != nil {
		return Message{}, shifted(err)
	}
	return m, nil
}

// Append writes the message. A message without a body is refused, whatever its type: it makes ospfd abort (measured
// with FRR 8.4.4: msg_new makes a stream of the body's length, and stream_new asserts that it is not zero).
func (m Message) Append(dst []byte) ([]byte, error) {
	at := len(dst)
	dst = append(dst, Version, uint8(m.Body.Type()), 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, m.Sequence)
	dst = m.Body.append(dst)
	n := len(dst) - at - HeaderLen
	if n == 0 {
		return dst[:at], fault(2, "length", "0 for %s, must be more: an empty body makes ospfd abort", m.Body.Type())
	}
	if n > math.MaxUint16 {
		return dst[:at], fault(2, "length", "%d for %s, at most 65535", n, m.Body.Type())
	}
	binary.BigEndian.PutUint16(dst[at+2:], uint16(n))
	return dst, nil
}

// Unknown is a message of a type that this package has no fields for.
type Unknown struct {
	Kind   Type
	Octets []byte
}

// Type gives the message's type.
func (u Unknown) Type() Type               { return u.Kind }
func (u Unknown) append(dst []byte) []byte { return append(dst, u.Octets...) }
