package packet

import "encoding/binary"

// Levels are the low two bits of a hello's circuit type.
const (
	Level1  = 1
	Level2  = 2
	Level12 = 3
)

// Hello is an IS to IS hello: of a LAN (ISO 10589 clauses 9.5 and 9.6) or point-to-point (clause 9.7).
type Hello struct {
	Header
	CircuitType uint8 // Level1, Level2 or Level12; the other bits are reserved, and kept
	Source      SystemID
	HoldingTime uint16 // seconds
	Priority    uint8  // LAN: the low seven bits; the other one is reserved, and kept
	LANID       NodeID // LAN
	CircuitID   uint8  // point-to-point: the sender's local circuit ID
	TLVs        TLVs
}

// ParseHello reads a hello. What follows the PDU in b is ignored: frames are padded.
func ParseHello(b []byte) (Hello, error) {
	h, pdu, err := parseHeader(b)
	if err != nil {
		return Hello{}, err
	}
	p := Hello{Header: h}
	if h.Type != L1LANHello && h.Type != L2LANHello && h.Type != P2PHello {
		return Hello{}, fault(4, "PDU type", "%s is no hello", h.Type)
	}
	p.CircuitType = pdu[8]
	p.Source = SystemID(pdu[9:15])
	p.HoldingTime = binary.BigEndian.Uint16(pdu[15:])
	if p.CircuitType&Level12 == 0 {
		return Hello{}, fault(8, "circuit type", "0 is reserved: the PDU is ignored (ISO 10589 clause 9.5)")
	}
	if h.Type == P2PHello {
		p.CircuitID = pdu[19]
	} else {
		p.Priority = pdu[19]
		p.LANID = NodeID(pdu[20:27])
	}
	p.TLVs, err = parseTLVs(h.Type, pdu)
	return p, err
}

// Append writes the hello.
func (p Hello) Append(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = p.append(dst)
	dst = append(dst, p.CircuitType)
	dst = append(dst, p.Source[:]...)
	dst = binary.BigEndian.AppendUint16(dst, p.HoldingTime)
	dst = append(dst, 0, 0)
	switch p.Type {
	case P2PHello:
		dst = append(dst, p.CircuitID)
	case L1LANHello, L2LANHello:
		dst = append(dst, p.Priority)
		dst = append(dst, p.LANID[:]...)
	default:
		return nil, fault(4, "PDU type", "%s is no hello", p.Type)
	}
	return finish(dst, start, p.Type, p.TLVs)
}
