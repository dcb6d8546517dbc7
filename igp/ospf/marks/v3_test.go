package marks

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"pncd/igp/ospf/packet"
)

var prefix6 = netip.MustParsePrefix("2001:db8:9::/64")

var (
	marked6    = packet.TLV{Type: packet.V3SubPrefixFlags, Value: packet.WithFlagBit(2)}
	ownRouter  = packet.Key{Type: packet.V3Router, Adv: self}
	ownNetwork = packet.Key{Type: packet.V3Network, ID: 3, Adv: self}
)

func address6(a netip.Addr) packet.TLV {
	return packet.TLV{Type: packet.V3SubSourceRouterAddr, Value: a.AsSlice()}
}

func of6(typ uint16, p netip.Prefix, options uint8, subs ...packet.TLV) packet.V3ExtendedPrefix {
	return packet.V3ExtendedPrefix{Type: typ, Prefix: p, Options: options, Subs: subs}
}

// intra is an E-Intra-Area-Prefix LSA.
func intra(t testing.TB, id packet.ID, of packet.Key, prefixes ...packet.V3ExtendedPrefix) packet.LSA {
	return lsa(t, packet.V3, packet.V3EIntraAreaPrefix, id, packet.V3EIntraArea{Referenced: of, Prefixes: prefixes}.Append(nil))
}

// bare is an Extended LSA that has nothing but TLVs.
func bare(t testing.TB, typ packet.LSType, id packet.ID, prefixes ...packet.V3ExtendedPrefix) packet.LSA {
	var body []byte
	for _, p := range prefixes {
		body = p.Append(body)
	}
	return lsa(t, packet.V3, typ, id, body)
}

// legacy is an Intra-Area-Prefix LSA with a host.
func legacy(t testing.TB, id packet.ID, of packet.Key, a netip.Addr, bits int, options uint8) packet.LSA {
	body := packet.V3EIntraArea{Referenced: of}.Append(nil)
	body[1] = 1 // the number of prefixes
	body = append(body, byte(bits), options, 0, 0)
	return lsa(t, packet.V3, packet.V3IntraAreaPrefix, id, append(body, a.AsSlice()[:(bits+31)/32*4]...))
}

func TestWhichLSAOfOSPFv3Counts(t *testing.T) {
	const six, three, five = packet.V3TLVIntraAreaPrefix, packet.V3TLVInterAreaPrefix, packet.V3TLVExternalPrefix
	yes := func(typ uint16) packet.V3ExtendedPrefix {
		return of6(typ, prefix6, packet.PrefixNU, marked6, address6(proxy6))
	}
	no := func(typ uint16) packet.V3ExtendedPrefix { return of6(typ, prefix6, packet.PrefixNU, address6(proxy6)) }
	for _, c := range []struct {
		name string
		lsas []packet.LSA
		want Entry
	}{
		{"E-Intra-Area-Prefix", []packet.LSA{intra(t, 1, ownRouter, yes(six))}, Entry{P: true, Proxy: proxy6}},
		{"not marked", []packet.LSA{intra(t, 1, ownRouter, no(six))}, Entry{}},
		{"E-Inter-Area-Prefix", []packet.LSA{bare(t, packet.V3EInterAreaPrefix, 1, yes(three))}, Entry{P: true, Leaked: true, Proxy: proxy6}},
		{"E-Type-7", []packet.LSA{bare(t, packet.V3ENSSA, 1, yes(five))}, Entry{P: true, Leaked: true, Proxy: proxy6}},
		{"E-AS-External: announced, not marked", []packet.LSA{bare(t, packet.V3EExternal, 1, yes(five))}, Entry{Leaked: true}},
		{"what is intra-area comes first", []packet.LSA{bare(t, packet.V3EInterAreaPrefix, 1, yes(three)), intra(t, 9, ownRouter, no(six))}, Entry{}},
		{"then what is inter-area", []packet.LSA{bare(t, packet.V3EInterAreaPrefix, 9, no(three)), bare(t, packet.V3ENSSA, 1, yes(five))}, Entry{Leaked: true}},
		{"the lowest link state ID", []packet.LSA{intra(t, 2, ownRouter, no(six)), intra(t, 1, ownNetwork, yes(six))}, Entry{P: true, Proxy: proxy6}},
		{"of two TLVs in one LSA the first", []packet.LSA{intra(t, 2, ownRouter, no(six), yes(six))}, Entry{}},
	} {
		check(t, c.name, bit2v3, c.lsas, prefix6, c.want)
	}
	// RFC 8362 sections 3.4 to 3.7: a TLV that is not at home in the LSA is ignored.
	s, err := Read(bit2v3, self, []packet.LSA{intra(t, 1, ownRouter, yes(three), yes(five)), bare(t, packet.V3EInterAreaPrefix, 1, yes(six))})
	if err != nil || len(s.Prefixes) != 0 {
		t.Errorf("TLVs in other LSAs: %v, %v", s, err)
	}
	check(t, "the flags octet of OSPFv2 is not OSPFv3's", Config{packet.V3, Carrier{Bit: 33}},
		[]packet.LSA{intra(t, 1, ownRouter, of6(six, prefix6, 0xFF&^packet.PrefixLA, marked6))}, prefix6, Entry{})
}

