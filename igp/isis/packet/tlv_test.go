package packet

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestPrefixEntries(t *testing.T) {
	for _, tc := range []struct {
		name, raw string
		want      Prefix
	}{
		{"RFC 5305: plain", "0000000a 18 0a0100", Prefix{Prefix: netip.MustParsePrefix("10.1.0.0/24"), Metric: 10}},
		{"RFC 5305: down, with sub-TLV 4 and the P flag", "fe000001 d8 0a0100 03 04 01 01",
			Prefix{Prefix: netip.MustParsePrefix("10.1.0.0/24"), Metric: 0xFE000001, Down: true, SubTLVs: TLVs{{4, []byte{1}}}}},
		{"RFC 5305: sub-TLVs announced, none there", "00000001 40 00",
			Prefix{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Metric: 1, EmptySubTLVs: true}},
		{"RFC 5305: a prefix length that is no multiple of eight", "00000001 17 0a0102",
			Prefix{Prefix: netip.MustParsePrefix("10.1.2.0/23"), Metric: 1}},
		{"RFC 5308: external, down, reserved bits", "00000001 d5 20 20010db8",
			Prefix{Prefix: netip.MustParsePrefix("2001:db8::/32"), Metric: 1, Down: true, External: true, Reserved: 0x15}},
		{"RFC 7794: source router ID", "00000001 20 80 20010db8000000000000000000000001 06 0b 04 0affff01",
			Prefix{Prefix: netip.MustParsePrefix("2001:db8::1/128"), Metric: 1, SubTLVs: TLVs{{11, []byte{10, 255, 255, 1}}}}},
		{"an unknown sub-TLV", "00000001 48 0a 05 c8 03 010203",
			Prefix{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Metric: 1, SubTLVs: TLVs{{200, []byte{1, 2, 3}}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw := unhex(t, tc.raw)
			got, err := ParsePrefixes(raw, tc.want.Prefix.Addr().Is6())
			if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], tc.want) {
				t.Fatalf("%v\n got %+v\nwant %+v", err, got, tc.want)
			}
			if out, err := got[0].Append(nil); err != nil || !bytes.Equal(out, raw) || got[0].Len() != len(raw) {
				t.Errorf("%v: written %x, Len %d, want %x", err, out, got[0].Len(), raw)
			}
		})
	}
}

func TestMalformedTLVsAreRefusedWithFieldAndRule(t *testing.T) {
	prefixes := func(ipv6 bool) func([]byte) error {
		return func(b []byte) error { _, err := ParsePrefixes(b, ipv6); return err }
	}
	list := func(typ uint8, read func(TLVs) error) func([]byte) error {
		return func(b []byte) error { return read(TLVs{{typ, b}}) }
	}
	for _, tc := range []struct {
		name, raw, field string
		at               int
		parse            func([]byte) error
	}{
		{"IPv4 prefix: four octets", "00000001", "prefix entry", 0, prefixes(false)},
		{"IPv4 prefix: /33", "00000001 21 0a01000000", "prefix length", 4, prefixes(false)},
		{"IPv4 prefix: cut", "00000001 18 0a01", "prefix", 5, prefixes(false)},
		{"IPv4 prefix: no sub-TLV length", "00000001 48 0a", "sub-TLV length", 6, prefixes(false)},
		{"IPv4 prefix: sub-TLVs beyond the end", "00000001 48 0a 04 0401 01", "sub-TLV length", 6, prefixes(false)},
		{"IPv4 prefix: sub-TLV beyond the sub-TLVs", "00000001 48 0a 03 0402 01", "TLV length", 8, prefixes(false)},
		{"second IPv4 prefix cut", "00000001 08 0a 00000001 18 0a", "prefix", 11, prefixes(false)},
		{"IPv6 prefix: five octets", "00000001 00", "prefix entry", 0, prefixes(true)},
		{"IPv6 prefix: /129", "00000001 00 81", "prefix length", 5, prefixes(true)},
		{"IS reachability: ten octets", "00000000000200 00000a", "IS reachability", 0, func(b []byte) error { _, err := ParseISReach(b); return err }},
		{"IS reachability: sub-TLVs beyond the end", "00000000000200 00000a 01", "sub-TLV length", 10, func(b []byte) error { _, err := ParseISReach(b); return err }},
		{"area of no octets", "00", "area address", 0, list(TLVAreas, func(l TLVs) error { _, err := l.Areas(); return err })},
		{"area of 14 octets", "0e 4900010002000300040005000600", "area address", 0, list(TLVAreas, func(l TLVs) error { _, err := l.Areas(); return err })},
		{"area cut", "03 4900", "area address", 0, list(TLVAreas, func(l TLVs) error { _, err := l.Areas(); return err })},
		{"LAN neighbour cut", "000000000001 00", "IS neighbours", 0, list(TLVISNeighborsLAN, func(l TLVs) error { _, err := l.LANNeighbors(); return err })},
		{"LSP entry cut", "04af 0000000000020000 00000001 7f", "LSP entries", 1, list(TLVLSPEntries, func(l TLVs) error { _, err := l.Entries(); return err })},
		{"IPv4 address cut", "0a0000", "IPv4 interface addresses", 0, list(TLVIPv4Interfaces, func(l TLVs) error { _, err := l.IPv4Interfaces(); return err })},
		{"IPv6 address cut", "fe80", "IPv6 interface addresses", 0, list(TLVIPv6Interfaces, func(l TLVs) error { _, err := l.IPv6Interfaces(); return err })},
		{"topology cut", "000200", "multi-topology", 0, list(TLVMultiTopology, func(l TLVs) error { _, err := l.Topologies(); return err })},
		{"three-way of 4 octets", "00000000", "three-way adjacency", 0, list(TLVThreeWay, func(l TLVs) error { _, err := l.ThreeWay(); return err })},
		{"three-way of no octets", "", "three-way adjacency", 0, list(TLVThreeWay, func(l TLVs) error { _, err := l.ThreeWay(); return err })},
		{"three-way state 3", "03", "three-way adjacency state", 0, list(TLVThreeWay, func(l TLVs) error { _, err := l.ThreeWay(); return err })},
		{"topology of one octet", "00", "topology", 0, func(b []byte) error { _, _, _, err := ParseMT(b); return err }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.parse(unhex(t, tc.raw))
			var e *Error
			if !errors.As(err, &e) || e.Field != tc.field || e.Offset != tc.at {
				t.Errorf("%v, want %s at %d", err, tc.field, tc.at)
			}
		})
	}
}

