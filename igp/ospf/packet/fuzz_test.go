package packet

import (
	"bytes"
	"testing"

	"pncd/igp/internal/recorded"
)

// FuzzPacket holds that no input panics, that what is parsed is written back byte for byte, and that every
// LSA in it is read, with a checksum that verifies when it is made again.
func FuzzPacket(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(recorded.Unhex(f, v.PDU))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []Version{V2, V3} {
			p, err := Parse(v, b)
			if err != nil {
				continue
			}
			if got := p.Append(nil); !bytes.Equal(got, b) {
				t.Fatalf("got %x\nwant %x", got, b)
			}
			u, ok := p.Body.(*Update)
			if !ok {
				continue
			}
			for _, l := range u.LSAs {
				l.ChecksumOK()
				_ = l.Type.Scope(v)
				retypeAgain(t, v, l)
				again, err := NewLSA(v, l.Header, l.Body())
				if err != nil {
					t.Fatal(err)
				}
				if !again.ChecksumOK() {
					t.Fatalf("a computed checksum doesn't verify: %x", again.Raw)
				}
			}
		}
	})
}

// retypeAgain holds that what is written of a typed body reads as the same.
func retypeAgain(t *testing.T, v Version, l LSA) {
	out, _, err := retype(v, l)
	if err != nil || out == nil {
		return
	}
	again, err := NewLSA(v, l.Header, out)
	if err != nil {
		return // padding made it longer than an LSA may be
	}
	twice, _, err := retype(v, again)
	if err != nil {
		t.Fatalf("%x can't be read again: %v", out, err)
	}
	if !bytes.Equal(out, twice) {
		t.Fatalf("%x reads as %x", out, twice)
	}
}
