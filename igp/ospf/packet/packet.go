package packet

import (
	"encoding/binary"
	"fmt"
)

// Type is a packet's (RFC 2328 section A.3.1).
type Type uint8

// The five types.
const (
	TypeHello       Type = 1
	TypeDescription Type = 2
	TypeRequest     Type = 3
	TypeUpdate      Type = 4
	TypeAck         Type = 5
)

var typeNames = [...]string{TypeHello: "hello", TypeDescription: "database-description", TypeRequest: "ls-request", TypeUpdate: "ls-update", TypeAck: "ls-acknowledgment"}

// String gives the type's name, as counters use it.
func (t Type) String() string {
	if t >= TypeHello && t <= TypeAck {
		return typeNames[t]
	}
	return fmt.Sprintf("type-%d", uint8(t))
}

// Authentication types of OSPFv2 (RFC 2328 appendix D).
const (
	AuthNull          uint16 = 0
	AuthSimple        uint16 = 1
	AuthCryptographic uint16 = 2
)

// Lengths of the common header, in octets.
const (
	v2HeaderLen = 24
	v3HeaderLen = 16
)

// Where the common header has its fields.
const (
	headerTypeAt     = 1
	headerLengthAt   = 2
	headerRouterAt   = 4
	headerAreaAt     = 8
	headerChecksumAt = 12
	headerAuTypeAt   = 14 // OSPFv2
	headerAuthAt     = 16 // OSPFv2
	headerInstanceAt = 14 // OSPFv3
)

// Body is what a packet says: *Hello, *Description, *Request, *Update or *Ack.
type Body interface {
	packetType() Type
	append(v Version, dst []byte) []byte
}

// Packet is one OSPF packet.
type Packet struct {
	Version  Version
	Router   ID
	Area     ID
	Checksum uint16 // as received; Append writes it as it is
	AuType   uint16 // OSPFv2
	Auth     uint64 // OSPFv2: the header's authentication field
	Instance uint8  // OSPFv3: instance ID
	reserved uint8  // OSPFv3: the octet behind it, kept

	Body Body
	// Trailer is what follows the packet's length: a digest, an authentication trailer or a block of
	// link-local signalling (RFC 5613), as it is.
	Trailer []byte
}

// Type gives the type of the packet's body.
func (p *Packet) Type() Type { return p.Body.packetType() }

// HeaderLen is the length of a packet's header, octets.
func (v Version) HeaderLen() int {
	if v == V2 {
		return v2HeaderLen
	}
	return v3HeaderLen
}

// PeekType gives the type of a raw packet, 0 where there is none to read.
func PeekType(b []byte) Type {
	if len(b) <= headerTypeAt {
		return 0
	}
	return Type(b[headerTypeAt])
}

// PeekRouter gives the router ID of a raw packet that Check takes.
func PeekRouter(b []byte) ID { return ID(binary.BigEndian.Uint32(b[headerRouterAt:])) }

// Length gives the length field of a raw packet that Check takes: without trailer.
func Length(b []byte) int { return int(binary.BigEndian.Uint16(b[headerLengthAt:])) }

// Check holds a raw packet to what every packet's header must say: version, length and type.
func Check(v Version, b []byte) error {
	n := v.HeaderLen()
	if len(b) < n {
		return fault(len(b), "packet", "%d octets, must be at least %d (RFC 2328 section A.3.1)", len(b), n)
	}
	if Version(b[0]) != v {
		return fault(0, "version", "%d, must be %d", b[0], v)
	}
	if length := Length(b); length < n || length > len(b) {
		return fault(headerLengthAt, "packet length", "%d, must be %d to %d, the octets that are there", length, n, len(b))
	}
	if t := PeekType(b); t < TypeHello || t > TypeAck {
		return fault(headerTypeAt, "packet type", "%d, must be 1 to 5 (RFC 2328 section A.3.1)", t)
	}
	return nil
}

// Parse reads a packet, from the OSPF header on. It looks neither at the checksum nor at authentication.
func Parse(v Version, b []byte) (*Packet, error) {
	if err := Check(v, b); err != nil {
		return nil, err
	}
	n, length := v.HeaderLen(), Length(b)
	p := &Packet{
		Version:  v,
		Router:   ID(binary.BigEndian.Uint32(b[headerRouterAt:])),
		Area:     ID(binary.BigEndian.Uint32(b[headerAreaAt:])),
		Checksum: binary.BigEndian.Uint16(b[headerChecksumAt:]),
		Trailer:  b[length:],
	}
	if v == V2 {
		p.AuType = binary.BigEndian.Uint16(b[headerAuTypeAt:])
		p.Auth = binary.BigEndian.Uint64(b[headerAuthAt:])
	} else {
		p.Instance, p.reserved = b[headerInstanceAt], b[headerInstanceAt+1]
	}
	var err error
	body := b[n:length]
	switch PeekType(b) {
	case TypeHello:
		p.Body, err = parseHello(v, body)
	case TypeDescription:
		p.Body, err = parseDescription(v, body)
	case TypeRequest:
		p.Body, err = parseRequest(v, body)
	case TypeUpdate:
		p.Body, err = parseUpdate(v, body)
	case TypeAck:
		p.Body, err = parseAck(v, body)
	}
	if err != nil {
		return nil, shifted(err, n)
	}
	return p, nil
}

// Append writes the packet with the checksum and the authentication that it has.
func (p *Packet) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, uint8(p.Version), uint8(p.Type()), 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Router))
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Area))
	dst = binary.BigEndian.AppendUint16(dst, p.Checksum)
	if p.Version == V2 {
		dst = binary.BigEndian.AppendUint16(dst, p.AuType)
		dst = binary.BigEndian.AppendUint64(dst, p.Auth)
	} else {
		dst = append(dst, p.Instance, p.reserved)
	}
	dst = p.Body.append(p.Version, dst)
	binary.BigEndian.PutUint16(dst[start+headerLengthAt:], uint16(len(dst)-start))
	return append(dst, p.Trailer...)
}
