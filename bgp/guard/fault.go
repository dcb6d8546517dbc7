package guard

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Fault says that a session must end, and with which NOTIFICATION (RFC 4271 section 4.5).
type Fault struct {
	Code, Subcode uint8
	Data          []byte
	Reason        string // for people: which field breaks which rule
}

// Error says it for people.
func (f *Fault) Error() string {
	return fmt.Sprintf("NOTIFICATION %d/%d: %s", f.Code, f.Subcode, f.Reason)
}

// Notification is the whole message to send to the neighbour.
func (f *Fault) Notification() []byte {
	data := f.Data[:min(len(f.Data), MaxLen-HeaderLen-2)]
	msg := appendHeader(nil, typeNotification)
	msg = append(msg, f.Code, f.Subcode)
	msg = append(msg, data...)
	binary.BigEndian.PutUint16(msg[16:], uint16(len(msg)))
	return msg
}

// appendHeader begins a message whose length is to be put in later.
func appendHeader(dst []byte, typ uint8) []byte {
	for range 16 {
		dst = append(dst, 0xff)
	}
	return append(dst, 0, 0, typ)
}

// Error codes and subcodes (RFC 4271 section 4.5, RFC 5492 section 5, RFC 6608 section 3, RFC 7313 section 5).
const (
	codeHeader       = 1
	headerSync       = 1 // Connection Not Synchronized
	headerLength     = 2 // Bad Message Length
	headerType       = 3 // Bad Message Type
	codeOpen         = 2
	openUnspecific   = 0
	openVersion      = 1 // Unsupported Version Number
	openAS           = 2 // Bad Peer AS
	openIdentifier   = 3 // Bad BGP Identifier
	openParameter    = 4 // Unsupported Optional Parameter
	openHoldTime     = 6 // Unacceptable Hold Time
	codeUpdate       = 3
	updateList       = 1  // Malformed Attribute List
	updateWellKnown  = 2  // Unrecognized Well-known Attribute
	updateFlags      = 4  // Attribute Flags Error
	updateLength     = 5  // Attribute Length Error
	updateOrigin     = 6  // Invalid ORIGIN Attribute
	updateNextHop    = 8  // Invalid NEXT_HOP Attribute
	updateOptional   = 9  // Optional Attribute Error
	updateNetwork    = 10 // Invalid Network Field
	updateASPath     = 11 // Malformed AS_PATH
	codeFSM          = 5
	fsmOpenSent      = 1
	codeRouteRefresh = 7
	refreshLength    = 1 // Invalid Message Length
)

// clone is a copy that stays when the message's memory is used again.
func clone(b []byte) []byte { return slices.Clone(b) }
