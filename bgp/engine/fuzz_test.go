package engine

import (
	"testing"

	api "github.com/osrg/gobgp/v3/api"
)

// FuzzRaw reads attributes as GoBGP hands them out: nothing may panic, and what is kept is what came.
func FuzzRaw(f *testing.F) {
	f.Add([]byte{0x40, 1, 1, 0}, []byte{0x40, 3, 4, 192, 0, 2, 1})
	f.Add([]byte{0xd0, 39, 0, 2, 1, 2}, []byte{0x80, 14, 9, 0, 1, 1, 4, 192, 0, 2, 1, 0})
	f.Add([]byte{0x80, 14, 4, 0, 2, 1, 32}, []byte{0x40})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		raw, err := toRaw(&api.Path{PattrsBinary: [][]byte{a, b}})
		if err != nil {
			return
		}
		for _, x := range raw.Attributes {
			if _, err := x.Value(); err != nil {
				t.Fatal(err)
			}
			if string(x) != string(a) && string(x) != string(b) {
				t.Fatalf("%x came from nowhere", x)
			}
		}
	})
}
