package packet

import "slices"

// TLV is a type, a length of one octet, and a value. Sub-TLVs have the same form.
type TLV struct {
	Type  uint8
	Value []byte // at most 255 octets
}

// TLVs is a list of TLVs in the order of the PDU.
type TLVs []TLV

// maxValue is what the length octet can say.
const maxValue = 255

// ParseTLVs reads a list that fills b.
func ParseTLVs(b []byte) (TLVs, error) {
	n := 0
	for at := 0; at < len(b); n++ {
		if len(b)-at < 2 {
			return nil, fault(at, "TLV", "a type without a length ends the list")
		}
		if have, want := len(b)-at-2, int(b[at+1]); have < want {
			return nil, fault(at+1, "TLV length", "type %d says %d octets, %d are left", b[at], want, have)
		}
		at += 2 + int(b[at+1])
	}
	if n == 0 {
		return nil, nil
	}
	list := make(TLVs, 0, n)
	for len(b) > 0 {
		end := 2 + int(b[1])
		list = append(list, TLV{Type: b[0], Value: b[2:end:end]})
		b = b[end:]
	}
	return list, nil
}

// Append writes the list.
func (l TLVs) Append(dst []byte) ([]byte, error) {
	for _, t := range l {
		if len(t.Value) > maxValue {
			return nil, fault(len(dst), "TLV length", "type %d has %d octets, at most %d fit", t.Type, len(t.Value), maxValue)
		}
		dst = append(dst, t.Type, uint8(len(t.Value)))
		dst = append(dst, t.Value...)
	}
	return dst, nil
}

// Len is the length of the list on the wire, octets.
func (l TLVs) Len() (n int) {
	for _, t := range l {
		n += 2 + len(t.Value)
	}
	return n
}

// First gives the first TLV of the type; false when there is none.
func (l TLVs) First(typ uint8) ([]byte, bool) {
	i := slices.IndexFunc(l, func(t TLV) bool { return t.Type == typ })
	if i < 0 {
		return nil, false
	}
	return l[i].Value, true
}

// All gives the values of all TLVs of the type, in order.
func (l TLVs) All(typ uint8) (values [][]byte) {
	for _, t := range l {
		if t.Type == typ {
			values = append(values, t.Value)
		}
	}
	return values
}
