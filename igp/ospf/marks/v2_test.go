package marks

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/igp/ospf/packet"
)

const self packet.ID = 10<<24 | 9 // 10.0.0.9

var (
	prefix  = netip.MustParsePrefix("192.0.2.0/24")
	bit2    = Config{Version: packet.V2, Carrier: Carrier{Bit: 2}}
	bit2v3  = Config{Version: packet.V3, Carrier: Carrier{Bit: 2}}
	marked  = packet.TLV{Type: packet.V2SubPrefixFlags, Value: packet.WithFlagBit(2)}
	proxy   = netip.MustParseAddr("10.1.1.1")
	proxy6  = netip.MustParseAddr("2001:db8:1::1")
	none    = netip.Addr{}
	ownAddr = self.Address()
)

func lsa(t testing.TB, v packet.Version, typ packet.LSType, id packet.ID, body []byte) packet.LSA {
	t.Helper()
	l, err := packet.NewLSA(v, packet.Header{Key: packet.Key{Type: typ, ID: id, Adv: self}, Sequence: packet.InitialSequence}, body)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// extended is an Extended Prefix Opaque LSA of OSPFv2.
func extended(t testing.TB, typ packet.LSType, number uint32, prefixes ...packet.V2ExtendedPrefix) packet.LSA {
	var body []byte
	for _, p := range prefixes {
		body = p.Append(body)
	}
	return lsa(t, packet.V2, typ, packet.OpaqueID(packet.OpaqueExtendedPrefix, number), body)
}

// of is the TLV of the prefix.
func of(route, flags uint8, subs ...packet.TLV) packet.V2ExtendedPrefix {
	return packet.V2ExtendedPrefix{RouteType: route, Flags: flags, Prefix: prefix, Subs: subs}
}

func address(a netip.Addr) packet.TLV {
	return packet.TLV{Type: packet.V2SubSourceRouterAddr, Value: a.AsSlice()}
}

func sourceRouter(id packet.ID) packet.TLV {
	return packet.TLV{Type: packet.V2SubSourceRouterID, Value: id.Address().AsSlice()}
}

func stub(t testing.TB, a packet.ID, mask uint32) packet.LSA {
	return lsa(t, packet.V2, packet.V2Router, self, packet.V2RouterLSA{Links: []packet.V2Link{{Kind: packet.LinkStub, ID: a, Data: packet.ID(mask)}}}.Append(nil))
}

func te(t testing.TB, typ packet.LSType, number uint32, a netip.Addr) packet.LSA {
	return lsa(t, packet.V2, typ, packet.OpaqueID(packet.OpaqueTE, number), packet.AppendTLV(nil, packet.TLV{Type: 1, Value: a.AsSlice()}))
}

// check reads LSAs in the order of their keys and compares what is said of the prefix.
func check(t *testing.T, name string, c Config, lsas []packet.LSA, p netip.Prefix, want Entry) {
	t.Helper()
	slices.SortStableFunc(lsas, func(x, y packet.LSA) int { return x.Compare(y.Key) })
	s, err := Read(c, self, lsas)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got, ok := s.Prefixes[p]; !ok || got != want {
		t.Errorf("%s: %+v, %t, want %+v", name, got, ok, want)
	}
}

func TestCarriersOfOSPFv2(t *testing.T) {
	flags := func(b ...byte) packet.TLV { return packet.TLV{Type: packet.V2SubPrefixFlags, Value: b} }
	for _, c := range []struct {
		name    string
		carrier Carrier
		tlv     packet.V2ExtendedPrefix
		p       bool
	}{
		{"bit 2 (RFC 9792)", Carrier{Bit: 2}, of(1, 0, flags(0x20, 0, 0, 0)), true},
		{"another bit", Carrier{Bit: 2}, of(1, 0, flags(0x40, 0, 0, 0)), false},
		{"no flags", Carrier{Bit: 2}, of(1, 0), false},
		{"bit 33 in the second word", Carrier{Bit: 33}, of(1, 0, flags(0, 0, 0, 0, 0x40, 0, 0, 0)), true},
		{"bit 33 behind the end", Carrier{Bit: 33}, of(1, 0, flags(0xFF, 0xFF, 0xFF, 0xFF)), false},
		{"OSPFv3's type of the sub-TLV", Carrier{Bit: 2}, of(1, 0, packet.TLV{Type: packet.V3SubPrefixFlags, Value: []byte{0x20, 0, 0, 0}}), false},
		{"of two sub-TLVs the first", Carrier{Bit: 2}, of(1, 0, flags(0, 0, 0, 0), flags(0x20, 0, 0, 0)), false},
		{"the TLV's flags", Carrier{TLVFlags: 0x08}, of(1, 0x08), true},
		{"the TLV's flags, with others", Carrier{TLVFlags: 0x08}, of(1, 0x4C), true},
		{"the TLV's flags, clear", Carrier{TLVFlags: 0x08}, of(1, 0x40, marked), false},
		{"a mask of two bits, one set", Carrier{TLVFlags: 0x0C}, of(1, 0x08), false},
		{"the TLV's flags are not looked at", Carrier{Bit: 2}, of(1, 0x2F), false},
	} {
		check(t, c.name, Config{packet.V2, c.carrier}, []packet.LSA{extended(t, packet.V2OpaqueArea, 1, c.tlv)}, prefix, Entry{P: c.p})
	}
}

func TestWhichLSAOfOSPFv2Counts(t *testing.T) {
	area, link, as := packet.V2OpaqueArea, packet.V2OpaqueLink, packet.V2OpaqueAS
	yes, no := of(1, 0, marked, address(proxy)), of(1, 0, address(proxy))
	for _, c := range []struct {
		name string
		lsas []packet.LSA
		want Entry
	}{
		{"area scope", []packet.LSA{extended(t, area, 7, yes)}, Entry{P: true, Proxy: proxy}},
		{"link scope: announced, not marked", []packet.LSA{extended(t, link, 7, yes)}, Entry{}},
		{"AS scope: announced, not marked", []packet.LSA{extended(t, as, 7, yes)}, Entry{}},
		{"area scope comes before the others", []packet.LSA{extended(t, link, 1, no), extended(t, area, 7, yes), extended(t, as, 1, no)}, Entry{P: true, Proxy: proxy}},
		{"and takes P away", []packet.LSA{extended(t, link, 1, yes), extended(t, area, 7, no), extended(t, as, 1, yes)}, Entry{}},
		{"link scope comes before AS scope", []packet.LSA{extended(t, link, 9, of(3, 0)), extended(t, as, 1, no)}, Entry{Leaked: true}},
		{"RFC 7684: the lowest opaque ID", []packet.LSA{extended(t, area, 2, no), extended(t, area, 1, yes)}, Entry{P: true, Proxy: proxy}},
		{"RFC 7684: the lowest opaque ID, the other way round", []packet.LSA{extended(t, area, 1, no), extended(t, area, 2, yes)}, Entry{}},
		{"of two TLVs in one LSA the first", []packet.LSA{extended(t, area, 1, yes, no)}, Entry{P: true, Proxy: proxy}},
	} {
		check(t, c.name, bit2, c.lsas, prefix, c.want)
	}
}

func TestWhatIsLeakedInOSPFv2(t *testing.T) {
	for _, c := range []struct {
		route, flags uint8
		leaked       bool
	}{
		{packet.RouteUnspecified, 0, false}, {packet.RouteIntraArea, 0, false}, {packet.RouteInterArea, 0, true},
		{packet.RouteExternal, 0, true}, {packet.RouteNSSA, 0, true}, {9, 0, true},
		{packet.RouteIntraArea, packet.ExtPrefixA, true}, {packet.RouteIntraArea, packet.ExtPrefixN, false},
	} {
		tlv := of(c.route, c.flags, marked, address(proxy))
		check(t, "route type", bit2, []packet.LSA{extended(t, packet.V2OpaqueArea, 1, tlv)}, prefix, Entry{P: true, Leaked: c.leaked, Proxy: proxy})
	}
}

func TestTheProxyOfOSPFv2(t *testing.T) {
	const other packet.ID = 10<<24 | 77
	router := netip.MustParseAddr("10.7.7.7")
	host := ^uint32(0)
	named := func(route uint8, subs ...packet.TLV) packet.LSA {
		return extended(t, packet.V2OpaqueArea, 5, of(route, 0, append([]packet.TLV{marked}, subs...)...))
	}
	hostPrefix := func(a packet.ID, bits int) packet.LSA {
		return extended(t, packet.V2OpaqueArea, 6, packet.V2ExtendedPrefix{RouteType: 1, Prefix: netip.PrefixFrom(a.Address(), bits).Masked()})
	}
	summary := func(a packet.ID, mask, metric uint32) packet.LSA {
		return lsa(t, packet.V2, packet.V2Summary, a, []byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask), 0, byte(metric >> 16), byte(metric >> 8), byte(metric)})
	}
	p2p := lsa(t, packet.V2, packet.V2Router, self, packet.V2RouterLSA{Links: []packet.V2Link{{Kind: packet.LinkPointToPoint, ID: self, Data: packet.ID(host)}}}.Append(nil))
	const intra, inter = packet.RouteIntraArea, packet.RouteInterArea
	for _, c := range []struct {
		name string
		lsas []packet.LSA
		want netip.Addr
	}{
		{"what the prefix says, before all others", []packet.LSA{named(intra, address(proxy)), te(t, packet.V2OpaqueArea, 1, router), stub(t, self, host)}, proxy},
		{"an IPv6 address", []packet.LSA{named(intra, address(proxy6))}, proxy6},
		{"an IPv4 address written as IPv6", []packet.LSA{named(intra, address(netip.MustParseAddr("::ffff:10.1.1.1")))}, proxy},
		{"0.0.0.0 says nothing", []packet.LSA{named(intra, address(netip.IPv4Unspecified())), te(t, packet.V2OpaqueArea, 1, router)}, router},
		{"nor does a group", []packet.LSA{named(intra, address(netip.MustParseAddr("224.0.0.5"))), te(t, packet.V2OpaqueArea, 1, router)}, router},
		{"nor loopback", []packet.LSA{named(intra, address(netip.MustParseAddr("127.0.0.1")))}, none},
		{"the TE router address", []packet.LSA{named(intra), te(t, packet.V2OpaqueArea, 1, router), stub(t, self, host)}, router},
		{"of several the lowest opaque ID", []packet.LSA{named(intra), te(t, packet.V2OpaqueArea, 2, proxy), te(t, packet.V2OpaqueArea, 1, router)}, router},
		{"a TE LSA of AS scope is none", []packet.LSA{named(intra), te(t, packet.V2OpaqueAS, 1, router)}, none},
		{"a TE router address that can't be used", []packet.LSA{named(intra), te(t, packet.V2OpaqueArea, 1, netip.IPv4Unspecified()), stub(t, self, host)}, ownAddr},
		{"the router ID, which is a stub host", []packet.LSA{named(intra), stub(t, self, host)}, ownAddr},
		{"the router ID, which is a host prefix", []packet.LSA{named(intra), hostPrefix(self, 32)}, ownAddr},
		{"the router ID in a stub network says nothing", []packet.LSA{named(intra), stub(t, self, 0xFFFFFF00)}, none},
		{"nor a link that is not a stub", []packet.LSA{named(intra), p2p}, none},
		{"nor in a shorter prefix", []packet.LSA{named(intra), hostPrefix(self, 31)}, none},
		{"nor another host", []packet.LSA{named(intra), stub(t, other, host)}, none},
		{"nothing at all", []packet.LSA{named(intra)}, none},
		{"RFC 9084: another source of an intra-area prefix is ignored", []packet.LSA{named(intra, sourceRouter(other)), stub(t, other, host), te(t, packet.V2OpaqueArea, 1, router)}, router},
		{"leaked, with an address", []packet.LSA{named(inter, address(proxy), sourceRouter(other))}, proxy},
		{"leaked: the border router is not the proxy", []packet.LSA{named(inter), te(t, packet.V2OpaqueArea, 1, router), stub(t, self, host)}, none},
		{"leaked: the source's ID, which is a host in its summary", []packet.LSA{named(inter, sourceRouter(other)), summary(other, host, 5)}, other.Address()},
		{"leaked: the source's ID, which is a host prefix", []packet.LSA{named(inter, sourceRouter(other)), hostPrefix(other, 32)}, other.Address()},
		{"leaked: the source's ID, not reachable", []packet.LSA{named(inter, sourceRouter(other)), summary(other, host, packet.MaxMetric)}, none},
		{"leaked: the source's ID, in a network", []packet.LSA{named(inter, sourceRouter(other)), summary(other, 0xFFFFFF00, 5)}, none},
		{"leaked: the source's ID alone", []packet.LSA{named(inter, sourceRouter(other))}, none},
		{"leaked: a source of 0", []packet.LSA{named(inter, sourceRouter(0)), stub(t, 0, host)}, none},
	} {
		route := c.lsas[0].Body()[4]
		check(t, c.name, bit2, c.lsas, prefix, Entry{P: true, Leaked: route == inter, Proxy: c.want})
	}
}

