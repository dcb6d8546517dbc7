package keys

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"strings"
	"testing"
)

// RFC 4231 sections 4.2 and 4.7: keys no longer than the digest, and longer than the block, which all prepare
// the same way.
func TestHMACIsThatOfRFC4231(t *testing.T) {
	for _, c := range []struct {
		h         func() hash.Hash
		key, text string
		want      string
	}{
		{sha256.New, strings.Repeat("\x0b", 20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{sha512.New, strings.Repeat("\x0b", 20), "Hi There", "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"},
		{sha256.New, strings.Repeat("\xaa", 131), "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	} {
		if got := hex.EncodeToString(HMAC(c.h, []byte(c.key), []byte(c.text))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

// A key between the length of the digest and that of the block is hashed, unlike in plain HMAC.
func TestAKeyLongerThanTheDigestIsHashed(t *testing.T) {
	key := bytes.Repeat([]byte{7}, sha256.Size+1)
	sum := sha256.Sum256(key)
	if !bytes.Equal(HMAC(sha256.New, key, nil), HMAC(sha256.New, sum[:], nil)) {
		t.Error("it is not")
	}
	if key = key[1:]; bytes.Equal(HMAC(sha256.New, key, nil), HMAC(sha256.New, sum[:], nil)) {
		t.Error("a key as long as the digest is hashed")
	}
}

func TestApad(t *testing.T) {
	room := make([]byte, 6)
	if FillApad(room); !bytes.Equal(room, []byte{0x87, 0x8F, 0xE1, 0xF3, 0x87, 0x8F}) {
		t.Errorf("%x", room)
	}
}
