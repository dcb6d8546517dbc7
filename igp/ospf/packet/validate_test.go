package packet

import "testing"

func TestBodies(t *testing.T) {
	address := make([]byte, 16)
	for _, c := range []struct {
		v    Version
		typ  LSType
		body []byte
		ok   bool
	}{
		{V2, V2Router, []byte{0, 0, 0, 0}, true},
		{V2, V2Router, []byte{0, 0, 0, 1}, false},
		{V2, V2Network, make([]byte, 8), true},
		{V2, V2Network, make([]byte, 4), false},
		{V2, V2Network, make([]byte, 9), false},
		{V2, V2Summary, make([]byte, 8), true},
		{V2, V2ASBR, make([]byte, 5), false},
		{V2, V2External, make([]byte, 16), true},
		{V2, V2NSSA, make([]byte, 28), true},
		{V2, V2External, make([]byte, 20), false},
		{V2, V2NSSA, make([]byte, 4), false},
		{V2, V2OpaqueArea, []byte{1}, true},
		{V2, 13, []byte{1}, true},
		{V3, V3Router, make([]byte, 4), true},
		{V3, V3Router, make([]byte, 5), false},
		{V3, V3Network, make([]byte, 8), true},
		{V3, V3Network, nil, false},
		{V3, V3InterAreaPrefix, make([]byte, 8), true},
		{V3, V3InterAreaPrefix, []byte{0, 0, 0, 0, 129, 0, 0, 0}, false},
		{V3, V3InterAreaRouter, make([]byte, 12), true},
		{V3, V3InterAreaRouter, make([]byte, 11), false},
		{V3, V3IntraAreaPrefix, make([]byte, 12), true},
		{V3, V3IntraAreaPrefix, append([]byte{0, 1}, make([]byte, 10)...), false},
		{V3, V3External, make([]byte, 8), true},
		{V3, V3External, make([]byte, 9), false},
		{V3, V3External, make([]byte, 7), false},
		{V3, V3External, append([]byte{v3ExternalT, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 4)...), true},
		{V3, V3External, append([]byte{v3ExternalF, 0, 0, 0, 0, 0, 0, 0}, address...), true},
		{V3, V3External, []byte{v3ExternalF, 0, 0, 0, 0, 0, 0, 0}, false},
		{V3, V3NSSA, []byte{0, 0, 0, 0, 32, 0, 0x20, 9, 1, 2, 3, 4, 0, 0, 0, 0}, true},
		{V3, V3NSSA, []byte{0, 0, 0, 0, 32, 0, 0x20, 9, 1, 2, 3, 4}, false},
		{V3, V3NSSA, []byte{0, 0, 0, 0, 200, 0, 0, 0, 1, 2, 3, 4}, false},
		{V3, V3Link, make([]byte, 24), true},
		{V3, V3Link, make([]byte, 25), false},
		{V3, V3Link, make([]byte, 23), false},
		{V3, V3Link, append(append(make([]byte, 20), 0, 0, 0, 1), 0, 0, 0, 0), true},
		{V3, V3Link, append(append(make([]byte, 20), 0, 0, 0, 1), 64, 0, 0, 0), false},
		{V3, V3Link, append(make([]byte, 20), 255, 255, 255, 255), false},
		{V3, V3EIntraAreaPrefix, []byte{1}, true},
	} {
		l, err := NewLSA(c.v, Header{Key: Key{Type: c.typ}}, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.CheckBody(c.v); (err == nil) != c.ok {
			t.Errorf("%s %#x %x: %v", c.v, uint16(c.typ), c.body, err)
		}
	}
}
