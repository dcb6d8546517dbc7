package engine

import (
	"testing"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/apiutil"
	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

// FuzzVPNPath reads what GoBGP makes of the path attributes of an UPDATE: nothing may panic, and a path
// without error has a prefix.
func FuzzVPNPath(f *testing.F) {
	for _, s := range []string{
		"800e20 0001800c 0000000000000000 0ac80001 00 70 003e91 0000fde800000001 c00002",
		"800e2f 00028018 0000000000000000 20010db8000000000000000000000001 00 88 000031 0002fa56ea000005 20010db8000a",
		"800f12 000180 70 800000 0000fde800000001 c00002",
		"800e20 0001800c 0000000000000000 0ac80001 00 70 003e91 0007fde800000001 c00002",
		"c01008 0002fde800000064",
	} {
		f.Add(octets(f, s), octets(f, "c01018 0002fde800000064 0102c00002010007 4002fde800000063"))
	}
	f.Fuzz(func(t *testing.T, reach, communities []byte) {
		p := &api.Path{}
		for _, b := range [][]byte{reach, communities} {
			a, err := bgp.GetPathAttribute(b)
			if err != nil || a.DecodeFromBytes(b) != nil {
				return
			}
			attrs, err := apiutil.MarshalPathAttributes([]bgp.PathAttributeInterface{a})
			if err != nil {
				return
			}
			p.Pattrs = append(p.Pattrs, attrs...)
			var nlri []bgp.AddrPrefixInterface
			switch a := a.(type) {
			case *bgp.PathAttributeMpReachNLRI:
				nlri = a.Value
			case *bgp.PathAttributeMpUnreachNLRI:
				nlri, p.IsWithdraw = a.Value, true
			}
			for _, n := range nlri {
				if p.Nlri, err = apiutil.MarshalNLRI(n); err != nil {
					return
				}
			}
		}
		if p.Nlri == nil {
			return
		}
		if got, err := new(pathReader).read(p); err == nil && !got.Prefix.IsValid() {
			t.Fatalf("no prefix and no error: %+v", got)
		}
	})
}
