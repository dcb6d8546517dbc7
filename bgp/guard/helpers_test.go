package guard

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
)

// hx reads octets in hexadecimal; blanks are for people.
func hx(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// message puts a header before a body.
func message(typ uint8, body []byte) []byte {
	m := append(appendHeader(nil, typ), body...)
	binary.BigEndian.PutUint16(m[16:], uint16(len(m)))
	return m
}

// updateOf builds an UPDATE of its three fields in hexadecimal.
func updateOf(withdrawn, attrs, nlri string) []byte {
	w, a := hx(withdrawn), hx(attrs)
	b := binary.BigEndian.AppendUint16(nil, uint16(len(w)))
	b = append(b, w...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(a)))
	b = append(b, a...)
	return message(typeUpdate, append(b, hx(nlri)...))
}

// openOf builds an OPEN of AS 64512 with capabilities in hexadecimal.
func openOf(caps string) []byte {
	c := hx(caps)
	b := hx("04 fc00 005a 0a000001")
	if len(c) == 0 {
		return message(typeOpen, append(b, 0))
	}
	b = append(b, uint8(len(c)+2), paramCapabilities, uint8(len(c)))
	return message(typeOpen, append(b, c...))
}

const (
	capsFamilies = "0104 0001 00 01  0104 0002 00 01  0104 0001 00 80  0104 0002 00 80"
	capsAS4      = "4104 0000fc00"
	capsHop      = "0506 0001 0001 0002"
	capsAddPath  = "4508 0001 01 03 0002 01 03"
)

var families = []Family{{1, 1}, {2, 1}, {1, 128}, {2, 128}}

// sessionOf gives an established session: the capabilities are those of both sides.
func sessionOf(t testing.TB, cfg Config, caps string) *Session {
	t.Helper()
	if cfg.Families == nil {
		cfg.Families = families
	}
	s := New(cfg)
	s.ToPeer(openOf(caps))
	for _, m := range [][]byte{openOf(caps), message(typeKeepalive, nil)} {
		if v := s.FromPeer(m); v.Fault != nil || string(v.Pass) != string(m) {
			t.Fatalf("session doesn't come up: %+v", v)
		}
	}
	return s
}

// split cuts Pass into messages.
func split(t testing.TB, s *Session, b []byte) (out [][]byte) {
	t.Helper()
	for len(b) > 0 {
		n, f := s.FrameLen(b)
		if f != nil || n > len(b) {
			t.Fatalf("passed octets that are no message: %x: %v", b, f)
		}
		out, b = append(out, b[:n:n]), b[n:]
	}
	return out
}
