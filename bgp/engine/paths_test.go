package engine

import (
	"net/netip"
	"strings"
	"testing"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

func TestAPathIsReadInEachFamily(t *testing.T) {
	const rd0 = "0000000000000000"
	for name, tt := range map[string]struct {
		family  Family
		nlri    string
		attr    string
		prefix  string
		nextHop string
		label   uint32
		err     string
	}{
		"IPv4":                           {IPv4Unicast, "18 c00002", "400304 c6336401", "192.0.2.0/24", "198.51.100.1", 0, ""},
		"IPv4 by IPv6":                   {IPv4Unicast, "18 c00002", "800e15 000101 10 20010db8000000000000000000000001 00", "192.0.2.0/24", "2001:db8::1", 0, ""},
		"IPv6 with a link-local address": {IPv6Unicast, "30 20010db8000a", "800e25 000201 20 20010db8000000000000000000000001 fe800000000000000000000000000001 00", "2001:db8:a::/48", "2001:db8::1", 0, ""},
		"VPNv4":                          {IPv4VPN, "70 003e91 0000fde800000001 c00002", "800e11 000180 0c " + rd0 + " c6336401 00", "192.0.2.0/24", "198.51.100.1", 1001, ""},
		"VPNv6":                          {IPv6VPN, "88 000031 0002fa56ea000005 20010db8000a", "800e1d 000280 18 " + rd0 + " 20010db8000000000000000000000001 00", "2001:db8:a::/48", "2001:db8::1", 3, ""},
		"VPNv6, two addresses":           {IPv6VPN, "88 000031 0002fa56ea000005 20010db8000a", "800e35 000280 30 " + rd0 + " 20010db8000000000000000000000001" + rd0 + "fe800000000000000000000000000001 00", "2001:db8:a::/48", "2001:db8::1", 3, ""},
		"VPNv6 over an IPv4 core":        {IPv6VPN, "88 000031 0002fa56ea000005 20010db8000a", "800e1d 000280 18 " + rd0 + " 00000000000000000000ffffc6336401 00", "2001:db8:a::/48", "::ffff:198.51.100.1", 3, ""},
		"VPN next hop of the RD only":    {IPv4VPN, "70 003e91 0000fde800000001 c00002", "800e0d 000180 08 " + rd0 + " 00", "192.0.2.0/24", "", 1001, "without next hop"},
		"two labels":                     {IPv4VPN, "88 003e90 003ea1 0000fde800000001 c00002", "", "", "", 0, "a stack of 2 labels"},
		"VPN NLRI too short for an RD":   {IPv4VPN, "28 003e91 0000", "", "", "", 0, "too short"},
		"NLRI longer than its addresses": {IPv4Unicast, "21 c000020000", "", "", "", 0, "33 bits"},
		"NLRI without its octets":        {IPv4Unicast, "18 c000", "", "", "", 0, "in 2 octets"},
		"no NLRI":                        {IPv4Unicast, "", "", "", "", 0, "without length"},
	} {
		p := &api.Path{NlriBinary: octets(t, tt.nlri), PattrsBinary: [][]byte{{0x40, 1, 1, 0}}}
		if tt.attr != "" {
			p.PattrsBinary = append(p.PattrsBinary, octets(t, tt.attr))
		}
		raw, prefix, err := toRaw(tt.family, p)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", name, err, tt.err)
			}
			continue
		}
		if err != nil || prefix != netip.MustParsePrefix(tt.prefix) || raw.NextHop != netip.MustParseAddr(tt.nextHop) || raw.Label != tt.label || len(raw.Attributes) != 1 {
			t.Errorf("%s: %s, %+v, %v", name, prefix, raw, err)
		}
	}
}

func TestGoBGPReadsTheRouteDistinguishersThatItIsGiven(t *testing.T) {
	for _, s := range []string{"65000:4294967295", "192.0.2.1:65535", "4200000000:7", "2:65000:100", "0:0"} {
		rd, err := ParseRD(s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := rd.gobgp()
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := bgp.ParseRouteDistinguisher(text)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := theirs.Serialize(); err != nil || string(b) != string(rd[:]) {
			t.Errorf("%s as %s is %x, want %x, %v", s, text, b, rd, err)
		}
	}
	if _, err := (RD{0, 7}).gobgp(); err == nil {
		t.Error("an unknown type")
	}
}
