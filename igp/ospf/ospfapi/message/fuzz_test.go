package message

import (
	"bytes"
	"testing"
)

// FuzzMessage holds that no input panics, and that what is parsed is written back byte for byte, unless that
// is a message without a body, which is never written.
func FuzzMessage(f *testing.F) {
	for _, text := range captured {
		f.Add(unhex(f, text))
	}
	for _, r := range requests() {
		b, err := Message{Sequence: 1, Body: r}.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{1, 18, 0, 12, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		got, err := m.Append(nil)
		if len(b) == HeaderLen {
			if err == nil {
				t.Fatalf("written without a body: %x", got)
			}
			return
		}
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("got %x, %v\nwant %x", got, err, b)
		}
	})
}
