package packet

import "encoding/binary"

// TLV is a TLV or sub-TLV: a type of two octets, a length of two, and the value padded to whole words
// (RFC 3630 section 2.3.2, RFC 7684, RFC 8362 section 3).
type TLV struct {
	Type  uint16
	Value []byte // without padding
}

// ParseTLVs reads TLVs to the end of b. Padding that is missing at the very end is let pass; padding that
// isn't zero is lost, which no checksum of ours covers: LSAs are kept whole besides.
func ParseTLVs(b []byte) ([]TLV, error) {
	var list []TLV
	for at := 0; at < len(b); {
		if len(b)-at < 4 {
			return nil, fault(at, "TLV", "%d octets are left, must be at least 4 (RFC 3630 section 2.3.2)", len(b)-at)
		}
		n := int(binary.BigEndian.Uint16(b[at+2:]))
		if n > len(b)-at-4 {
			return nil, fault(at+2, "TLV length", "%d, but %d octets are left", n, len(b)-at-4)
		}
		list = append(list, TLV{binary.BigEndian.Uint16(b[at:]), b[at+4 : at+4+n]})
		at += 4 + padded(n)
	}
	return list, nil
}

func padded(n int) int { return (n + 3) &^ 3 }

// AppendTLV writes a TLV with its padding.
func AppendTLV(dst []byte, t TLV) []byte {
	dst = binary.BigEndian.AppendUint16(dst, t.Type)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(t.Value)))
	dst = append(dst, t.Value...)
	return append(dst, make([]byte, padded(len(t.Value))-len(t.Value))...)
}

// Sub-TLV types: of the Extended Prefix TLV of OSPFv2 (IANA: OSPFv2 Extended Prefix TLV Sub-TLVs) and of the
// prefix TLVs of OSPFv3 (IANA: OSPFv3 Extended-LSA Sub-TLVs).
const (
	V2SubSourceRouterID   uint16 = 4  // RFC 9084
	V2SubSourceRouterAddr uint16 = 5  // RFC 9084
	V2SubPrefixFlags      uint16 = 11 // RFC 9792
	V3SubSourceRouterID   uint16 = 27 // RFC 9084
	V3SubSourceRouterAddr uint16 = 28 // RFC 9084
	V3SubPrefixFlags      uint16 = 37 // RFC 9792
)

// FlagBit says whether a bit of Prefix Extended Flags is set: bit 0 is the most significant one of the first
// octet, and what is not there is zero (RFC 9792 section 2).
func FlagBit(flags []byte, bit uint8) bool {
	i := int(bit / 8)
	return i < len(flags) && flags[i]&(0x80>>(bit%8)) != 0
}

// WithFlagBit makes flags with one bit set, as many words as it takes (RFC 9792 section 2).
func WithFlagBit(bit uint8) []byte {
	flags := make([]byte, (int(bit)/32+1)*4)
	flags[bit/8] = 0x80 >> (bit % 8)
	return flags
}

// checkPrefixFlags holds Prefix Extended Flags to their length. An LSA that breaks it is ignored as a whole
// (RFC 9792 section 2).
func checkPrefixFlags(list []TLV, typ uint16) error {
	for _, t := range list {
		if t.Type == typ && (len(t.Value) == 0 || len(t.Value)%4 != 0) {
			return fault(0, "Prefix Extended Flags", "%d octets, must be a multiple of 4 (RFC 9792 section 2)", len(t.Value))
		}
	}
	return nil
}

// Find gives the value of the first TLV of the type.
func Find(list []TLV, typ uint16) ([]byte, bool) {
	for _, t := range list {
		if t.Type == typ {
			return t.Value, true
		}
	}
	return nil, false
}