func TestOnlyAMarkedPrefixHasAProxy(t *testing.T) {
	check(t, "not marked", bit2, []packet.LSA{extended(t, packet.V2OpaqueArea, 1, of(1, 0, address(proxy)))}, prefix, Entry{})
}

func TestSeveralPrefixesOfALSA(t *testing.T) {
	second := packet.V2ExtendedPrefix{RouteType: 3, Prefix: netip.MustParsePrefix("198.51.100.0/25")}
	whole := packet.V2ExtendedPrefix{RouteType: 1, Prefix: netip.MustParsePrefix("0.0.0.0/0"), Subs: []packet.TLV{marked}}
	six := packet.V2ExtendedPrefix{RouteType: 1, Family: 1, Prefix: netip.MustParsePrefix("203.0.113.0/24"), Subs: []packet.TLV{marked}}
	s, err := Read(bit2, self, []packet.LSA{extended(t, packet.V2OpaqueArea, 1, of(1, 0, marked, address(proxy)), second, whole, six)})
	want := map[netip.Prefix]Entry{prefix: {P: true, Proxy: proxy}, second.Prefix: {Leaked: true}, whole.Prefix: {P: true}}
	if err != nil || s.Unreadable != 0 || !maps.Equal(s.Prefixes, want) {
		t.Errorf("%+v, %v, want %v", s, err, want)
	}
}

