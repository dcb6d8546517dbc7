package auth

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash"
	"testing"

	"pncd/igp/ospf/packet"
)

// refHMAC is FIPS 198 as RFC 5709 section 3.3 and RFC 7166 section 4.5 write it out: no crypto/hmac.
func refHMAC(h func() hash.Hash, key, text []byte) []byte {
	one := func(parts ...[]byte) []byte {
		d := h()
		for _, p := range parts {
			d.Write(p)
		}
		return d.Sum(nil)
	}
	l, b := h().Size(), h().BlockSize()
	ko := key
	if len(key) > l {
		ko = one(key)
	}
	ipad, opad := make([]byte, b), make([]byte, b)
	for i := range b {
		var o byte
		if i < len(ko) {
			o = ko[i]
		}
		ipad[i], opad[i] = o^0x36, o^0x5C
	}
	return one(opad, one(ipad, text))
}

var refHash = map[Algorithm]func() hash.Hash{HMACSHA1: sha1.New, HMACSHA256: sha256.New, HMACSHA384: sha512.New384, HMACSHA512: sha512.New}

func refApad(l int, source []byte) []byte {
	apad := append([]byte{}, source...)
	for len(apad) < l {
		apad = append(apad, 0x87, 0x8F, 0xE1, 0xF3)
	}
	return apad
}

func TestDigestsOfV2AreThoseOfTheRFCs(t *testing.T) {
	for _, k := range keysOf(packet.V2) {
		if k.Algorithm == Simple {
			continue
		}
		for _, p := range packets(packet.V2, 2) {
			b := seal(t, k, p)
			// RFC 2328 section D.4.3 (1) to (5).
			pkt := p.Append(nil)
			l := 16
			if k.Algorithm != MD5 {
				l = refHash[k.Algorithm]().Size()
			}
			copy(pkt[12:], []byte{0, 0, 0, 2})
			pkt[16], pkt[17], pkt[18], pkt[19] = 0, 0, 51, byte(l)
			binary.BigEndian.PutUint32(pkt[20:], 1_800_000_000)
			var digest []byte
			if k.Algorithm == MD5 {
				var secret [16]byte
				copy(secret[:], k.Secret)
				sum := md5.Sum(append(bytes.Clone(pkt), secret[:]...))
				digest = sum[:]
			} else {
				var source []byte
				if k.BindSource {
					source = v2Addr.Source.AsSlice()
				}
				digest = refHMAC(refHash[k.Algorithm], []byte(k.Secret), append(bytes.Clone(pkt), refApad(l, source)...))
			}
			if want := append(pkt, digest...); !bytes.Equal(b, want) {
				t.Errorf("%s, %d octets, %s: got %x\nwant %x", k, len(k.Secret), p.Type(), b, want)
			}
		}
	}
}

func TestDigestsOfV3AreThoseOfTheRFC(t *testing.T) {
	for _, k := range keysOf(packet.V3) {
		for _, lls := range [][]byte{nil, block} {
			opts := uint32(packet.V3OptAT)
			if lls != nil {
				opts |= packet.V3OptL
			}
			for _, p := range packets(packet.V3, opts) {
				if lls != nil && p.Type() > packet.TypeDescription {
					continue
				}
				p.Trailer = lls
				b := seal(t, k, p)
				l := refHash[k.Algorithm]().Size()
				text := p.Append(nil) // the block is behind the packet, the trailer behind the block
				text = append(text, 0, 1, 0, byte(16+l), 0, 0, 0, 51)
				text = binary.BigEndian.AppendUint32(text, 1_800_000_000)
				text = binary.BigEndian.AppendUint32(text, 1_800_000_000*16&0xFFFFFFFF)
				id := []byte{0, 1}
				if k.SwapProtocolID {
					id = []byte{1, 0}
				}
				digest := refHMAC(refHash[k.Algorithm], append([]byte(k.Secret), id...), append(bytes.Clone(text), refApad(l, v3Addr.Source.AsSlice())...))
				if want := append(text, digest...); len(want) != len(b) || !bytes.Equal(b[len(b)-l:], digest) || !bytes.Equal(b, want) {
					t.Errorf("%s, %d octets, %s: got %x\nwant %x", k, len(k.Secret), p.Type(), b, want)
				}
			}
		}
	}
}
