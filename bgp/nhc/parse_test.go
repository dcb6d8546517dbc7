package nhc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var addr = netip.MustParseAddr

// The attributes of the specification, as seen between speakers.
const (
	vector4 = "c0 27 10 | 0001 01 04 0ac80202 | 0100 0004 abcdef01"
	vector6 = "c0 27 1c | 0002 01 10 20010db8000200000000000000000002 | 0100 0004 abcdef01"
)

func TestParseReadsTheVectors(t *testing.T) {
	for _, tt := range []struct {
		in      string
		afi     uint16
		nextHop string
	}{
		{vector4, AFIIPv4, "10.200.2.2"},
		{vector6, AFIIPv6, "2001:db8:2::2"},
	} {
		a, err := Parse(unhex(t, tt.in))
		if err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		if a.AFI != tt.afi || a.SAFI != SAFIUnicast || a.NextHop != addr(tt.nextHop) || a.Flags != FlagsSent || a.Partial() {
			t.Errorf("%s: got %+v", tt.in, a)
		}
		if len(a.TLVs) != 1 || a.TLVs[0].Code != 0x100 || hex.EncodeToString(a.TLVs[0].Value) != "abcdef01" {
			t.Errorf("%s: TLVs %v", tt.in, a.TLVs)
		}
	}
}

func TestParseKeepsEveryByte(t *testing.T) {
	for name, in := range map[string]string{
		"IPv4":                           vector4,
		"IPv6":                           vector6,
		"Partial":                        "e0" + vector4[2:],
		"extended length of a short one": "d0 27 0010 | 0001 01 04 0ac80202 | 0100 0004 abcdef01",
		"reserved flag bits":             "cf" + vector4[2:],
		"IPv6 next hop with AFI 1":       "c0 27 1c | 0001 01 10 20010db8000200000000000000000002 | 0100 0004 abcdef01",
		"VPN without RD":                 "c0 27 10 | 0001 80 04 0ac80202 | 0100 0004 abcdef01",
		"VPN with RD":                    "c0 27 18 | 0001 80 0c 0000fde800000001 0ac80202 | 0100 0004 abcdef01",
		"VPN IPv6 with RD":               "c0 27 24 | 0002 80 18 0000fde800000001 20010db8000200000000000000000002 | 0100 0004 abcdef01",
		"unknown, unordered, duplicate":  "c0 27 18 | 0001 01 04 0ac80202 | ff00 0000 | 0005 0000 | ff00 0000 | ff00 0000",
		"no TLV":                         "c0 27 08 | 0001 01 04 0ac80202",
		"TLV cut in the header":          "c0 27 0b | 0001 01 04 0ac80202 | 0100 00",
		"TLV running past the end":       "c0 27 10 | 0001 01 04 0ac80202 | ff78 0008 0a0b0001",
		"IPv4-mapped":                    "c0 27 14 | 0001 01 10 00000000000000000000ffff0ac80202",
	} {
		b := unhex(t, in)
		a, err := Parse(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := a.Append([]byte("before"))
		if err != nil {
			t.Errorf("%s: append: %v", name, err)
			continue
		}
		if !bytes.Equal(got, append([]byte("before"), b...)) {
			t.Errorf("%s:\n got %x\nwant %x", name, got[6:], b)
		}
	}
}

func TestParseRefusesAMalformedAttribute(t *testing.T) {
	for name, tt := range map[string]struct {
		in     string
		err    error
		offset int
	}{
		"nothing":                        {"", ErrTruncated, 0},
		"another type":                   {"c0 28 04 00010100", ErrType, 1},
		"extended length cut":            {"d0 27 00", ErrTruncated, 2},
		"length past the end":            {"c0 27 11" + vector4[9:], ErrLength, 2},
		"length short of the end":        {"c0 27 0f" + vector4[9:], ErrLength, 2},
		"not optional":                   {"40" + vector4[2:], ErrFlags, 0},
		"not transitive":                 {"80" + vector4[2:], ErrFlags, 0},
		"header cut":                     {"c0 27 03 | 0001 01", ErrTruncated, 3},
		"next hop cut":                   {"c0 27 07 | 0001 01 04 0ac802", ErrTruncated, 6},
		"next hop of 0 octets":           {"c0 27 04 | 0001 01 00", ErrNextHopLength, 6},
		"next hop of 5 octets":           {"c0 27 09 | 0001 01 05 0ac8020201", ErrNextHopLength, 6},
		"next hop of 32 octets":          {"c0 27 24 | 0002 01 20" + strings.Repeat("fe", 32), ErrNextHopLength, 6},
		"RD in unicast, IPv4":            {"c0 27 10 | 0001 01 0c 0000fde800000001 0ac80202", ErrNextHopLength, 6},
		"RD in unicast, IPv6":            {"c0 27 1c | 0002 01 18 0000fde800000001 20010db8000200000000000000000002", ErrNextHopLength, 6},
		"VPN next hop of another length": {"c0 27 0e | 0001 80 0a 00000000000000000000", ErrNextHopLength, 6},
	} {
		_, err := Parse(unhex(t, tt.in))
		var e *Error
		if !errors.Is(err, tt.err) || !errors.As(err, &e) {
			t.Errorf("%s: error %v, want %v", name, err, tt.err)
			continue
		}
		if e.Offset != tt.offset || e.Field == "" {
			t.Errorf("%s: %v: offset %d, want %d", name, err, e.Offset, tt.offset)
		}
	}
}

func TestParseReadsAVPNNextHopWithAndWithoutRD(t *testing.T) {
	for in, want := range map[string]string{
		"0001 80 04 0ac80202":                  "",
		"0001 80 0c 0000fde800000001 0ac80202": "0000fde800000001",
	} {
		a, err := ParseValue(FlagsSent, unhex(t, in))
		if err != nil {
			t.Fatal(err)
		}
		if a.NextHop != addr("10.200.2.2") || hex.EncodeToString(a.RD) != want {
			t.Errorf("%s: next hop %s, RD %x", in, a.NextHop, a.RD)
		}
	}
}

func TestAMalformedTLVIsIgnoredAndTheOthersUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		tlvs      string
		malformed error
	}{
		"cut in the header": {"ff78 0004 c0000207 | 0100 00", ErrTruncated},
		"past the end":      {"ff78 0004 c0000207 | 0100 0009 0102", ErrTruncated},
		"BGP ID length":     {"0003 0005 0102030405 | ff78 0004 c0000207", ErrTLVLength},
	} {
		a, err := ParseValue(FlagsSent, unhex(t, "0001 01 04 0ac80202"+tt.tlvs))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := a.PNC(DefaultPNCCode); p.Proxy != addr("192.0.2.7") {
			t.Errorf("%s: the other TLV's proxy is %s", name, p.Proxy)
		}
		if m := a.Malformed(); len(m) != 1 || !errors.Is(m[0], tt.malformed) {
			t.Errorf("%s: malformed %v, want %v", name, m, tt.malformed)
		}
	}
	ok, _ := Parse(unhex(t, vector4))
	if m := ok.Malformed(); m != nil {
		t.Errorf("a sound attribute has malformed TLVs: %v", m)
	}
}