func TestWhatDoesntCount(t *testing.T) {
	good := extended(t, packet.V2OpaqueArea, 1, of(1, 0, marked))
	old, err := packet.ParseLSA(packet.V2, good.Append(nil, packet.MaxAge))
	if err != nil {
		t.Fatal(err)
	}
	otherOpaque := lsa(t, packet.V2, packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedLink, 1), good.Body())
	for name, c := range map[string]struct {
		router packet.ID
		lsas   []packet.LSA
	}{
		"an LSA at MaxAge":      {self, []packet.LSA{old}},
		"another router's LSA":  {self + 1, []packet.LSA{good}},
		"another opaque type":   {self, []packet.LSA{otherOpaque}},
		"nothing":               {self, nil},
		"another LSA type":      {self, []packet.LSA{lsa(t, packet.V2, packet.V2External, 1, good.Body())}},
		"an unreadable type 1":  {self, []packet.LSA{lsa(t, packet.V2, packet.V2Router, self, []byte{1})}},
		"an opaque of type 255": {self, []packet.LSA{lsa(t, packet.V2, packet.V2OpaqueArea, packet.OpaqueID(255, 1), []byte{1})}},
	} {
		if s, err := Read(bit2, c.router, c.lsas); err != nil || len(s.Prefixes) != 0 || s.Unreadable != 0 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestAnLSAThatCantBeReadIsLeftOutAsAWhole(t *testing.T) {
	other := packet.V2ExtendedPrefix{RouteType: 1, Prefix: netip.MustParsePrefix("198.51.100.0/24")}
	bad := func(sub packet.TLV) packet.LSA {
		tlv := other
		tlv.Subs = []packet.TLV{sub}
		return extended(t, packet.V2OpaqueArea, 1, of(1, 0), tlv) // the first one could be read
	}
	good := extended(t, packet.V2OpaqueArea, 2, of(1, 0, marked, address(proxy)))
	for name, l := range map[string]packet.LSA{
		"RFC 9792: flags of three octets": bad(packet.TLV{Type: packet.V2SubPrefixFlags, Value: make([]byte, 3)}),
		"source router ID":                bad(packet.TLV{Type: packet.V2SubSourceRouterID, Value: make([]byte, 3)}),
		"source router address":           bad(packet.TLV{Type: packet.V2SubSourceRouterAddr, Value: make([]byte, 6)}),
		"TLV":                             lsa(t, packet.V2, packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, 1), []byte{0, 1, 0, 9}),
		"TE router address":               te(t, packet.V2OpaqueArea, 1, proxy6),
		"summary":                         lsa(t, packet.V2, packet.V2Summary, 1, []byte{1}),
	} {
		s, err := Read(bit2, self, []packet.LSA{l, good})
		if err == nil || !strings.Contains(err.Error(), "LSA "+l.Key.String()) || s.Unreadable != 1 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if want := map[netip.Prefix]Entry{prefix: {P: true, Proxy: proxy}}; !maps.Equal(s.Prefixes, want) {
			t.Errorf("%s: %v, want %v", name, s.Prefixes, want)
		}
	}
}
