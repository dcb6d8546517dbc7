package packet

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func lsa(t *testing.T, v Version, h Header, body []byte) LSA {
	t.Helper()
	l, err := NewLSA(v, h, body)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWhatBreaksARuleIsNamed(t *testing.T) {
	hello := (&Packet{Version: V2, Router: 1, Body: &Hello{Neighbors: []ID{2}}}).Append(nil)
	router := lsa(t, V2, Header{Key: Key{V2Router, 1, 1}}, V2RouterLSA{Links: []V2Link{{}}}.Append(nil))
	update := (&Packet{Version: V2, Router: 1, Body: &Update{LSAs: []LSA{router}}}).Append(nil)
	request := (&Packet{Version: V2, Router: 1, Body: &Request{Keys: []Key{router.Key}}}).Append(nil)
	change := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		return b
	}
	// lengthen sets the packet's length to what is there.
	lengthen := func(b []byte, more ...byte) []byte {
		b = append(bytes.Clone(b), more...)
		b[headerLengthAt], b[headerLengthAt+1] = byte(len(b)>>8), byte(len(b))
		return b
	}
	for _, c := range []struct {
		name   string
		b      []byte
		offset int
		field  string
	}{
		{"nothing", nil, 0, "packet"},
		{"short header", hello[:23], 23, "packet"},
		{"other version", change(hello, 0, 3), 0, "version"},
		{"length below the header", change(hello, 2, 0, 23), 2, "packet length"},
		{"length above what is there", change(hello, 2, 1, 0), 2, "packet length"},
		{"type 0", change(hello, 1, 0), 1, "packet type"},
		{"type 6", change(hello, 1, 6), 1, "packet type"},
		{"a neighbour and a half", lengthen(hello, 0, 0), 24, "hello"},
		{"one octet behind the LSAs", lengthen(update, 0), 24 + 4 + 40 - 4, "link state update"},
		{"more LSAs than fit", change(update, 24, 0, 0, 0, 3), 24, "number of LSAs"},
		{"LSA shorter than its header", change(update, 28+18, 0, 19), 28 + 18, "LSA length"},
		{"LSA longer than the packet", change(update, 28+18, 1, 0), 28 + 18, "LSA length"},
		{"half a request", lengthen(request, 0, 0, 0, 0), 24, "link state request"},
		{"a type that OSPFv2 has not", change(request, 24, 0, 0, 1), 24, "LS type"},
	} {
		_, err := Parse(V2, c.b)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e.Field != c.field || e.Offset != c.offset {
			t.Errorf("%s: %s at %d, want %s at %d: %v", c.name, e.Field, e.Offset, c.field, c.offset, err)
		}
	}
}