func TestAppendRefusesWhatCannotBeWritten(t *testing.T) {
	for name, tt := range map[string]struct {
		a   Attribute
		err error
	}{
		"no next hop":   {Attribute{AFI: 1, SAFI: 1}, ErrNextHop},
		"zone":          {Attribute{AFI: 2, SAFI: 1, NextHop: addr("fe80::1%eth0")}, ErrNextHop},
		"RD in unicast": {Attribute{AFI: 1, SAFI: 1, NextHop: addr("192.0.2.1"), RD: make([]byte, 8)}, ErrNextHopLength},
		"short RD":      {Attribute{AFI: 1, SAFI: 128, NextHop: addr("192.0.2.1"), RD: make([]byte, 7)}, ErrNextHopLength},
		"long TLV":      {Attribute{AFI: 1, SAFI: 1, NextHop: addr("192.0.2.1"), TLVs: []TLV{{1, make([]byte, 65536)}}}, ErrLength},
		"long attribute": {Attribute{AFI: 1, SAFI: 1, NextHop: addr("192.0.2.1"),
			TLVs: []TLV{{1, make([]byte, 40000)}, {2, make([]byte, 40000)}}}, ErrLength},
	} {
		got, err := tt.a.Append([]byte{1})
		if !errors.Is(err, tt.err) || len(got) != 1 {
			t.Errorf("%s: %v with %d octets, want %v and dst as it was", name, err, len(got), tt.err)
		}
	}
}

func TestAppendSetsTheExtendedLengthWhenNeeded(t *testing.T) {
	a := Attribute{Flags: FlagsSent, AFI: 1, SAFI: 1, NextHop: addr("192.0.2.1"), TLVs: []TLV{{1, make([]byte, 300)}}}
	b, err := a.Append(nil)
	if err != nil || b[0] != FlagsSent|FlagExtended {
		t.Fatalf("flags %#x, %v", b[0], err)
	}
	if _, err := Parse(b); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{vector4, vector6, "e0" + vector4[2:],
		"c0 27 18 | 0001 80 0c 0000fde800000001 0ac80202 | 0100 0004 abcdef01",
		"c0 27 10 | 0001 01 04 0ac80202 | ff78 0008 0a0b0001",
		"c0 27 10 | 0001 01 04 0ac80202 | ff78 0004 c0000207"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset > len(b) {
				t.Fatalf("error %v for %x", err, b)
			}
			return
		}
		got, err := a.Append(nil)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%x came back as %x, %v", b, got, err)
		}
		a.Malformed()
		a.PNC(DefaultPNCCode)
		a.Match(Route{AFI: a.AFI, SAFI: a.SAFI, NextHop: a.NextHop})
		if n, err := New(a.AFI, a.SAFI, a.NextHop, a.TLVs...); err == nil {
			if err := n.CheckSend(); err != nil {
				t.Fatalf("New made what CheckSend refuses: %v", err)
			}
		}
	})
}