func TestPrefixAttributeFlags(t *testing.T) {
	p := Prefix{SubTLVs: TLVs{{SubTLVPrefixAttributes, []byte{0x41, 0x80}}}}
	for n, want := range map[uint8]bool{FlagReadvertised: true, FlagProxy: true, 8: true, FlagExternal: false, 9: false, 255: false} {
		if p.Attributes().Has(n) != want {
			t.Errorf("bit %d: %v", n, !want)
		}
	}
	if (Prefix{}).Attributes().Has(0) {
		t.Error("missing octets count as zero (RFC 7794 section 2.1)")
	}
	f := PrefixFlags{0x40}
	for n, want := range map[uint8][]byte{7: {0x41}, 8: {0x40, 0x80}, 23: {0x40, 0, 1}} {
		if got := f.With(n); !bytes.Equal(got, want) {
			t.Errorf("with bit %d: %x, want %x", n, []byte(got), want)
		}
	}
	if !bytes.Equal(f, []byte{0x40}) {
		t.Error("With changed the flags themselves")
	}
}

func TestSourceRouterIDsOfAWrongLengthAreNone(t *testing.T) {
	p := Prefix{SubTLVs: TLVs{{11, make([]byte, 5)}, {12, make([]byte, 4)}}}
	if v4, v6 := p.SourceRouterIDs(); v4.IsValid() || v6.IsValid() {
		t.Errorf("%s, %s", v4, v6)
	}
	p = Prefix{SubTLVs: TLVs{{12, netip.MustParseAddr("2001:db8::7").AsSlice()}, {11, []byte{192, 0, 2, 7}}}}
	if v4, v6 := p.SourceRouterIDs(); v4.String() != "192.0.2.7" || v6.String() != "2001:db8::7" {
		t.Errorf("%s, %s", v4, v6)
	}
}

func TestThreeWayForms(t *testing.T) {
	for _, tc := range []struct {
		raw  string
		want ThreeWay
	}{
		{"02", ThreeWay{State: AdjacencyDown}},
		{"01 00000002", ThreeWay{State: AdjacencyInitializing, HasCircuit: true, Circuit: 2}},
		{"00 00000002 000000000002", ThreeWay{HasCircuit: true, Circuit: 2, HasNeighbor: true, Neighbor: SystemID{5: 2}}},
		{"00 00000002 000000000002 00000009", ThreeWay{HasCircuit: true, Circuit: 2, HasNeighbor: true, Neighbor: SystemID{5: 2}, NeighborCircuit: 9}},
	} {
		got, err := TLVs{{TLVThreeWay, unhex(t, tc.raw)}}.ThreeWay()
		if err != nil || *got != tc.want {
			t.Errorf("%s: %+v, %v", tc.raw, got, err)
		}
	}
	if got, err := (TLVs{}).ThreeWay(); got != nil || err != nil {
		t.Errorf("without the TLV: %+v, %v", got, err)
	}
}

