package bgpraw

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// Message types (RFC 4271 section 4.1, RFC 2918 section 3).
const (
	Open         = 1
	Update       = 2
	Notification = 3
	Keepalive    = 4
	RouteRefresh = 5
)

// HeaderLen is the length of a message's header in octets.
const HeaderLen = 19

// Hex reads octets in hexadecimal; blanks are for people. It panics when it can't.
func Hex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// Bytes is a whole message: marker, length, type and body.
func Bytes(typ uint8, body []byte) []byte {
	m := make([]byte, 16, HeaderLen+len(body))
	for i := range m {
		m[i] = 0xff
	}
	m = binary.BigEndian.AppendUint16(m, uint16(HeaderLen+len(body)))
	return append(append(m, typ), body...)
}

// UpdateBytes is an UPDATE of its three fields.
func UpdateBytes(withdrawn, attributes, nlri []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(withdrawn)))
	b = append(b, withdrawn...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(attributes)))
	b = append(b, attributes...)
	return Bytes(Update, append(b, nlri...))
}

// OpenBytes is an OPEN with a hold time in seconds and capabilities, each whole, in one optional parameter.
func OpenBytes(as uint16, hold uint16, id netip.Addr, capabilities []byte) []byte {
	b := []byte{4}
	b = binary.BigEndian.AppendUint16(b, as)
	b = binary.BigEndian.AppendUint16(b, hold)
	b = append(b, id.AsSlice()...)
	if len(capabilities) == 0 {
		return Bytes(Open, append(b, 0))
	}
	b = append(b, uint8(len(capabilities)+2), 2, uint8(len(capabilities)))
	return Bytes(Open, append(b, capabilities...))
}

// Prefix is a prefix as NLRI: its length in bits and as many octets as that needs.
func Prefix(p netip.Prefix) []byte {
	return append([]byte{uint8(p.Bits())}, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
}

// Message is one that came.
type Message struct {
	Type uint8
	Body []byte
}

// Code is what a NOTIFICATION says: error code and subcode.
type Code [2]uint8

func (c Code) String() string { return fmt.Sprintf("%d/%d", c[0], c[1]) }

// Code reads a NOTIFICATION; zero when it is something else.
func (m Message) Code() Code {
	if m.Type != Notification || len(m.Body) < 2 {
		return Code{}
	}
	return Code(m.Body[:2])
}
