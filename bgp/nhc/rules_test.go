package nhc

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
)

func pncTLV(t testing.TB, proxy string) TLV {
	t.Helper()
	tlv, err := NewPNC(DefaultPNCCode, addr(proxy))
	if err != nil {
		t.Fatal(err)
	}
	return tlv
}

func TestSenderPutsTheTLVsInIncreasingCodeOrder(t *testing.T) {
	a, err := New(AFIIPv4, SAFIUnicast, addr("192.0.2.1"), TLV{9, []byte{1}}, pncTLV(t, "192.0.2.7"), TLV{3, []byte{1, 2, 3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	var codes []uint16
	for _, tlv := range a.TLVs {
		codes = append(codes, tlv.Code)
	}
	if want := []uint16{3, 9, DefaultPNCCode}; !reflect.DeepEqual(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
	a.TLVs[0], a.TLVs[1] = a.TLVs[1], a.TLVs[0]
	if err := a.CheckSend(); !errors.Is(err, ErrTLVOrder) {
		t.Errorf("unordered: %v", err)
	}
}

func TestSenderNeverSendsIdenticalTLVs(t *testing.T) {
	x, y := TLV{9, []byte{1}}, TLV{9, []byte{2}}
	a, err := New(AFIIPv4, SAFIUnicast, addr("192.0.2.1"), x, y, x)
	if err != nil || !reflect.DeepEqual(a.TLVs, []TLV{x, y}) {
		t.Errorf("got %v, %v; one code with two values stays, in order", a.TLVs, err)
	}
	a.TLVs = []TLV{x, y, x}
	if err := a.CheckSend(); !errors.Is(err, ErrDuplicateTLV) {
		t.Errorf("identical: %v", err)
	}
}

func TestSenderNeverSendsAnAttributeWithoutTLVs(t *testing.T) {
	if _, err := New(AFIIPv4, SAFIUnicast, addr("192.0.2.1")); !errors.Is(err, ErrNoTLV) {
		t.Errorf("%v", err)
	}
}

func TestSenderNeedsARealNextHop(t *testing.T) {
	for _, nh := range []netip.Addr{{}, addr("0.0.0.0"), addr("::"), addr("224.0.0.1"), addr("fe80::1%eth0"), addr("::ffff:192.0.2.1")} {
		if _, err := New(AFIIPv4, SAFIUnicast, nh, pncTLV(t, "192.0.2.7")); !errors.Is(err, ErrNextHop) {
			t.Errorf("%s: %v", nh, err)
		}
	}
}

func TestSenderSendsAVPNNextHopWithoutRD(t *testing.T) {
	a, err := New(AFIIPv4, SAFIVPN, addr("192.0.2.1"), pncTLV(t, "192.0.2.7"))
	if err != nil || a.RD != nil {
		t.Fatalf("%v, RD %x", err, a.RD)
	}
	a.RD = make([]byte, 8)
	if err := a.CheckSend(); !errors.Is(err, ErrNextHopLength) {
		t.Errorf("with RD: %v", err)
	}
}

func TestSenderNeverSendsWhatIsMalformed(t *testing.T) {
	a, _ := New(AFIIPv4, SAFIUnicast, addr("192.0.2.1"), pncTLV(t, "192.0.2.7"))
	b := a
	b.Trailing = []byte{1}
	if err := b.CheckSend(); !errors.Is(err, ErrTLVLength) {
		t.Errorf("trailing octets: %v", err)
	}
	b = a
	b.Flags = FlagOptional
	if err := b.CheckSend(); !errors.Is(err, ErrFlags) {
		t.Errorf("flags: %v", err)
	}
	b.Flags = FlagsSent | FlagPartial
	if err := b.CheckSend(); err != nil {
		t.Errorf("Partial is allowed: %v", err)
	}
}

// matchCase is a header and the route that it came with.
type matchCase struct {
	header string
	tlvs   []TLV
	route  Route
	match  bool
}

func checkMatch(t *testing.T, afi uint16, cases map[string]matchCase) {
	t.Helper()
	for name, tt := range cases {
		a := Attribute{Flags: FlagsSent, AFI: afi, SAFI: 1, NextHop: addr(tt.header), TLVs: tt.tlvs}
		err := a.Match(tt.route)
		if (err == nil) != tt.match || err != nil && !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v, want match %v", name, err, tt.match)
		}
	}
}

func TestReceiverDisregardsWhenTheNextHopsDiffer(t *testing.T) {
	id := addr("192.0.2.9")
	checkMatch(t, 1, map[string]matchCase{
		"IPv4":                     {"192.0.2.1", nil, Route{1, 1, addr("192.0.2.1"), id}, true},
		"IPv6 next hop with AFI 1": {"2001:db8::1", nil, Route{1, 1, addr("2001:db8::1"), id}, true},
		"next hop changed":         {"192.0.2.1", nil, Route{1, 1, addr("192.0.2.2"), id}, false},
		"header of zeros":          {"0.0.0.0", nil, Route{1, 1, addr("192.0.2.1"), id}, false},
		"both of zeros":            {"0.0.0.0", nil, Route{1, 1, addr("0.0.0.0"), id}, false},
		"route without next hop":   {"192.0.2.1", nil, Route{1, 1, netip.Addr{}, id}, false},
		"another AFI":              {"192.0.2.1", nil, Route{2, 1, addr("192.0.2.1"), id}, false},
		"another SAFI":             {"192.0.2.1", nil, Route{1, 128, addr("192.0.2.1"), id}, false},
	})
	checkMatch(t, 2, map[string]matchCase{
		"IPv6":                  {"2001:db8::1", nil, Route{2, 1, addr("2001:db8::1"), id}, true},
		"IPv6 next hop changed": {"2001:db8::1", nil, Route{2, 1, addr("2001:db8::2"), id}, false},
		"IPv6 header of zeros":  {"::", nil, Route{2, 1, addr("2001:db8::1"), id}, false},
	})
}

func TestReceiverNeedsAMatchingBGPIdentifierForALinkLocalNextHop(t *testing.T) {
	id := TLV{CodeBGPID, []byte{192, 0, 2, 9}}
	route := func(speaker string) Route { return Route{2, 1, addr("fe80::1%eth0"), addr(speaker)} }
	checkMatch(t, 2, map[string]matchCase{
		"without":               {"fe80::1", nil, route("192.0.2.9"), false},
		"the speaker":           {"fe80::1", []TLV{id}, route("192.0.2.9"), true},
		"another's":             {"fe80::1", []TLV{id}, route("192.0.2.8"), false},
		"wrong length":          {"fe80::1", []TLV{{CodeBGPID, []byte{192, 0, 2}}}, route("192.0.2.9"), false},
		"another header beside": {"fe80::2", []TLV{id}, route("192.0.2.9"), false},
	})
}

func TestReceiverTakesABGPIdentifierOfFourOrEightOctets(t *testing.T) {
	for _, tt := range []struct {
		value []byte
		ok    bool
	}{
		{[]byte{192, 0, 2, 9}, true},
		{[]byte{192, 0, 2, 9, 0, 0, 0xfd, 0xe8}, true}, // the AS number behind it isn't used
		{nil, false}, {[]byte{192, 0, 2}, false}, {[]byte{192, 0, 2, 9, 0}, false}, {make([]byte, 16), false},
	} {
		tlv := TLV{CodeBGPID, tt.value}
		got, err := tlv.BGPID()
		if (err == nil) != tt.ok || tt.ok && got != addr("192.0.2.9") {
			t.Errorf("%d octets: %s, %v", len(tt.value), got, err)
		}
		a := Attribute{AFI: 2, SAFI: 1, NextHop: addr("fe80::1"), TLVs: []TLV{tlv}}
		if a.Match(Route{2, 1, addr("fe80::1"), addr("192.0.2.9")}) == nil != tt.ok || len(a.Malformed()) == 0 != tt.ok {
			t.Errorf("%d octets: match or malformed is wrong: %v", len(tt.value), a.Malformed())
		}
	}
}

// checkPNC reads the PNC of an attribute with these TLVs.
func checkPNC(t *testing.T, want PNC, tlvs ...TLV) {
	t.Helper()
	a := Attribute{TLVs: tlvs}
	if got := a.PNC(DefaultPNCCode); !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v, want %+v", tlvs, got, want)
	}
	if bad := a.Malformed(); len(bad) != 0 {
		t.Errorf("%v: malformed %v", tlvs, bad)
	}
}

func TestReceiverTakesAProxyOfEitherFamily(t *testing.T) {
	for _, p := range []string{"192.0.2.7", "2001:db8::7"} {
		checkPNC(t, PNC{Present: true, Proxy: addr(p)}, pncTLV(t, p))
	}
}

func TestReceiverAcceptsTLVsInAnyOrder(t *testing.T) {
	low, high, pnc := TLV{1, nil}, TLV{0xff79, []byte{1}}, pncTLV(t, "192.0.2.7")
	for _, tlvs := range [][]TLV{{low, pnc, high}, {high, pnc, low}, {pnc, high, low}, {high, low, pnc}} {
		checkPNC(t, PNC{Present: true, Proxy: addr("192.0.2.7")}, tlvs...)
	}
}

func TestReceiverAcceptsDuplicateTLVs(t *testing.T) {
	pnc, other := pncTLV(t, "192.0.2.7"), TLV{0x100, []byte{1}}
	checkPNC(t, PNC{Present: true, Proxy: addr("192.0.2.7")}, pnc, other, pnc, other, pnc)
}

func TestReceiverIgnoresUnknownTLVsSilently(t *testing.T) {
	checkPNC(t, PNC{}) // none at all
	checkPNC(t, PNC{}, TLV{0x100, nil}, TLV{0xfffe, []byte{1, 2, 3}}, TLV{0, nil})
	checkPNC(t, PNC{Present: true, Proxy: addr("192.0.2.7")}, TLV{0x100, nil}, pncTLV(t, "192.0.2.7"), TLV{0xfffe, nil})
}

func TestReceiverIgnoresAPNCOfAnotherLength(t *testing.T) {
	for _, n := range []int{0, 1, 3, 5, 8, 15, 17, 32} {
		odd := TLV{DefaultPNCCode, make([]byte, n)}
		checkPNC(t, PNC{Present: true, UnknownLength: 1, Unknown: odd.Value}, odd)
		checkPNC(t, PNC{Present: true, Proxy: addr("192.0.2.7"), UnknownLength: 1, Unknown: odd.Value}, odd, pncTLV(t, "192.0.2.7"))
	}
}

func TestReceiverTakesTheFirstOfSeveralPNCs(t *testing.T) {
	a, b, c := pncTLV(t, "192.0.2.8"), pncTLV(t, "192.0.2.7"), pncTLV(t, "2001:db8::7")
	checkPNC(t, PNC{Present: true, Proxy: addr("192.0.2.8"), Different: 2}, a, b, c)
	checkPNC(t, PNC{Present: true, Proxy: addr("2001:db8::7"), Different: 1}, c, a)
}

func TestThePNCCodeIsConfigurable(t *testing.T) {
	tlv, err := NewPNC(65401, addr("192.0.2.7"))
	if err != nil {
		t.Fatal(err)
	}
	a := Attribute{TLVs: []TLV{tlv}}
	if a.PNC(DefaultPNCCode).Present || !a.PNC(65401).Present {
		t.Error("the PNC was found under another code than the one asked for")
	}
	if rest := a.Without(65401); len(rest) != 0 {
		t.Errorf("left over: %v", rest)
	}
}

func TestThePNCIsAUnicastAddress(t *testing.T) {
	for _, p := range []netip.Addr{{}, addr("0.0.0.0"), addr("::"), addr("224.0.0.5"), addr("ff02::5"), addr("fe80::1"), addr("2001:db8::1%eth0")} {
		if _, err := NewPNC(DefaultPNCCode, p); !errors.Is(err, ErrProxy) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if tlv := pncTLV(t, "::ffff:192.0.2.7"); len(tlv.Value) != 4 {
		t.Errorf("an IPv4-mapped address goes out as IPv4, got %x", tlv.Value)
	}
}

// What New makes comes back from Parse as it was, whatever the TLVs.
func TestRoundTripOfWhatTheSenderMakes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		nh, afi := addr("192.0.2.1"), AFIIPv4
		if rnd.IntN(2) == 0 {
			nh, afi = addr("2001:db8::1"), AFIIPv6
		}
		tlvs := []TLV{pncTLV(t, "192.0.2.7")}
		for range rnd.IntN(8) {
			v := make([]byte, rnd.IntN(80))
			for i := range v {
				v[i] = byte(rnd.Uint32())
			}
			tlvs = append(tlvs, TLV{uint16(rnd.IntN(4)), v})
		}
		a, err := New(afi, SAFIUnicast, nh, tlvs...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := a.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		a.Flags = b[0] // the extended length bit follows the length
		for i := range a.TLVs {
			if !a.TLVs[i].equal(got.TLVs[i]) {
				t.Fatalf("TLV %d: %v, want %v", i, got.TLVs[i], a.TLVs[i])
			}
		}
		a.TLVs, got.TLVs = nil, nil
		if !reflect.DeepEqual(a, got) {
			t.Fatalf("got %+v, want %+v", got, a)
		}
	}
}
