package packet

import "encoding/binary"

// Flags of a database description (RFC 2328 section A.3.3).
const (
	FlagInit   = 0x04
	FlagMore   = 0x02
	FlagMaster = 0x01
)

// Description is a database description (RFC 2328 section A.3.3, RFC 5340 section A.3.3).
type Description struct {
	MTU      uint16
	Options  uint32
	Flags    uint8
	Sequence uint32
	Headers  []Header

	reserved [2]uint8 // OSPFv3: the octets before the options and behind the MTU, kept
}

func (*Description) packetType() Type { return TypeDescription }

// DescriptionLen is the length of a description without LSA headers, octets.
func DescriptionLen(v Version) int {
	if v == V2 {
		return 8
	}
	return 12
}

func parseDescription(v Version, b []byte) (*Description, error) {
	n := DescriptionLen(v)
	if len(b) < n {
		return nil, fault(0, "database description", "%d octets, must be at least %d (RFC 2328 section A.3.3)", len(b), n)
	}
	d := &Description{Flags: b[n-5], Sequence: binary.BigEndian.Uint32(b[n-4:])}
	if v == V2 {
		d.MTU, d.Options = binary.BigEndian.Uint16(b), uint32(b[2])
	} else {
		d.Options = binary.BigEndian.Uint32(b) & 0xFFFFFF
		d.MTU = binary.BigEndian.Uint16(b[4:])
		d.reserved = [2]uint8{b[0], b[6]}
	}
	var err error
	d.Headers, err = parseHeaders(v, b[n:])
	return d, shifted(err, n)
}

func (d *Description) append(v Version, dst []byte) []byte {
	if v == V2 {
		dst = binary.BigEndian.AppendUint16(dst, d.MTU)
		dst = append(dst, uint8(d.Options), d.Flags)
	} else {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.reserved[0])<<24|d.Options&0xFFFFFF)
		dst = binary.BigEndian.AppendUint16(dst, d.MTU)
		dst = append(dst, d.reserved[1], d.Flags)
	}
	dst = binary.BigEndian.AppendUint32(dst, d.Sequence)
	return appendHeaders(v, dst, d.Headers)
}

func parseHeaders(v Version, b []byte) ([]Header, error) {
	if len(b)%HeaderLen != 0 {
		return nil, fault(0, "LSA headers", "%d octets, must be a multiple of 20 (RFC 2328 section A.4.1)", len(b))
	}
	list := make([]Header, 0, len(b)/HeaderLen)
	for at := 0; at < len(b); at += HeaderLen {
		h, err := ParseHeader(v, b[at:])
		if err != nil {
			return nil, shifted(err, at)
		}
		list = append(list, h)
	}
	return list, nil
}

func appendHeaders(v Version, dst []byte, list []Header) []byte {
	for _, h := range list {
		dst = h.Append(v, dst)
	}
	return dst
}

// Request asks for LSAs (RFC 2328 section A.3.4, RFC 5340 section A.3.4).
type Request struct{ Keys []Key }

// RequestLen is the length of a request for one LSA, octets.
const RequestLen = 12

func (*Request) packetType() Type { return TypeRequest }

func parseRequest(v Version, b []byte) (*Request, error) {
	if len(b)%RequestLen != 0 {
		return nil, fault(0, "link state request", "%d octets, must be a multiple of 12 (RFC 2328 section A.3.4)", len(b))
	}
	r := &Request{Keys: make([]Key, 0, len(b)/RequestLen)}
	for at := 0; at < len(b); at += RequestLen {
		typ := binary.BigEndian.Uint32(b[at:])
		if limit := uint32(0xFFFF); typ > limit || v == V2 && typ > 0xFF {
			return nil, fault(at, "LS type", "%#x is no type of %s", typ, v)
		}
		r.Keys = append(r.Keys, Key{
			Type: LSType(typ),
			ID:   ID(binary.BigEndian.Uint32(b[at+4:])),
			Adv:  ID(binary.BigEndian.Uint32(b[at+8:])),
		})
	}
	return r, nil
}

func (r *Request) append(_ Version, dst []byte) []byte {
	for _, k := range r.Keys {
		dst = binary.BigEndian.AppendUint32(dst, uint32(k.Type))
		dst = binary.BigEndian.AppendUint32(dst, uint32(k.ID))
		dst = binary.BigEndian.AppendUint32(dst, uint32(k.Adv))
	}
	return dst
}

// Update carries LSAs (RFC 2328 section A.3.5).
type Update struct{ LSAs []LSA }

const updateLen = 4 // octets before the LSAs

// Updates puts LSAs into as few updates as there must be when their bodies have at most so many octets. One
// that is longer by itself goes alone, and is fragmented by IP (RFC 2328 section A.1).
func Updates(list []LSA, room int) (out []*Update) {
	size := 0
	for _, l := range list {
		if size += len(l.Raw); len(out) == 0 || size > room {
			out, size = append(out, &Update{}), updateLen+len(l.Raw)
		}
		u := out[len(out)-1]
		u.LSAs = append(u.LSAs, l)
	}
	return out
}

func (*Update) packetType() Type { return TypeUpdate }

func parseUpdate(v Version, b []byte) (*Update, error) {
	if len(b) < updateLen {
		return nil, fault(0, "link state update", "%d octets, must be at least 4 (RFC 2328 section A.3.5)", len(b))
	}
	count, at := binary.BigEndian.Uint32(b), updateLen
	if uint64(count)*HeaderLen > uint64(len(b)-at) {
		return nil, fault(0, "number of LSAs", "%d don't fit into %d octets", count, len(b)-at)
	}
	u := &Update{LSAs: make([]LSA, 0, count)}
	for range count {
		l, err := ParseLSA(v, b[at:])
		if err != nil {
			return nil, shifted(err, at)
		}
		u.LSAs = append(u.LSAs, l)
		at += len(l.Raw)
	}
	if at != len(b) {
		return nil, fault(at, "link state update", "%d octets behind the last LSA", len(b)-at)
	}
	return u, nil
}

func (u *Update) append(_ Version, dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(u.LSAs)))
	for _, l := range u.LSAs {
		dst = append(dst, l.Raw...)
	}
	return dst
}

// Ack acknowledges LSAs by their headers (RFC 2328 section A.3.6).
type Ack struct{ Headers []Header }

func (*Ack) packetType() Type { return TypeAck }

func parseAck(v Version, b []byte) (*Ack, error) {
	list, err := parseHeaders(v, b)
	return &Ack{list}, err
}

func (a *Ack) append(v Version, dst []byte) []byte { return appendHeaders(v, dst, a.Headers) }
