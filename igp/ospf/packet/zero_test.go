package packet

import (
	"net/netip"
	"reflect"
	"testing"
)

// What can't be read as a whole is not read in part: a caller that looks at it beside the error finds nothing.
func TestWhatCannotBeReadIsZero(t *testing.T) {
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	six := netip.MustParsePrefix("2001:db8::/64")
	for name, parse := range map[string]func() (any, error){
		"link LSA": func() (any, error) {
			return ParseV3Link(cut(V3LinkLSA{Priority: 1, Options: 2, Address: netip.MustParseAddr("fe80::1"), Prefixes: []V3Prefix{{Prefix: six}}}.Append(nil)))
		},
		"E-Intra-Area-Prefix LSA": func() (any, error) {
			l := V3EIntraArea{Referenced: Key{Type: V3Router, ID: 1, Adv: 2}, Prefixes: []V3ExtendedPrefix{{Type: V3TLVIntraAreaPrefix, Prefix: six}}}
			return ParseV3EIntraArea(cut(l.Append(nil)))
		},
		"grace LSA": func() (any, error) {
			return ParseGrace(V2, AppendTLV(nil, TLV{gracePeriodTLV, []byte{0, 0, 0, 1}}))
		},
	} {
		if got, err := parse(); err == nil || !reflect.ValueOf(got).IsZero() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
