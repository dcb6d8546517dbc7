package packet

import "encoding/binary"

// Options that hellos, descriptions and LSAs carry (RFC 2328 section A.2, RFC 5340 section A.2, RFC 5250,
// RFC 5613). OSPFv2 has one octet of them, OSPFv3 three.
const (
	OptionE = 0x02  // external LSAs are taken: no stub area
	OptionN = 0x08  // NSSA (RFC 3101): in hellos
	V2OptL  = 0x10  // a block of link-local signalling follows
	V2OptO  = 0x40  // opaque LSAs; in descriptions only
	V3OptV6 = 0x01  // the router may be used for IPv6 routing
	V3OptR  = 0x10  // the router forwards
	V3OptAT = 0x400 // an authentication trailer follows (RFC 7166)
	V3OptL  = 0x200 // a block of link-local signalling follows
)

// Hello is the packet that finds neighbours (RFC 2328 section A.3.2, RFC 5340 section A.3.2).
type Hello struct {
	Mask      uint32 // OSPFv2: of the network
	Interface uint32 // OSPFv3: the sender's interface ID
	Options   uint32 // one octet in OSPFv2, three in OSPFv3
	Priority  uint8
	Interval  uint16 // seconds
	Dead      uint32 // seconds; 16 bits in OSPFv3
	DR, BDR   ID     // OSPFv2: interface addresses; OSPFv3: router IDs
	Neighbors []ID
}

// HelloLen is the length of a hello without neighbours, octets, in both versions. Each neighbour takes four more.
const HelloLen = 20

func (*Hello) packetType() Type { return TypeHello }

func parseHello(v Version, b []byte) (*Hello, error) {
	if len(b) < HelloLen || (len(b)-HelloLen)%4 != 0 {
		return nil, fault(0, "hello", "%d octets, must be 20 and 4 for each neighbour (RFC 2328 section A.3.2)", len(b))
	}
	h := &Hello{
		DR:  ID(binary.BigEndian.Uint32(b[12:])),
		BDR: ID(binary.BigEndian.Uint32(b[16:])),
	}
	if v == V2 {
		h.Mask = binary.BigEndian.Uint32(b)
		h.Interval = binary.BigEndian.Uint16(b[4:])
		h.Options, h.Priority = uint32(b[6]), b[7]
		h.Dead = binary.BigEndian.Uint32(b[8:])
	} else {
		h.Interface = binary.BigEndian.Uint32(b)
		h.Priority, h.Options = b[4], binary.BigEndian.Uint32(b[4:])&0xFFFFFF
		h.Interval = binary.BigEndian.Uint16(b[8:])
		h.Dead = uint32(binary.BigEndian.Uint16(b[10:]))
	}
	h.Neighbors = parseIDs(b[HelloLen:])
	return h, nil
}

func (h *Hello) append(v Version, dst []byte) []byte {
	if v == V2 {
		dst = binary.BigEndian.AppendUint32(dst, h.Mask)
		dst = binary.BigEndian.AppendUint16(dst, h.Interval)
		dst = append(dst, uint8(h.Options), h.Priority)
		dst = binary.BigEndian.AppendUint32(dst, h.Dead)
	} else {
		dst = binary.BigEndian.AppendUint32(dst, h.Interface)
		dst = binary.BigEndian.AppendUint32(dst, uint32(h.Priority)<<24|h.Options&0xFFFFFF)
		dst = binary.BigEndian.AppendUint16(dst, h.Interval)
		dst = binary.BigEndian.AppendUint16(dst, uint16(h.Dead))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.DR))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.BDR))
	for _, n := range h.Neighbors {
		dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	}
	return dst
}
