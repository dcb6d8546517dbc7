package message

import (
	"bytes"
	"errors"
	"testing"
)

// Whatever arrives either parses and is written back octet for octet, or gives one of the two errors.
func FuzzParse(f *testing.F) {
	for _, n := range []Notification{flow4, flow6} {
		b, err := n.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b, 0, 0, 0, 7)) // format 2
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Parse(b)
		if err != nil {
			if n != (Notification{}) {
				t.Fatalf("error %v with a notification %+v", err, n)
			}
			if errors.Is(err, ErrLength) == errors.Is(err, ErrFormat2) {
				t.Fatalf("error %v is not one of the two", err)
			}
			return
		}
		w, err := n.Append(nil)
		if err != nil {
			t.Fatalf("parsed %+v cannot be written: %v", n, err)
		}
		if !bytes.Equal(w, b) {
			t.Fatalf("%x came back as %x", b, w)
		}
	})
}
