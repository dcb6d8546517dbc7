package emit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	ipv4MinLen       = 20
	ipv6Len          = 40
	ipv4DontFragment = 0x4000
)

// What a packet can have wrong before the kernel sees it; PacketError wraps these or an errno.
var (
	errVersion    = errors.New("IP version: neither 4 nor 6")
	errShort      = errors.New("IP header: packet ends inside it")
	errLength     = errors.New("IP length: differs from the packet's")
	errIdentifier = errors.New("IPv4 identification: zero without Don't Fragment, so the kernel would choose one")
	errSource     = errors.New("IPv4 source: unspecified, so the kernel would choose one")
)

// ErrPacket is wrapped by a PacketError whose packet was refused before the kernel saw it.
var ErrPacket = errors.New("malformed packet")

// PacketError is why Send stopped: packet Index of the batch was not sent.
type PacketError struct {
	Index int
	Dst   netip.Addr // the packet's destination; the zero Addr when it has none
	Err   error      // an errno of sendmmsg(2), such as ENETUNREACH, or an error that wraps ErrPacket
}

func (e *PacketError) Error() string {
	return fmt.Sprintf("emit: packet %d to %v: %v", e.Index, e.Dst, e.Err)
}

func (e *PacketError) Unwrap() error { return e.Err }

// check holds a packet to what the kernel would otherwise change or refuse with EINVAL.
//
// The kernel writes an IPv4 header's length and checksum always, its source when that is unspecified, and
// its identification when that is zero; but a packet with Don't Fragment keeps a zero identification
// (ip_select_ident of an unconnected socket, RFC 6864 section 4.1).
func check(pkt []byte) (v6 bool, err error) {
	if len(pkt) == 0 {
		return false, errShort
	}
	switch pkt[0] >> 4 {
	case 4:
		switch {
		case len(pkt) < ipv4MinLen || len(pkt) < int(pkt[0]&0x0F)*4:
			return false, errShort
		case int(binary.BigEndian.Uint16(pkt[2:])) != len(pkt):
			return false, errLength
		case binary.BigEndian.Uint16(pkt[4:]) == 0 && binary.BigEndian.Uint16(pkt[6:])&ipv4DontFragment == 0:
			return false, errIdentifier
		case binary.BigEndian.Uint32(pkt[12:]) == 0:
			return false, errSource
		}
		return false, nil
	case 6:
		switch {
		case len(pkt) < ipv6Len:
			return true, errShort
		case int(binary.BigEndian.Uint16(pkt[4:]))+ipv6Len != len(pkt):
			return true, errLength
		}
		return true, nil
	}
	return false, errVersion
}

// destination returns where a packet goes; the zero Addr when it is too short to say.
func destination(pkt []byte) netip.Addr {
	switch {
	case len(pkt) >= ipv4MinLen && pkt[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(pkt[16:20]))
	case len(pkt) >= ipv6Len && pkt[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(pkt[24:40]))
	}
	return netip.Addr{}
}
