package relay

import (
	"bufio"
	"encoding/binary"
	"net/netip"

	"pncd/bgp/guard"
)

// Types of messages (RFC 4271 section 4.1).
const (
	typeOpen         = 1
	typeNotification = 3
	typeRouteRefresh = 5 // RFC 2918
)

// Error codes and subcodes of NOTIFICATIONs that are sent from here.
const (
	codeOpen            = 2 // RFC 4271 section 4.5
	openHoldTime        = 6
	codeHoldTimer       = 4
	codeFSM             = 5
	codeCease           = 6
	fsmInOpenSent       = 1 // RFC 6608 section 3
	ceaseDeconfigured   = 3 // RFC 4486 section 3
	ceaseCollision      = 7
	ceaseHardReset      = 9 // RFC 8538 section 3
	maxNotificationData = guard.MaxLen - guard.HeaderLen - 2
)

// notification writes a NOTIFICATION (RFC 4271 section 4.5).
func notification(code, subcode uint8, data []byte) []byte {
	data = data[:min(len(data), maxNotificationData)]
	msg := make([]byte, guard.HeaderLen, guard.HeaderLen+2+len(data))
	for i := range 16 {
		msg[i] = 0xff
	}
	binary.BigEndian.PutUint16(msg[16:], uint16(cap(msg)))
	msg[18] = typeNotification
	return append(append(msg, code, subcode), data...)
}

// keepaliveMessage is a KEEPALIVE (RFC 4271 section 4.4).
var keepaliveMessage = []byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, guard.HeaderLen, 4,
}

// routeRefresh writes a ROUTE-REFRESH (RFC 2918 section 3).
func routeRefresh(f guard.Family) []byte {
	msg := make([]byte, guard.HeaderLen, guard.HeaderLen+4)
	for i := range 16 {
		msg[i] = 0xff
	}
	msg[17], msg[18] = uint8(cap(msg)), typeRouteRefresh
	return append(binary.BigEndian.AppendUint16(msg, f.AFI), 0, f.SAFI)
}

func isNotification(msg []byte) bool {
	return len(msg) >= guard.HeaderLen+2 && msg[18] == typeNotification
}

// speaker is who a BGP speaker is.
type speaker struct {
	id netip.Addr
	as uint32
}

// open is what counts here of an OPEN.
type open struct {
	speaker
	hold     uint16 // seconds
	restarts bool   // it can keep forwarding through a restart (RFC 4724 section 3)
	refresh  bool   // it sends its routes again when asked (RFC 2918 section 2)
}

// Codes of capabilities.
const (
	capRefresh = 2
	capRestart = 64
	capAS4     = 65
)

// parseOpen reads an OPEN (RFC 4271 section 4.2, RFC 5492, RFC 9072). It checks no more than it needs:
// whether the OPEN is right is the guard's business.
func parseOpen(msg []byte) (open, bool) {
	if len(msg) < guard.HeaderLen+10 || msg[18] != typeOpen {
		return open{}, false
	}
	b := msg[guard.HeaderLen:]
	o := open{
		speaker: speaker{id: netip.AddrFrom4([4]byte(b[5:9])), as: uint32(binary.BigEndian.Uint16(b[1:]))},
		hold:    binary.BigEndian.Uint16(b[3:]),
	}
	params, width := b[10:], 1
	if b[9] == 255 && len(params) >= 3 && params[0] == 255 {
		params, width = params[3:], 2
	}
	for len(params) >= 1+width {
		typ, n := params[0], int(params[1])
		if width == 2 {
			n = int(binary.BigEndian.Uint16(params[1:]))
		}
		params = params[1+width:]
		if n > len(params) {
			break
		}
		if typ == 2 {
			o.capabilities(params[:n])
		}
		params = params[n:]
	}
	return o, true
}

func (o *open) capabilities(b []byte) {
	for len(b) >= 2 && int(b[1]) <= len(b)-2 {
		v := b[2 : 2+int(b[1])]
		switch {
		case b[0] == capAS4 && len(v) == 4:
			o.as = binary.BigEndian.Uint32(v)
		case b[0] == capRefresh:
			o.refresh = true
		case b[0] == capRestart && len(v) >= 6: // with a family at least
			o.restarts = true
		}
		b = b[2+len(v):]
	}
}

// keepIncoming says which of two connections with a neighbour stays (RFC 4271 section 6.8): that of the
// speaker with the higher BGP Identifier, or with the higher AS when they are equal (RFC 6286 section 2.3).
func keepIncoming(local, remote speaker) bool {
	if c := local.id.Compare(remote.id); c != 0 {
		return c < 0
	}
	return local.as < remote.as
}

// whole reports whether the reader has a whole message, so that reading the next one doesn't wait.
func whole(r *bufio.Reader) bool {
	if r.Buffered() < guard.HeaderLen {
		return false
	}
	h, err := r.Peek(guard.HeaderLen)
	return err == nil && r.Buffered() >= int(binary.BigEndian.Uint16(h[16:]))
}
