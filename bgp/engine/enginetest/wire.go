package enginetest

import (
	"encoding/binary"
	"net/netip"
)

// Sizes and types of messages (RFC 4271 section 4).
const (
	headerLen  = 19
	maxMessage = 4096

	typeOpen         = 1
	typeUpdate       = 2
	typeNotification = 3
	typeKeepalive    = 4
)

// holdTime is what a Feeder offers, in seconds.
const holdTime = 240

// message puts a header in front of a body.
func message(typ byte, body []byte) []byte {
	m := make([]byte, headerLen, headerLen+len(body))
	for i := range 16 {
		m[i] = 0xFF
	}
	binary.BigEndian.PutUint16(m[16:], uint16(headerLen+len(body)))
	m[18] = typ
	return append(m, body...)
}

// open is an OPEN with the capabilities multiprotocol for IPv4 unicast and 4-octet AS numbers.
func open(as uint32, id netip.Addr) []byte {
	short := uint16(23456) // AS_TRANS, RFC 6793
	if as <= 0xFFFF {
		short = uint16(as)
	}
	caps := []byte{1, 4, 0, 1, 0, 1, 65, 4}
	caps = binary.BigEndian.AppendUint32(caps, as)
	body := binary.BigEndian.AppendUint16([]byte{4}, short)
	body = binary.BigEndian.AppendUint16(body, holdTime)
	body = append(body, id.AsSlice()...)
	body = append(body, byte(len(caps)+2), 2, byte(len(caps)))
	return message(typeOpen, append(body, caps...))
}

// Attributes are the path attributes of an IPv4 route from an IBGP neighbour.
type Attributes struct {
	NextHop netip.Addr
	ASPath  []uint32 // one AS_SEQUENCE; empty: none
	MED     uint32
	NHC     []byte // attribute 39 as it is on the wire, header included; empty: none
}

// Append appends the attributes in the form in which an UPDATE has them.
func (a *Attributes) Append(b []byte) []byte {
	b = append(b, 0x40, 1, 1, 0) // ORIGIN IGP
	if n := len(a.ASPath); n == 0 {
		b = append(b, 0x40, 2, 0)
	} else {
		b = append(b, 0x40, 2, byte(2+4*n), 2, byte(n))
		for _, as := range a.ASPath {
			b = binary.BigEndian.AppendUint32(b, as)
		}
	}
	b = append(append(b, 0x40, 3, 4), a.NextHop.AsSlice()...)
	b = binary.BigEndian.AppendUint32(append(b, 0x80, 4, 4), a.MED)
	b = append(b, 0x40, 5, 4, 0, 0, 0, 100) // LOCAL_PREF
	return append(b, a.NHC...)
}

// AppendUpdates appends UPDATEs that announce IPv4 prefixes with the same attributes, as many prefixes
// in each as it takes.
func AppendUpdates(b []byte, a Attributes, prefixes ...netip.Prefix) []byte {
	attrs := a.Append(nil)
	head := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(attrs)))
	return appendPacked(b, append(head, attrs...), false, prefixes)
}

// AppendWithdrawals appends UPDATEs that withdraw IPv4 prefixes.
func AppendWithdrawals(b []byte, prefixes ...netip.Prefix) []byte {
	return appendPacked(b, nil, true, prefixes)
}

func appendPacked(b, head []byte, withdraw bool, prefixes []netip.Prefix) []byte {
	const lengths = 4 // of withdrawn routes and of attributes
	room := maxMessage - headerLen - max(lengths, len(head))
	for len(prefixes) > 0 {
		var nlri []byte
		for len(prefixes) > 0 && len(nlri)+5 <= room {
			nlri = appendNLRI(nlri, prefixes[0])
			prefixes = prefixes[1:]
		}
		body := append(head[:len(head):len(head)], nlri...)
		if withdraw {
			body = binary.BigEndian.AppendUint16(nil, uint16(len(nlri)))
			body = append(append(body, nlri...), 0, 0)
		}
		b = append(b, message(typeUpdate, body)...)
	}
	return b
}

func appendNLRI(b []byte, p netip.Prefix) []byte {
	b = append(b, byte(p.Bits()))
	return append(b, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
}
