package guard

import (
	"encoding/binary"
	"math"
	"strconv"
)

// HeaderLen is the length of a message's header in octets (RFC 4271 section 4.1).
const HeaderLen = 19

// MaxLen is how long a message can be in octets when no extended messages were negotiated, MaxExtendedLen
// when they were (RFC 4271 section 4.1, RFC 8654 section 4).
const (
	MaxLen         = 4096
	MaxExtendedLen = 65535
)

// Message types (RFC 4271 section 4.1, RFC 2918 section 3).
const (
	typeOpen         = 1
	typeUpdate       = 2
	typeNotification = 3
	typeKeepalive    = 4
	typeRouteRefresh = 5
)

func typeName(typ uint8) string {
	names := [...]string{typeOpen: "OPEN", typeUpdate: "UPDATE", typeNotification: "NOTIFICATION",
		typeKeepalive: "KEEPALIVE", typeRouteRefresh: "ROUTE-REFRESH"}
	if typ == 0 || int(typ) >= len(names) {
		return "message type " + strconv.Itoa(int(typ))
	}
	return names[typ]
}

// minLens are the shortest messages of each type (RFC 4271 section 6.1, RFC 2918 section 3).
var minLens = [...]int{typeOpen: 29, typeUpdate: 23, typeNotification: 21, typeKeepalive: HeaderLen, typeRouteRefresh: 23}

// FrameLen says how long the message is, header included, that begins with these HeaderLen octets, or
// why the session must end (RFC 4271 section 6.1, RFC 8654 section 4).
func (s *Session) FrameLen(header []byte) (int, *Fault) {
	if len(header) < HeaderLen {
		return 0, &Fault{Code: codeHeader, Subcode: headerLength, Reason: "header is cut short"}
	}
	if binary.NativeEndian.Uint64(header)&binary.NativeEndian.Uint64(header[8:]) != math.MaxUint64 {
		return 0, &Fault{Code: codeHeader, Subcode: headerSync, Reason: "marker isn't all ones"}
	}
	n, typ := u16(header[16:]), header[18]
	if n < HeaderLen || n > MaxLen && !s.extended(typ) {
		return 0, badLength(header, "message length "+strconv.Itoa(n))
	}
	if typ == 0 || int(typ) >= len(minLens) {
		return 0, &Fault{Code: codeHeader, Subcode: headerType, Data: []byte{typ}, Reason: "unknown " + typeName(typ)}
	}
	if n < minLens[typ] || typ == typeKeepalive && n != HeaderLen {
		return 0, badLength(header, typeName(typ)+" of length "+strconv.Itoa(n))
	}
	return n, nil
}

// extended reports whether a message of this type may be longer than MaxLen.
func (s *Session) extended(typ uint8) bool {
	if typ == typeOpen || typ == typeKeepalive || s.theirs == nil || !s.theirs.extendedMessage {
		return false
	}
	ours := s.ours.Load()
	return ours != nil && ours.extendedMessage
}

func badLength(header []byte, reason string) *Fault {
	return &Fault{Code: codeHeader, Subcode: headerLength, Data: clone(header[16:18]), Reason: reason}
}
