package packet

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The octets are those of RFC 3623 appendix A and RFC 5187 section 2.2.
var graces = []struct {
	name string
	v    Version
	raw  []byte
	want Grace
}{
	{
		"OSPFv2 on a broadcast network", V2,
		[]byte{0, 1, 0, 4, 0, 0, 0, 120, 0, 2, 0, 1, 1, 0, 0, 0, 0, 3, 0, 4, 10, 0, 0, 7},
		Grace{Period: 2 * time.Minute, Reason: GraceRestart, Address: netip.MustParseAddr("10.0.0.7")},
	},
	{
		"OSPFv2, point-to-point", V2,
		[]byte{0, 1, 0, 4, 0, 0, 7, 8, 0, 2, 0, 1, 3, 0, 0, 0},
		Grace{Period: 30 * time.Minute, Reason: GraceSwitching},
	},
	{
		"OSPFv3, where type 3 means nothing", V3,
		[]byte{0, 1, 0, 4, 0, 0, 0, 1, 0, 2, 0, 1, 2, 0, 0, 0, 0, 3, 0, 2, 9, 9, 0, 0},
		Grace{Period: time.Second, Reason: GraceReload, Unknown: []TLV{{3, []byte{9, 9}}}},
	},
	{
		"the longest period, an unknown reason and an unknown TLV", V2,
		[]byte{0, 1, 0, 4, 255, 255, 255, 255, 0, 2, 0, 1, 200, 0, 0, 0, 0, 99, 0, 0},
		Grace{Period: 0xFFFFFFFF * time.Second, Reason: 200, Unknown: []TLV{{99, []byte{}}}},
	},
}

func TestGrace(t *testing.T) {
	for _, c := range graces {
		got, err := ParseGrace(c.v, c.raw)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
		if again := c.want.Append(nil); !bytes.Equal(again, c.raw) {
			t.Errorf("%s: written as %x, want %x", c.name, again, c.raw)
		}
	}
}

func TestGraceNeedNotBeInOrder(t *testing.T) {
	g, err := ParseGrace(V3, []byte{0, 2, 0, 1, 1, 0, 0, 0, 0, 1, 0, 4, 0, 0, 0, 5, 0, 1, 0, 4, 0, 0, 0, 9})
	if err != nil || g.Period != 5*time.Second || g.Reason != GraceRestart {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestWhatBreaksARuleInAGraceLSAIsNamed(t *testing.T) {
	for _, c := range []struct {
		name string
		v    Version
		raw  []byte
		rule string
	}{
		{"nothing", V2, nil, "grace period: is not there"},
		{"no period", V2, []byte{0, 2, 0, 1, 1, 0, 0, 0}, "grace period: is not there"},
		{"no reason", V3, []byte{0, 1, 0, 4, 0, 0, 0, 1}, "graceful restart reason: is not there"},
		{"period of two octets", V3, []byte{0, 1, 0, 2, 0, 1, 0, 0}, "grace period: 2 octets, must be 4"},
		{"reason of none", V2, []byte{0, 2, 0, 0}, "graceful restart reason: 0 octets, must be 1"},
		{"an address of IPv6", V2, append([]byte{0, 3, 0, 16}, make([]byte, 16)...), "IP interface address: 16 octets, must be 4"},
		{"half a TLV", V2, []byte{0, 1}, "at least 4"},
	} {
		if _, err := ParseGrace(c.v, c.raw); err == nil || !strings.Contains(err.Error(), c.rule) {
			t.Errorf("%s: %v, want %q", c.name, err, c.rule)
		}
	}
}

func TestWhichLSAsAreGrace(t *testing.T) {
	for _, c := range []struct {
		v    Version
		k    Key
		want bool
	}{
		{V2, Key{V2OpaqueLink, OpaqueID(OpaqueGrace, 0), 1}, true},
		{V2, Key{V2OpaqueLink, OpaqueID(OpaqueTE, 0), 1}, false},
		{V2, Key{V2OpaqueArea, OpaqueID(OpaqueGrace, 0), 1}, false},
		{V3, Key{V3Grace, 5, 1}, true},
		{V3, Key{V3Link, 5, 1}, false},
		{V2, Key{V3Grace, OpaqueID(OpaqueGrace, 0), 1}, false},
	} {
		if got := c.k.IsGrace(c.v); got != c.want {
			t.Errorf("%s %s: %t", c.v, c.k, got)
		}
	}
}

func TestReasonsOfARestartHaveNames(t *testing.T) {
	for r, want := range map[GraceReason]string{0: "unknown", 1: "software-restart", 3: "control-processor-switch", 4: "reason-4"} {
		if got := r.String(); got != want {
			t.Errorf("%d is %q", r, got)
		}
	}
}

// FuzzGrace holds that no input panics, and that what is written reads as the same.
func FuzzGrace(f *testing.F) {
	for _, c := range graces {
		f.Add(c.raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []Version{V2, V3} {
			g, err := ParseGrace(v, b)
			if err != nil {
				continue
			}
			again, err := ParseGrace(v, g.Append(nil))
			if err != nil || !reflect.DeepEqual(again, g) {
				t.Fatalf("%+v is read again as %+v, %v", g, again, err)
			}
		}
	})
}

// RFC 3623 section 3.1 names types 1 to 5 and 7 of OSPFv2; RFC 5187 section 3.1 and RFC 8362 give those of OSPFv3.
func TestWhichLSAsMakeTheTopology(t *testing.T) {
	for v, types := range map[Version][2][]LSType{
		V2: {
			{V2Router, V2Network, V2Summary, V2ASBR, V2External, V2NSSA},
			{6, 8, V2OpaqueLink, V2OpaqueArea, V2OpaqueAS},
		},
		V3: {
			{V3Router, V3Network, V3InterAreaPrefix, V3InterAreaRouter, V3External, V3NSSA, V3IntraAreaPrefix, V3ERouter, V3EExternal, V3EIntraAreaPrefix},
			{V3Grace, V3Link, V3ELink, 0xA00C, 0x2006, 0xA02A},
		},
	} {
		for i, list := range types {
			for _, typ := range list {
				if got := typ.Topology(v); got != (i == 0) {
					t.Errorf("%s type %#x: %t", v, uint16(typ), got)
				}
			}
		}
	}
}
