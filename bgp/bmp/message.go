package bmp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrFrame is wrapped when a message breaks the framing, after which nothing can be read any more.
var ErrFrame = errors.New("bmp: broken framing")

// Lengths in octets (RFC 7854 sections 4.1, 4.2 and 4.10).
const (
	headerLen     = 6
	peerHeaderLen = 42
	peerUpLen     = headerLen + peerHeaderLen + 16 + 2 + 2 // before the two OPENs
	// maxMessage is more than any that carries one or two BGP messages, which have 65535 octets at most (RFC 8654).
	maxMessage = 1 << 18
)

const version = 3

// Message types (RFC 7854 section 4.1).
const (
	typeRouteMonitoring = iota
	typeStatistics
	typePeerDown
	typePeerUp
	typeInitiation
	typeTermination
	typeRouteMirroring
)

// Offsets in a message (RFC 7854 section 4.2 and 4.10).
const (
	atType        = 5
	atPeerType    = headerLen
	atFlags       = headerLen + 1
	atPeerAddress = headerLen + 10
	atTime        = headerLen + 34
	atLocal       = headerLen + peerHeaderLen
	atLocalPort   = atLocal + 16
	atRemotePort  = atLocal + 18
)

const (
	flagV           = 0x80 // the addresses are IPv6
	peerTypeLocRIB  = 3    // RFC 9069
	tlvSysDescr     = 1
	tlvSysName      = 2
	tlvReason       = 1
	reasonAdminDown = 0

	downDeconfigured = 5 // RFC 7854 section 4.9
)

// readMessage reads a message into buf, which grows as needed. What it gives is valid until buf is used again.
func readMessage(r io.Reader, buf []byte) ([]byte, error) {
	buf = append(buf[:0], make([]byte, headerLen)...)
	if _, err := io.ReadFull(r, buf); err != nil {
		return buf, err
	}
	n, err := frame(buf)
	if err != nil {
		return buf, err
	}
	if cap(buf) < n {
		buf = append(make([]byte, 0, n), buf...)
	}
	buf = buf[:n]
	_, err = io.ReadFull(r, buf[headerLen:])
	return buf, err
}

// frame gives the length that a common header (RFC 7854 section 4.1) says.
func frame(header []byte) (int, error) {
	if len(header) < headerLen {
		return 0, fmt.Errorf("%w: %d octets of a header", ErrFrame, len(header))
	}
	n := binary.BigEndian.Uint32(header[1:])
	switch {
	case header[0] != version:
		return 0, fmt.Errorf("%w: version %d", ErrFrame, header[0])
	case n < headerLen || n > maxMessage:
		return 0, fmt.Errorf("%w: length %d", ErrFrame, n)
	}
	return int(n), nil
}

func header(typ byte, n int) []byte {
	msg := make([]byte, headerLen, headerLen+n)
	msg[0], msg[atType] = version, typ
	binary.BigEndian.PutUint32(msg[1:], uint32(headerLen+n))
	return msg
}

// initiation says who we are (RFC 7854 section 4.3).
func initiation(name, descr string) []byte {
	msg := header(typeInitiation, 4+len(descr)+4+len(name))
	return tlv(tlv(msg, tlvSysDescr, descr), tlvSysName, name)
}

// termination says that the configuration ends it (RFC 7854 section 4.5).
func termination() []byte {
	return tlv(header(typeTermination, 4+2), tlvReason, string([]byte{0, reasonAdminDown}))
}

func tlv(msg []byte, typ uint16, value string) []byte {
	msg = binary.BigEndian.AppendUint16(msg, typ)
	msg = binary.BigEndian.AppendUint16(msg, uint16(len(value)))
	return append(msg, value...)
}

// initiationName gives the sysName of an Initiation message.
func initiationName(msg []byte) (string, bool) {
	if len(msg) < headerLen || msg[atType] != typeInitiation {
		return "", false
	}
	for rest := msg[headerLen:]; len(rest) >= 4; {
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n > len(rest)-4 {
			return "", false
		}
		if binary.BigEndian.Uint16(rest) == tlvSysName {
			return string(rest[4 : 4+n]), true
		}
		rest = rest[4+n:]
	}
	return "", false
}