func TestSmallTLVs(t *testing.T) {
	l := TLVs{
		{TLVDynamicHostname, []byte("r1\x1b[31m")},
		{TLVTERouterID, []byte{192, 0, 2, 1}},
		{TLVMultiTopology, []byte{0x80, 0, 0x40, 2}},
		{TLVISNeighborsLAN, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}},
		{TLVRestart, []byte{0x01, 0, 30}},
		{TLVProtocolsSupported, []byte{NLPIDIPv4, NLPIDIPv6}},
	}
	if got := l.Hostname(); got != "r1?[31m" {
		t.Errorf("host name %q: what a terminal obeys must not pass", got)
	}
	if v4, v6 := l.TERouterIDs(); v4.String() != "192.0.2.1" || v6.IsValid() {
		t.Errorf("router IDs %s, %s", v4, v6)
	}
	if got, err := l.Topologies(); err != nil || !reflect.DeepEqual(got, []Topology{{ID: 0, Overload: true}, {ID: MTIPv6, Attached: true}}) {
		t.Errorf("topologies %+v, %v", got, err)
	}
	if got, err := l.LANNeighbors(); err != nil || len(got) != 2 || got[1] != [6]byte{2, 0, 0, 0, 0, 2} {
		t.Errorf("neighbours %v, %v", got, err)
	}
	if got := l.Restart(); got == nil || !got.Request || got.Acknowledge || !got.HasTime || got.RemainingTime != 30 || got.HasNeighbor {
		t.Errorf("restart %+v", got)
	}
	if got, ok := l.Protocols(); !ok || !bytes.Equal(got, []byte{0xCC, 0x8E}) {
		t.Errorf("protocols %x, %v", got, ok)
	}
}

func TestPurgeOriginator(t *testing.T) {
	for _, p := range []PurgeOriginator{
		{Originator: SystemID{5: 1}},
		{Originator: SystemID{5: 1}, Received: SystemID{5: 2}, HasReceived: true},
	} {
		if got, ok := (TLVs{p.TLV()}).PurgeOriginator(); !ok || got != p {
			t.Errorf("%+v, %v; want %+v", got, ok, p)
		}
	}
	if _, ok := (TLVs{{TLVPurgeOriginator, make([]byte, 7)}}).PurgeOriginator(); ok {
		t.Error("a number of system IDs of 0 is accepted")
	}
}

func TestMultiTopologyRoundTrip(t *testing.T) {
	id, reserved, rest, err := ParseMT([]byte{0xF0, 0x02, 9})
	if err != nil || id != MTIPv6 || reserved != 0xF || !bytes.Equal(rest, []byte{9}) {
		t.Errorf("%d, %x, %x, %v", id, reserved, rest, err)
	}
	if got := AppendMT(nil, MTIPv6); !bytes.Equal(got, []byte{0, 2}) {
		t.Errorf("%x", got)
	}
}

func TestPaddingFillsWhatCanBeFilled(t *testing.T) {
	for n := range 2000 {
		want := n
		if n == 1 {
			want = 0
		}
		if got := PaddingTLVs(n).Len(); got != want {
			t.Fatalf("%d octets: filled %d", n, got)
		}
		if _, err := PaddingTLVs(n).Append(nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyEntriesNeedSeveralTLVs(t *testing.T) {
	entries := make([]Entry, 40)
	for i := range entries {
		entries[i] = Entry{ID: SystemID{}.Node(0).Fragment(uint8(i)), Sequence: uint32(i)}
	}
	l := EntryTLVs(entries)
	got, err := l.Entries()
	if len(l) != 3 || err != nil || !reflect.DeepEqual(got, entries) {
		t.Errorf("%d TLVs, %v", len(l), err)
	}
	if len(EntryTLVs(nil)) != 0 {
		t.Error("a TLV without entries is made")
	}
}

func TestIdentifiers(t *testing.T) {
	area, sys, err := ParseNET("49.0001.1921.6800.1001.00")
	if err != nil || area.String() != "49.0001" || sys.String() != "1921.6800.1001" {
		t.Fatalf("%s, %s, %v", area, sys, err)
	}
	id := sys.Node(2).Fragment(0x1F)
	if id.String() != "1921.6800.1001.02-1f" || id.Fragment() != 0x1F || id.Node().Pseudonode() != 2 || id.Node().System() != sys {
		t.Errorf("%s", id)
	}
	if got, err := ParseSystemID("1921.6800.1001"); err != nil || got != sys {
		t.Errorf("%s, %v", got, err)
	}
	if id.Compare(MaxLSPID) >= 0 || id.Compare(id) != 0 {
		t.Error("order")
	}
	for _, bad := range []string{"", "1921.6800", "1921.6800.10011", "192168001001", "1921.68.001001", "zz21.6800.1001"} {
		if _, err := ParseSystemID(bad); err == nil {
			t.Errorf("system ID %q is accepted", bad)
		}
	}
	for _, bad := range []string{"", "1921.6800.1001.00", "49.0001.1921.6800.1001.01", "49.00010.1921.6800.1001.00", strings.Repeat("49", 14) + "1921.6800.1001.00"} {
		if a, s, err := ParseNET(bad); err == nil {
			t.Errorf("NET %q is accepted: %s %s", bad, a, s)
		}
	}
	for _, bad := range []string{"", "4", strings.Repeat("49", 14)} {
		if _, err := ParseArea(bad); err == nil {
			t.Errorf("area %q is accepted", bad)
		}
	}
}
