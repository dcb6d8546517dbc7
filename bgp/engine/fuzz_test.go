package engine

import (
	"testing"

	api "github.com/osrg/gobgp/v3/api"
)

// FuzzRaw reads NLRI and attributes as GoBGP hands them out: nothing may panic, what is kept is what came,
// and a prefix and label that are read are written as they were.
func FuzzRaw(f *testing.F) {
	nlri4, vpn4 := []byte{24, 192, 0, 2}, octets(f, "70 003e91 0000fde800000001 c00002")
	f.Add(uint8(IPv4Unicast), nlri4, []byte{0x40, 1, 1, 0}, []byte{0x40, 3, 4, 192, 0, 2, 1})
	f.Add(uint8(IPv4Unicast), nlri4, []byte{0xd0, 39, 0, 2, 1, 2}, []byte{0x80, 14, 9, 0, 1, 1, 4, 192, 0, 2, 1, 0})
	f.Add(uint8(IPv6Unicast), []byte{48, 32, 1, 13, 184, 0, 10}, []byte{0x80, 14, 4, 0, 2, 1, 32}, []byte{0x40})
	f.Add(uint8(IPv4VPN), vpn4, []byte{0x40, 1, 1, 0}, octets(f, "800e11 000180 0c 0000000000000000 c0000201 00"))
	f.Add(uint8(IPv6VPN), octets(f, "88 000031 0002fa56ea000005 20010db8000a"), []byte{0x40, 1, 1, 0},
		octets(f, "800e1d 000280 18 0000000000000000 20010db8000000000000000000000001 00"))
	f.Fuzz(func(t *testing.T, family uint8, nlri, a, b []byte) {
		fam := Family(family)
		raw, prefix, err := toRaw(fam, &api.Path{NlriBinary: nlri, PattrsBinary: [][]byte{a, b}})
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
		if fam.VPN() {
			label, again, err := readBinaryNLRI(fam, vpnNLRI(&VPNInfo{RD: RD(nlri[4:12]), Label: raw.Label}, prefix))
			if err != nil || label != raw.Label || again != prefix {
				t.Fatalf("%x: %d %s, then %d %s, %v", nlri, raw.Label, prefix, label, again, err)
			}
		}
	})
}