func TestWhatBreaksARuleInALSAIsNamed(t *testing.T) {
	ext := func(subs ...TLV) []byte {
		return V2ExtendedPrefix{Prefix: netip.MustParsePrefix("10.1.0.0/16"), Subs: subs}.Append(nil)
	}
	set := func(b []byte, at int, v byte) []byte { b[at] = v; return b }
	for _, c := range []struct {
		name string
		err  error
		rule string
	}{
		{"router LSA, link cut", second(ParseV2Router([]byte{0, 0, 0, 1, 0})), "must be 12"},
		{"router LSA, TOS behind the end", second(ParseV2Router(append([]byte{0, 0, 0, 1}, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0))), "but 0 are left"},
		{"router LSA, more", second(ParseV2Router([]byte{0, 0, 0, 0, 1})), "behind the last link"},
		{"network LSA without routers", second(ParseV2Network([]byte{255, 255, 255, 0})), "at least one router"},
		{"extended prefix of 33 bits", second(ParseV2ExtendedPrefixes(set(ext(), 5, 33))), "at most 32"},
		{"flags of three octets", second(ParseV2ExtendedPrefixes(ext(TLV{V2SubPrefixFlags, []byte{1, 2, 3}}))), "multiple of 4 (RFC 9792"},
		{"TE router address of three octets", second(ParseTERouterAddress(V2, AppendTLV(nil, TLV{1, []byte{10, 0, 0}}))), "must be 4 (RFC 3630"},
		{"v3 TE router address of four octets", second(ParseTERouterAddress(V3, AppendTLV(nil, TLV{3, []byte{10, 0, 0, 1}}))), "must be 16 (RFC 5329"},
		{"TE LSA, TLV behind the end", second(ParseTERouterAddress(V2, []byte{0, 1, 0, 5, 0})), "but 1 octets are left"},
		{"source router ID of five octets", second(ParseSource(V2, []TLV{{V2SubSourceRouterID, make([]byte, 5)}})), "must be 4 (RFC 9084"},
		{"source router address of five octets", second(ParseSource(V3, []TLV{{V3SubSourceRouterAddr, make([]byte, 5)}})), "must be 4 or 16 (RFC 9084"},
		{"flags of none", second(ParseV2ExtendedPrefixes(ext(TLV{V2SubPrefixFlags, nil}))), "multiple of 4 (RFC 9792"},
		{"TLV behind the end", second(ParseTLVs([]byte{0, 1, 0, 5, 0})), "but 1 octets are left"},
		{"half a TLV", second(ParseTLVs([]byte{0, 1, 0})), "at least 4"},
		{"v3 router LSA", second(ParseV3Router(make([]byte, 5))), "16 for each link"},
		{"v3 prefix of 129 bits", second(ParseV3IntraArea(append([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 129, 0, 0, 0))), "at most 128"},
		{"v3 prefix cut", second(ParseV3IntraArea(append([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 64, 0, 0, 0, 1))), "but 1 are left"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.rule) {
			t.Errorf("%s: %v, want %q", c.name, c.err, c.rule)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// RFC 2328 section 13.1.
func TestTheMoreRecentInstance(t *testing.T) {
	base := Header{Sequence: 5, Checksum: 10, Age: 100}
	for _, c := range []struct {
		name string
		o    Header
		want int
	}{
		{"the same", base, 0},
		{"a lower sequence number", Header{Sequence: 4, Checksum: 99, Age: 0}, 1},
		{"the first sequence number is lower than all", Header{Sequence: InitialSequence, Checksum: 10, Age: 100}, 1},
		{"a higher checksum", Header{Sequence: 5, Checksum: 0xFFFF, Age: 100}, -1},
		{"MaxAge wins", Header{Sequence: 5, Checksum: 10, Age: MaxAge}, -1},
		{"much younger wins", Header{Sequence: 5, Checksum: 10, Age: 100 + MaxAgeDiff + 1}, 1},
		{"a little younger is the same", Header{Sequence: 5, Checksum: 10, Age: 100 + MaxAgeDiff}, 0},
		{"DoNotAge is no age", Header{Sequence: 5, Checksum: 10, Age: 100 | DoNotAge}, 0},
	} {
		if got := base.Newer(c.o); sign(got) != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if got := c.o.Newer(base); sign(got) != -c.want {
			t.Errorf("%s, the other way round: %d, want %d", c.name, got, -c.want)
		}
	}
}

func sign(n int) int { return min(max(n, -1), 1) }

func TestTheAgeMayChangeOnTheWay(t *testing.T) {
	l := lsa(t, V3, Header{Age: 1, Key: Key{V3Router, 0, 9}, Sequence: InitialSequence}, V3RouterLSA{}.Append(nil))
	b := l.Append(nil, 77)
	older, err := ParseLSA(V3, b)
	if err != nil || older.Age != 77 || !older.ChecksumOK() || older.Newer(l.Header) != 0 {
		t.Errorf("%+v, %v", older, err)
	}
	if l.Raw[1] != 1 {
		t.Error("the LSA itself was changed")
	}
}

func TestScopes(t *testing.T) {
	for _, c := range []struct {
		v    Version
		t    LSType
		want Scope
	}{
		{V2, V2Router, ScopeArea}, {V2, V2External, ScopeAS}, {V2, V2OpaqueLink, ScopeLink}, {V2, V2OpaqueArea, ScopeArea},
		{V2, V2OpaqueAS, ScopeAS}, {V2, 6, ScopeReserved}, {V2, 12, ScopeReserved},
		{V3, V3Router, ScopeArea}, {V3, V3Link, ScopeLink}, {V3, V3External, ScopeAS}, {V3, V3EIntraAreaPrefix, ScopeArea},
		{V3, V3EExternal, ScopeAS}, {V3, 0xE000, ScopeReserved}, {V3, 0x6000, ScopeReserved},
		{V3, 0x2FFF, ScopeLink}, // not known, U bit clear: RFC 5340 section 4.5.1
		{V3, 0xAFFF, ScopeArea}, // not known, U bit set
	} {
		if got := c.t.Scope(c.v); got != c.want {
			t.Errorf("%s type %#x: %s, want %s", c.v, uint16(c.t), got, c.want)
		}
	}
}

func TestFlagBits(t *testing.T) {
	for bit := range 256 {
		f := WithFlagBit(uint8(bit))
		if len(f) != (bit/32+1)*4 {
			t.Errorf("bit %d: %d octets (RFC 9792 section 2)", bit, len(f))
		}
		for other := range 256 {
			if FlagBit(f, uint8(other)) != (other == bit) {
				t.Errorf("bit %d of flags with bit %d", other, bit)
			}
		}
	}
	if FlagBit(nil, 2) {
		t.Error("what is not there is zero")
	}
	if got := WithFlagBit(2); got[0] != 0x20 {
		t.Errorf("bit 2 is %#x", got[0])
	}
}

func TestTheRouterAddressOfTrafficEngineering(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	of := func(typ uint16, a netip.Addr) []byte { return AppendTLV(nil, TLV{typ, a.AsSlice()}) }
	for _, c := range []struct {
		name string
		v    Version
		body []byte
		want netip.Addr
	}{
		{"OSPFv2", V2, of(1, four), four},
		{"OSPFv3", V3, of(3, six), six},
		{"OSPFv2, of a link", V2, of(2, four), netip.Addr{}},
		{"OSPFv3, of a link", V3, of(2, six), netip.Addr{}},
		{"nothing", V2, nil, netip.Addr{}},
	} {
		if got, err := ParseTERouterAddress(c.v, c.body); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

// RFC 9084 section 2.
func TestTheSourceOfAPrefix(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	for _, c := range []struct {
		name string
		v    Version
		subs []TLV
		want Source
	}{
		{"OSPFv2", V2, []TLV{{4, []byte{10, 0, 0, 9}}, {5, four.AsSlice()}}, Source{0x0A000009, four}},
		{"OSPFv3", V3, []TLV{{27, []byte{10, 0, 0, 9}}, {28, six.AsSlice()}}, Source{0x0A000009, six}},
		{"an IPv6 address in OSPFv2", V2, []TLV{{5, six.AsSlice()}}, Source{0, six}},
		{"the first of several", V2, []TLV{{5, four.AsSlice()}, {5, six.AsSlice()}, {4, []byte{0, 0, 0, 1}}, {4, []byte{0, 0, 0, 2}}}, Source{1, four}},
		{"the other version's sub-TLVs", V2, []TLV{{27, []byte{10, 0, 0, 9}}, {28, six.AsSlice()}}, Source{}},
		{"none", V3, nil, Source{}},
	} {
		if got, err := ParseSource(c.v, c.subs); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestMaskBits(t *testing.T) {
	for _, c := range []struct {
		mask uint32
		bits int
		ok   bool
	}{{0, 0, true}, {0xFFFFFF00, 24, true}, {0xFFFFFFFF, 32, true}, {0xFF00FF00, 8, false}, {1, 0, false}} {
		if bits, ok := MaskBits(c.mask); bits != c.bits || ok != c.ok {
			t.Errorf("%#x: %d, %t", c.mask, bits, ok)
		}
	}
}

func TestAnLSATooLongIsRefused(t *testing.T) {
	if _, err := NewLSA(V2, Header{}, make([]byte, 0x10000-HeaderLen)); err == nil {
		t.Error("made")
	}
}

func TestUpdatesAreFilledUpToTheRoom(t *testing.T) {
	of := func(octets ...int) (list []LSA) {
		for _, n := range octets {
			list = append(list, lsa(t, V2, Header{Key: Key{V2Router, 1, 1}}, make([]byte, n-HeaderLen)))
		}
		return list
	}
	for _, c := range []struct {
		name string
		list []LSA
		want []int // LSAs of each update
	}{
		{"none", nil, nil},
		{"exactly full", of(40, 56), []int{2}},
		{"one octet more", of(40, 57), []int{1, 1}},
		{"one that is too long goes alone", of(40, 200, 40, 40), []int{1, 1, 2}},
	} {
		var got []int
		for _, u := range Updates(c.list, 100) {
			got = append(got, len(u.LSAs))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
