package integration

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"pncd/bgp/guard"
	"pncd/integration/bgpraw"
)

// Messages made by chance from right ones, the same each time. What must become of each says the guard,
// asked here beside the speaker: that the speaker's process holds to it, and that GoBGP behind it survives
// what it passes, is what is tested.

// madeSeeds are bodies of UPDATEs to begin with.
func madeSeeds(p netip.Prefix) [][]byte {
	nlri := bgpraw.Prefix(p)
	body := func(withdrawn []byte, attrs string, nlri []byte) []byte {
		return bgpraw.UpdateBytes(withdrawn, bgpraw.Hex(attrs), nlri)[bgpraw.HeaderLen:]
	}
	vpn := "80 0e 1e 0001 80 0c 0000000000000000" + hNextHop + "00 60 000101 0000fc0000000001 0a" + "c0 10 08 0002fc0000000001"
	return [][]byte{
		body(nil, fAttrs+mHop+mNHC, nlri),
		body(nil, fAttrs+mHop+mNHC+"80 04 04 00000064 c0 08 08 fc000001fc000002 c0 20 0c 0000fc000000000100000002", nlri),
		body(nil, fAttrs+mHop+"40 06 00 c0 07 08 0000fc01c0000201 80 09 04 0a0a0a0a 80 0a 04 0a0a0a0b"+mNHC, nlri),
		body(nil, fAttrs+reach6(fHop6), nil),
		body(nil, fAttrs+vpn+mHop+mNHC, nlri),
		body(nil, fAttrs+mHop+mNHC+"c0 28 0a 01 0007 00 0000 00000001 c0 16 09 00 06 000000 c0000201 c0 17 0c 0008 0008 0604 c0000201 0100", nlri),
		body(nil, fAttrs+mHop+mNHC+"80 1a 0b 01000b0000000000000005 80 1d 08 0447000400000001 c0 19 14"+"0002"+fHop6+"0001", nlri),
		body(nlri, "80 0f 0a 0002 01 30 20010db80001", nil),
		body(nlri, "80 0f 10 0001 80 60 800000 0000fc0000000001 0a", nil),
		body(nil, fAttrs+"80 0e 0c 0001 85 00 00 06 01 18 0a4d01 03"+mHop+mNHC, nlri),
	}
}

// mutate changes a message's body in a few places.
func mutate(rnd *rand.Rand, b []byte) []byte {
	b = slices.Clone(b)
	for range 1 + rnd.IntN(4) {
		if len(b) == 0 {
			return b
		}
		i := rnd.IntN(len(b))
		switch rnd.IntN(6) {
		case 0:
			b[i] ^= 1 << rnd.IntN(8)
		case 1:
			b[i] = byte(rnd.Uint32())
		case 2:
			b[i] += byte(rnd.IntN(3)) - 1
		case 3:
			b = slices.Insert(b, i, byte(rnd.Uint32()))
		case 4:
			b = slices.Delete(b, i, i+1)
		case 5:
			j := i + rnd.IntN(min(24, len(b)-i))
			b = slices.Insert(b, rnd.IntN(len(b)), bytes.Clone(b[i:j])...)
		}
	}
	return b
}

// fix makes the two lengths right again, in every other message: what is deeper inside is to be reached.
func fix(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	w := int(binary.BigEndian.Uint16(b))
	if w+4 > len(b) {
		binary.BigEndian.PutUint16(b, 0)
		w = 0
	}
	if a := int(binary.BigEndian.Uint16(b[2+w:])); a+4+w > len(b) {
		binary.BigEndian.PutUint16(b[2+w:], uint16(len(b)-4-w))
	}
	return b
}

// oracle is a guard for a neighbour that is established.
func oracle(open []byte) *guard.Session {
	g := guard.New(guard.Config{Families: []guard.Family{{AFI: 1, SAFI: 1}, {AFI: 2, SAFI: 1}, {AFI: 1, SAFI: 128}}})
	g.ToPeer(bgpraw.OpenBytes(hAS, 180, netip.MustParseAddr("10.255.0.1"), bgpraw.Hex(hFamilies+hFour+"0512 0001 0001 0002 0002 0001 0002 0001 0080 0002")))
	g.FromPeer(open)
	g.FromPeer(bgpraw.Bytes(bgpraw.Keepalive, nil))
	return g
}

// made gives messages that the session survives, and others that end it with a NOTIFICATION.
func made(open []byte, survive, end int) (survives [][]byte, ends []ending) {
	rnd := rand.New(rand.NewPCG(7606, 4271))
	g := oracle(open)
	for n := 0; len(survives) < survive || len(ends) < end; n++ {
		seeds := madeSeeds(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 0}), 24))
		b := mutate(rnd, seeds[n%len(seeds)])
		if n%4 != 0 {
			b = fix(b)
		}
		if len(b) < 4 || len(b) > 4000 {
			continue
		}
		msg := bgpraw.Bytes(bgpraw.Update, b)
		v := g.FromPeer(msg)
		switch {
		case v.Fault != nil && len(ends) < end:
			ends = append(ends, ending{fmt.Sprintf("made %d: %x", n, b), established, msg, bgpraw.Code{v.Fault.Code, v.Fault.Subcode}})
		case v.Fault == nil && len(survives) < survive && (len(v.Findings) > 0 || v.Unsure):
			survives = append(survives, msg)
		}
	}
	return survives, ends
}
