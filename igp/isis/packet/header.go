package packet

import "encoding/binary"

const (
	discriminator = 0x83 // intradomain routing protocol discriminator
	version       = 1
	commonLen     = 8
)

// Header is what all PDUs begin with (ISO 10589 clause 9.1), less what follows from the type.
type Header struct {
	Type PDUType
	// IDLength is the length of system IDs as coded: 0 or 6, which mean the same.
	IDLength uint8
	// MaxAreas is the maximum of area addresses as coded; 0 means 3.
	MaxAreas uint8
	// ReservedType is the three bits above the type, and Reserved the octet before MaxAreas: ignored, and
	// written back.
	ReservedType, Reserved uint8
}

// headerLen is the length of the fixed part by type.
var headerLen = map[PDUType]int{
	L1LANHello: 27, L2LANHello: 27, P2PHello: 20, L1LSP: 27, L2LSP: 27, L1CSNP: 33, L2CSNP: 33, L1PSNP: 17, L2PSNP: 17,
}

// lengthAt is where the fixed part has the length of the PDU.
func lengthAt(t PDUType) int {
	if t == L1LANHello || t == L2LANHello || t == P2PHello {
		return 17
	}
	return 8
}

// Type gives the type of the PDU that b holds, or an error when b is none that IS-IS knows.
func Type(b []byte) (PDUType, error) {
	h, _, err := parseHeader(b)
	return h.Type, err
}

// parseHeader checks the common part and the length, and gives the whole PDU without what follows it in the
// frame.
func parseHeader(b []byte) (h Header, pdu []byte, err error) {
	switch {
	case len(b) < commonLen:
		return h, nil, fault(len(b), "header", "%d octets are no PDU", len(b))
	case b[0] != discriminator:
		return h, nil, fault(0, "protocol discriminator", "is %#02x, must be %#02x (ISO 10589 clause 9.1)", b[0], discriminator)
	case b[2] != version:
		return h, nil, fault(2, "version", "is %d, must be %d", b[2], version)
	case b[3] != 0 && b[3] != 6:
		return h, nil, fault(3, "ID length", "is %d, must be 0 or 6", b[3])
	case b[5] != version:
		return h, nil, fault(5, "version", "is %d, must be %d", b[5], version)
	}
	h = Header{Type: PDUType(b[4] & 0x1F), ReservedType: b[4] &^ 0x1F, IDLength: b[3], Reserved: b[6], MaxAreas: b[7]}
	fixed, ok := headerLen[h.Type]
	switch {
	case !ok:
		return h, nil, fault(4, "PDU type", "%d is not known", h.Type)
	case int(b[1]) != fixed:
		return h, nil, fault(1, "header length", "is %d, must be %d for %s", b[1], fixed, h.Type)
	case len(b) < fixed:
		return h, nil, fault(len(b), "header", "%s has %d octets, %d are here", h.Type, fixed, len(b))
	}
	at := lengthAt(h.Type)
	length := int(binary.BigEndian.Uint16(b[at:]))
	switch {
	case length < fixed:
		return h, nil, fault(at, "PDU length", "is %d, less than the header's %d", length, fixed)
	case length > len(b):
		return h, nil, fault(at, "PDU length", "is %d, %d octets are here", length, len(b))
	}
	return h, b[:length:length], nil
}

// append writes the common part; the length is written by finish.
func (h Header) append(dst []byte) []byte {
	return append(dst, discriminator, uint8(headerLen[h.Type]), version, h.IDLength,
		uint8(h.Type)|h.ReservedType&^0x1F, version, h.Reserved, h.MaxAreas)
}

// finish appends the TLVs to the PDU that begins at start, and writes its length.
func finish(dst []byte, start int, t PDUType, tlvs TLVs) ([]byte, error) {
	dst, err := tlvs.Append(dst)
	if err != nil {
		return nil, err
	}
	length := len(dst) - start
	if length > maxPDU {
		return nil, fault(0, "PDU length", "%d octets don't fit its field", length)
	}
	binary.BigEndian.PutUint16(dst[start+lengthAt(t):], uint16(length))
	return dst, nil
}

const maxPDU = 0xFFFF

// parseTLVs reads what follows the fixed part of a PDU.
func parseTLVs(t PDUType, pdu []byte) (TLVs, error) {
	fixed := headerLen[t]
	list, err := ParseTLVs(pdu[fixed:])
	return list, shifted(err, fixed)
}

// Trim gives the PDU that b begins with, without what follows it in the frame.
func Trim(b []byte) ([]byte, error) {
	_, pdu, err := parseHeader(b)
	return pdu, err
}

// FixedLen is the length of the part before the TLVs, octets.
func FixedLen(b []byte) (int, error) {
	h, _, err := parseHeader(b)
	return headerLen[h.Type], err
}

// SetLength writes the length of a PDU that fills b, after TLVs were added or taken away.
func SetLength(b []byte) {
	at := lengthAt(PDUType(b[4] & 0x1F))
	binary.BigEndian.PutUint16(b[at:], uint16(len(b)))
}

// ZeroMutable clears what a digest leaves out: the remaining lifetime and the checksum of an LSP. Other PDUs
// are left alone.
func ZeroMutable(b []byte) {
	if t := PDUType(b[4] & 0x1F); t == L1LSP || t == L2LSP {
		clear(b[lspLifetimeAt:lspIDAt])
		clear(b[lspChecksumAt:lspFlagsAt])
	}
}
