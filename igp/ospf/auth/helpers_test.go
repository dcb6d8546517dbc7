package auth

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

var (
	now    = time.Unix(1_800_000_000, 0)
	v2Addr = Addresses{Source: netip.MustParseAddr("10.0.51.1"), Destination: netip.MustParseAddr("224.0.0.5")}
	v3Addr = Addresses{Source: netip.MustParseAddr("fe80::51"), Destination: netip.MustParseAddr("ff02::5")}
	block  = []byte{0xFF, 0xF6, 0, 3, 0, 1, 0, 4, 0, 0, 0, 1} // link-local signalling: extended options
)

func addresses(v packet.Version) Addresses {
	if v == packet.V2 {
		return v2Addr
	}
	return v3Addr
}

// packets has one of each type; the hello and the description carry the options.
func packets(v packet.Version, opts uint32) []*packet.Packet {
	var out []*packet.Packet
	for _, b := range []packet.Body{
		&packet.Hello{Mask: 0xFFFFFF00, Options: opts, Interval: 10, Dead: 40, Neighbors: []packet.ID{7}},
		&packet.Description{MTU: 1500, Options: opts, Sequence: 3},
		&packet.Request{},
		&packet.Update{},
		&packet.Ack{},
	} {
		out = append(out, &packet.Packet{Version: v, Router: 0x0AFF0033, Area: 1, Body: b})
	}
	return out
}

// secrets are shorter than, as long as, and longer than the digests and the blocks.
var secrets = []string{"k", strings.Repeat("a", 16), strings.Repeat("b", 20), strings.Repeat("c", 33), strings.Repeat("d", 62), strings.Repeat("e", 64), strings.Repeat("f", 200)}

// keysOf are keys of every algorithm that a version has, without the null one.
func keysOf(v packet.Version) (out []Key) {
	for a := Simple; int(a) < len(algorithms); a++ {
		for _, s := range secrets {
			k := Key{ID: 51, Algorithm: a, Secret: s}
			if k.check(v) == nil {
				out = append(out, k)
			}
			bound, swapped := k, k
			bound.BindSource, swapped.SwapProtocolID = true, true
			for _, k := range []Key{bound, swapped} {
				if k.check(v) == nil {
					out = append(out, k)
				}
			}
		}
	}
	return out
}

func seal(t testing.TB, k Key, p *packet.Packet) []byte {
	t.Helper()
	b, err := Chain{Send: k}.Seal(p, addresses(p.Version), &Sequence{}, now)
	if err != nil {
		t.Fatalf("%s: %v", k, err)
	}
	return b
}
