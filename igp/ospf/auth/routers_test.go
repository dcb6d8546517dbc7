package auth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"pncd/igp/internal/recorded"
	"pncd/igp/ospf/packet"
)

// routers are hellos that BIRD 2.0.12 and FRR 8.4.4 sent with keys that are known.
var routers = []struct {
	who      string
	v        packet.Version
	from, to string
	key      Key
	pdu      string
}{
	{"BIRD", packet.V2, "10.9.0.1", "224.0.0.5", Key{ID: 1, Algorithm: MD5, Secret: "lab secret 0"},
		"0201002c0aff00090000000000000002000001106b0d2245fffffffc00010201000000040000000000000000fd47c585e5093aee9dd9734e1d2c51c0"},
	{"BIRD", packet.V2, "10.9.1.1", "224.0.0.5", Key{ID: 2, Algorithm: HMACSHA1, Secret: "lab secret 1"},
		"0201002c0aff00090000000000000002000002146b0d2245fffffffc00010201000000040000000000000000654309c57733f2e38bcdd6c22270368abf23c50c"},
	{"BIRD", packet.V2, "10.9.2.1", "224.0.0.5", Key{ID: 3, Algorithm: HMACSHA256, Secret: "lab secret 2"},
		"0201002c0aff00090000000000000002000003206b0d2245fffffffc00010201000000040000000000000000e2a5ab0728e1634925c2bd59b6498dfee58099eca7fba2a476c6ee9cb1dbe22d"},
	{"BIRD", packet.V2, "10.9.3.1", "224.0.0.5", Key{ID: 4, Algorithm: HMACSHA384, Secret: "lab secret 3"},
		"0201002c0aff00090000000000000002000004306b0d2245fffffffc000102010000000400000000000000005c14cf02fedcadd85d4a76a4ab44630de57150f7db73cd18da4e2a0b7abbff316f179a5c1499a51e294302ed5eded242"},
	{"BIRD", packet.V2, "10.9.4.1", "224.0.0.5", Key{ID: 5, Algorithm: HMACSHA512, Secret: "lab secret 4"},
		"0201002c0aff00090000000000000002000005406b0d2245fffffffc00010201000000040000000000000000765091b159c4e31f7ee440f4af3659124aa89c5b48877240cdb57613aa18ac3420222a653a9b9fe7199c065bd8640f206145401b1ed6a8019aafae4cf4cc640e"},
	{"BIRD", packet.V3, "fe80::7405:2ff:fe41:9af8", "ff02::5", Key{ID: 6, Algorithm: HMACSHA1, Secret: "lab secret 5"},
		"030100240aff000900000000000000000000000d010005130001000400000000000000000001002400000006000000000000000838087e94b0fe4d7519634493ed65db9d9f0cfd56"},
	{"BIRD", packet.V3, "fe80::448b:72ff:fe7f:27b4", "ff02::5", Key{ID: 7, Algorithm: HMACSHA256, Secret: "lab secret 6"},
		"030100240aff000900000000000000000000000f0100051300010004000000000000000000010030000000070000000000000007f9800ede5428c3d3ab20cb1a73c7158b4b50c6ca7a7c4ac22e447701b5a314c4"},
	{"BIRD", packet.V3, "fe80::307a:83ff:feee:e601", "ff02::5", Key{ID: 8, Algorithm: HMACSHA384, Secret: "lab secret 7"},
		"030100240aff000900000000000000000000001101000513000100040000000000000000000100400000000800000000000000052860bbbcb6192f5be07cb5e49dbe6734055fb2d1b32fe82b0767653ccf1a345ec3ccff81dad46e3c1662d79dac061634"},
	{"BIRD", packet.V3, "fe80::474:7aff:feb6:419c", "ff02::5", Key{ID: 9, Algorithm: HMACSHA512, Secret: "lab secret 8"},
		"030100240aff000900000000000000000000001301000513000100040000000000000000000100500000000900000000000000069cb6076908f92ecb45afe31d64024df9854e27d4ff289aed883ed7c969fc61b2bcb989331d05ec2460431d690589148c74932c8ea97c550ed9c5525f58e990fc"},
	{"FRR", packet.V2, "10.9.9.1", "224.0.0.5", Key{ID: 10, Algorithm: MD5, Secret: "labsecret9"},
		"0201002c0aff0008000000000000000200000a106b0d2247fffffffc000102010000000400000000000000005fc8e1e9a32a4320f5bda72123fa18a0"},
	{"FRR", packet.V3, "fe80::f075:dbff:fec4:83cc", "ff02::5", Key{ID: 11, Algorithm: HMACSHA256, Secret: "labsecret10", SwapProtocolID: true},
		"030100240aff000800000000000000000000001701000413000100280000000000000000000100300000000b0000000000000002704a430ace917468513c21e9248c762a8773c4b231ecbbcd628ea84cafbe714a"},
}

func TestHellosOfRoutersWithKnownKeys(t *testing.T) {
	for _, c := range routers {
		b := recorded.Unhex(t, c.pdu)
		a := Addresses{Source: netip.MustParseAddr(c.from), Destination: netip.MustParseAddr(c.to)}
		chain := Chain{Send: c.key, Accept: []Key{c.key}}
		if _, err := chain.Verify(c.v, b, a, nil); err != nil {
			t.Errorf("%s %s %s: %v", c.who, c.v, c.key, err)
		}
		wrong := c.key
		wrong.Secret += "x"
		if _, err := (Chain{Accept: []Key{wrong}}).Verify(c.v, b, a, nil); !errors.Is(err, ErrDigest) {
			t.Errorf("%s %s %s: another secret: %v", c.who, c.v, c.key, err)
		}
		// Sealed again with the sequence number that it has.
		p, err := packet.Parse(c.v, b)
		if err != nil {
			t.Fatal(err)
		}
		s := Sequence{Last: uint64(binary.BigEndian.Uint32(b[v2SequenceAt:]))}
		if c.v == packet.V3 {
			s.Last = binary.BigEndian.Uint64(p.Trailer[v3SequenceAt:]) - 1
		}
		p.Trailer = nil
		if got, err := chain.Seal(p, a, &s, time.Unix(0, 0)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s %s %s: sealed again: %x, %v\nwant %x", c.who, c.v, c.key, got, err, b)
		}
	}
}