func TestTheProxyOfOSPFv3(t *testing.T) {
	const six = packet.V3TLVIntraAreaPrefix
	router, second := netip.MustParseAddr("2001:db8:7::7"), netip.MustParseAddr("2001:db8:7::8")
	host := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 128) }
	named := intra(t, 5, ownRouter, of6(six, prefix6, packet.PrefixNU, marked6))
	te6 := func(id packet.ID, a netip.Addr) packet.LSA {
		return lsa(t, packet.V3, packet.V3IntraAreaTE, id, packet.AppendTLV(nil, packet.TLV{Type: 3, Value: a.AsSlice()}))
	}
	for _, c := range []struct {
		name string
		lsas []packet.LSA
		want netip.Addr
	}{
		{"what the prefix says, before all others", []packet.LSA{intra(t, 1, ownRouter, of6(six, prefix6, 0, marked6, address6(proxy6))), te6(1, router), legacy(t, 1, ownRouter, second, 128, packet.PrefixLA)}, proxy6},
		{"an IPv4 address", []packet.LSA{intra(t, 1, ownRouter, of6(six, prefix6, 0, marked6, address6(proxy)))}, proxy},
		{"a link-local address says nothing", []packet.LSA{intra(t, 1, ownRouter, of6(six, prefix6, 0, marked6, address6(netip.MustParseAddr("fe80::1"))))}, none},
		{"the TE router address", []packet.LSA{named, te6(1, router), legacy(t, 1, ownRouter, second, 128, packet.PrefixLA)}, router},
		{"the only host of the router: LA", []packet.LSA{named, legacy(t, 1, ownRouter, router, 128, packet.PrefixLA)}, router},
		{"the only host of the router: N, in the extended form", []packet.LSA{named, intra(t, 6, ownRouter, of6(six, host(router), packet.PrefixN))}, router},
		{"a TLV that is not at home in the LSA", []packet.LSA{named, intra(t, 6, ownRouter, of6(packet.V3TLVInterAreaPrefix, host(router), packet.PrefixN))}, none},
		{"the same in both forms", []packet.LSA{named, legacy(t, 1, ownRouter, router, 128, packet.PrefixLA), intra(t, 6, ownRouter, of6(six, host(router), packet.PrefixN))}, router},
		{"two hosts: which of them is a guess", []packet.LSA{named, legacy(t, 1, ownRouter, router, 128, packet.PrefixLA), legacy(t, 2, ownRouter, second, 128, packet.PrefixLA)}, none},
		{"a host that is not the router's own", []packet.LSA{named, legacy(t, 1, ownRouter, router, 128, 0)}, none},
		{"a host that is not for unicast", []packet.LSA{named, legacy(t, 1, ownRouter, router, 128, packet.PrefixLA|packet.PrefixNU)}, none},
		{"a host on a network", []packet.LSA{named, legacy(t, 1, ownNetwork, router, 128, packet.PrefixLA)}, none},
		{"a host of another router's LSA", []packet.LSA{named, legacy(t, 1, packet.Key{Type: packet.V3Router, Adv: self + 1}, router, 128, packet.PrefixLA)}, none},
		{"not a host", []packet.LSA{named, legacy(t, 1, ownRouter, router, 64, packet.PrefixLA)}, none},
		{"a link-local host", []packet.LSA{named, legacy(t, 1, ownRouter, netip.MustParseAddr("fe80::1"), 128, packet.PrefixLA)}, none},
		{"nothing at all", []packet.LSA{named}, none},
	} {
		check(t, c.name, bit2v3, c.lsas, prefix6, Entry{P: true, Proxy: c.want})
	}
	leaked := bare(t, packet.V3EInterAreaPrefix, 1, of6(packet.V3TLVInterAreaPrefix, prefix6, packet.PrefixNU, marked6))
	check(t, "leaked: the border router is not the proxy", bit2v3,
		[]packet.LSA{leaked, te6(1, router), legacy(t, 1, ownRouter, router, 128, packet.PrefixLA)}, prefix6, Entry{P: true, Leaked: true})
}

func TestAnLSAOfOSPFv3ThatCantBeReadIsLeftOutAsAWhole(t *testing.T) {
	const six = packet.V3TLVIntraAreaPrefix
	other := netip.MustParsePrefix("2001:db8:8::/48")
	good := intra(t, 2, ownRouter, of6(six, prefix6, 0, marked6, address6(proxy6)))
	for name, l := range map[string]packet.LSA{
		"RFC 9792: flags of three octets": intra(t, 1, ownRouter, of6(six, prefix6, 0), of6(six, other, 0, packet.TLV{Type: packet.V3SubPrefixFlags, Value: make([]byte, 3)})),
		"source router address":           intra(t, 1, ownRouter, of6(six, prefix6, 0), of6(six, other, 0, packet.TLV{Type: packet.V3SubSourceRouterAddr, Value: make([]byte, 5)})),
		"header":                          lsa(t, packet.V3, packet.V3EIntraAreaPrefix, 1, make([]byte, 11)),
		"inter-area":                      lsa(t, packet.V3, packet.V3EInterAreaPrefix, 1, []byte{0, 3, 0, 9}),
		"legacy":                          lsa(t, packet.V3, packet.V3IntraAreaPrefix, 1, make([]byte, 11)),
		"TE":                              lsa(t, packet.V3, packet.V3IntraAreaTE, 1, packet.AppendTLV(nil, packet.TLV{Type: 3, Value: make([]byte, 4)})),
	} {
		s, err := Read(bit2v3, self, []packet.LSA{l, good})
		if err == nil || !strings.Contains(err.Error(), "LSA "+l.Key.String()) || s.Unreadable != 1 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if want := map[netip.Prefix]Entry{prefix6: {P: true, Proxy: proxy6}}; !maps.Equal(s.Prefixes, want) {
			t.Errorf("%s: %v, want %v", name, s.Prefixes, want)
		}
	}
}
