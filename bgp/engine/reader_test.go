package engine

import (
	"net/netip"
	"reflect"
	"testing"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestAttributesThatAreReadAgainAreThoseOfThePath reads paths in a row with one reader, and each with a reader of
// its own: what one leaves behind must not get into another.
func TestAttributesThatAreReadAgainAreThoseOfThePath(t *testing.T) {
	hop := &api.NextHopAttribute{NextHop: "198.51.100.1"}
	other := apiPath(t, &api.OriginAttribute{}, hop)
	other.SourceId = "192.0.2.10"
	withdrawn := apiPath(t)
	withdrawn.IsWithdraw = true
	unreadable := apiPath(t, &api.OriginAttribute{}, &api.NextHopAttribute{NextHop: "nowhere"})
	rows := []*api.Path{
		apiPath(t, &api.OriginAttribute{Origin: 2}, hop, &api.UnknownAttribute{Type: attrNHC, Flags: 0xc0, Value: []byte{1, 2}}),
		apiPath(t, &api.OriginAttribute{Origin: 2}, hop, &api.UnknownAttribute{Type: attrNHC, Flags: 0xc0, Value: []byte{1, 2}}),
		apiPath(t, &api.OriginAttribute{Origin: 2}, hop, &api.UnknownAttribute{Type: attrNHC, Flags: 0xc0, Value: []byte{1, 3}}),
		apiPath(t, &api.OriginAttribute{Origin: 2}, hop),
		apiPath(t, &api.OriginAttribute{Origin: 2}, &api.MultiExitDiscAttribute{}),
		apiPath(t, &api.OriginAttribute{Origin: 2}, &api.LocalPrefAttribute{}), // the same octets
		withdrawn,
		apiPath(t, &api.OriginAttribute{Origin: 2}, &api.LocalPrefAttribute{}),
		unreadable,
		unreadable,
		apiPath(t),
		other,
		apiPath(t, &api.OriginAttribute{}, &api.AsPathAttribute{Segments: []*api.AsSegment{{Type: api.AsSegment_AS_SEQUENCE, Numbers: []uint32{1, 2}}}}, hop),
		apiPath(t, &api.OriginAttribute{}, hop),
	}
	var row pathReader
	for i, from := range rows {
		got, gotErr := row.read(from)
		want, err := new(pathReader).read(from)
		if !reflect.DeepEqual(got, want) || (gotErr == nil) != (err == nil) {
			t.Errorf("path %d: %+v, %v, want %+v, %v", i, got, gotErr, want, err)
		}
	}
}

// FuzzIPPrefix holds that a prefix is read as the library reads it, or not at all.
func FuzzIPPrefix(f *testing.F) {
	for _, p := range []string{"192.0.2.0/24", "0.0.0.0/0", "2001:db8::/32", "::/0"} {
		b, err := proto.Marshal(ipPrefix(netip.MustParsePrefix(p)))
		if err != nil {
			f.Fatal(err)
		}
		if got, ok := readIPPrefix(b); !ok || got.String() != p {
			f.Errorf("%s: %s, %v", p, got, ok)
		}
		f.Add(b)
	}
	f.Add([]byte{8, 24, 18, 200, 1})
	f.Add([]byte{8, 24, 8, 25, 18, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := readIPPrefix(b)
		if !ok {
			return
		}
		var m api.IPAddressPrefix
		if err := proto.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		if want, err := toPrefix(m.Prefix, m.PrefixLen); err != nil || got != want {
			t.Fatalf("%s, want %s, %v", got, want, err)
		}
	})
}

func ipPrefix(p netip.Prefix) *api.IPAddressPrefix {
	return &api.IPAddressPrefix{Prefix: p.Addr().String(), PrefixLen: uint32(p.Bits())}
}

// TestUnicastPrefixesAreReadTheQuickWay holds that GoBGP's mark of them is the one that is looked for.
func TestUnicastPrefixesAreReadTheQuickWay(t *testing.T) {
	nlri, err := anypb.New(ipPrefix(pfx))
	if err != nil || nlri.GetTypeUrl() != ipPrefixURL {
		t.Fatal(nlri, err)
	}
}
