package integration

import (
	"fmt"
	"net/netip"
	"strings"

	"pncd/bgp/guard"
	"pncd/integration/bgpraw"
)

// updates sends messages given by their three fields in hexadecimal; %P stands for the route as NLRI.
func updates(fields ...[3]string) func(r *raw, p netip.Prefix) [][]byte {
	return func(r *raw, p netip.Prefix) (out [][]byte) {
		nlri := fmt.Sprintf("%x", r.nlri(p))
		hex := func(s string) []byte { return bgpraw.Hex(strings.ReplaceAll(s, "%P", nlri)) }
		for _, f := range fields {
			out = append(out, bgpraw.UpdateBytes(hex(f[0]), hex(f[1]), hex(f[2])))
		}
		return out
	}
}

const (
	fAttrs = mOrigin + mPath + mPref
	fHop6  = "20010db8000000000000000000000001"
)

// reach6 is an MP_REACH_NLRI of 2001:db8:1::/48 with a next hop in hexadecimal.
func reach6(hop string) string {
	n := len(strings.Join(strings.Fields(hop), "")) / 2
	return fmt.Sprintf("80 0e %02x 0002 01 %02x %s 00 30 20010db80001", 5+n+7, n, hop)
}

// familyCases are about MP_REACH_NLRI and MP_UNREACH_NLRI, prefixes, and messages without routes.
func familyCases() []survival {
	var cases []survival
	add := func(name string, after after, find guard.Kind, fields ...[3]string) {
		cases = append(cases, survival{name: name, send: updates(fields...), after: after, find: find})
	}

	// Families that weren't negotiated, with NLRI on which GoBGP panics: RFC 4760 section 6.
	families := []struct{ name, family string }{
		{"multicast", "0001 02"}, {"labelled", "0001 04"}, {"multicast VPN", "0001 05"}, {"SR policy", "0001 49"},
		{"MUP", "0001 55"}, {"route target", "0001 84"}, {"FlowSpec", "0001 85"}, {"FlowSpec VPN", "0001 86"},
		{"encapsulation", "0001 07"}, {"IPv6 VPN", "0002 80"}, {"IPv6 labelled", "0002 04"}, {"IPv6 MUP", "0002 55"}, {"IPv6 FlowSpec", "0002 85"}, {"IPv6 SR policy", "0002 49"},
		{"VPLS", "0019 41"}, {"EVPN", "0019 46"}, {"L2VPN FlowSpec", "0019 86"},
		{"link state", "4004 47"}, {"link-state VPN", "4004 48"}, {"opaque", "4001 f1"}, {"nothing", "0000 00"}, {"everything", "ffff ff"},
	}
	for _, f := range families {
		for _, nlri := range []string{"f0 01", "ff", "00", "01 00", "08 01 18 0a", "01 17 0000 0000 0000 0000"} {
			n := len(strings.Join(strings.Fields(nlri), "")) / 2
			add(fmt.Sprintf("6 routes of %s: %s", f.name, nlri), believed, guard.FamilyNotOffered,
				[3]string{"", fAttrs + mHop + mNHC + fmt.Sprintf("80 0e %02x %s 00 00 %s", 5+n, f.family, nlri), "%P"})
		}
		add(fmt.Sprintf("6 withdrawal of %s", f.name), believed, guard.FamilyNotOffered,
			[3]string{"", "80 0f 05" + f.family + "f0 01", ""}, [3]string{"", fAttrs + mHop + mNHC, "%P"})
		add(fmt.Sprintf("6 End-of-RIB of %s", f.name), believed, guard.FamilyNotOffered,
			[3]string{"", "80 0f 03" + f.family, ""}, [3]string{"", fAttrs + mHop + mNHC, "%P"})
	}

	// Next hops of IPv6 routes, withdrawn with the IPv4 route in the message.
	for _, hop := range []string{"::", "::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0"} {
		x := netip.MustParseAddr(hop).As16()
		add("6.3 IPv6 next hop "+hop, gone, guard.WrongNextHop,
			[3]string{"", fAttrs + mHop + mNHC + reach6(fmt.Sprintf("%x", x)), "%P"})
	}
	add("6.3 two IPv6 next hops, the second zero", gone, guard.WrongNextHop,
		[3]string{"", fAttrs + mHop + mNHC + reach6(fHop6+strings.Repeat("00", 16)), "%P"})
	add("RFC 4760 3 NEXT_HOP without IPv4 routes is ignored", believed, guard.WrongNextHop,
		[3]string{"", fAttrs + "40 03 04 00000000" + reach6(fHop6), ""})
	add("2 IPv4 and IPv6 routes are withdrawn together", gone, guard.WrongValue,
		[3]string{"", "40 01 01 09" + mPath + mPref + mHop + mNHC + reach6(fHop6), "%P"})
	add("5.1 every field in one message", believed, 0,
		[3]string{"08 0b", fAttrs + mHop + mNHC + "80 0e 0d 0001 01 04" + hNextHop + "00 18 0c0c0c" + "80 0f 10 0001 80 60 800000 0000fc0000000001 0a", "%P"})
	add("5.1 the route is withdrawn and announced", believed, 0, [3]string{"%P", fAttrs + mHop + mNHC, "%P"})
	add("RFC 4760 IPv4 in MP_REACH_NLRI", believed, 0,
		[3]string{"", fAttrs + mNHC + "80 0e 0d 0001 01 04" + hNextHop + "00 %P", ""})

	// VPN: one label, whatever its bottom bit says (RFC 8277).
	for _, label := range []string{"000101", "000100", "000000", "800000", "ffffff", "fffffe"} {
		add("RFC 8277 2.2 label "+label, believed, 0,
			[3]string{"", fAttrs + "80 0e 1e 0001 80 0c 0000000000000000" + hNextHop + "00 60" + label + "0000fc0000000001 0a" + "c0 10 08 0002fc0000000001", ""},
			[3]string{"", "80 0f 10 0001 80 60" + label + "0000fc0000000001 0a", ""},
			[3]string{"", fAttrs + mHop + mNHC, "%P"})
	}
	for _, rd := range []string{"0000fc0000000001", "0001c00002010001", "0002000000000001", "ffffffffffffffff", "0003000000000000"} {
		add("route distinguisher "+rd, believed, 0,
			[3]string{"", fAttrs + "80 0e 1e 0001 80 0c 0000000000000000" + hNextHop + "00 60 000101" + rd + "0a" + "c0 10 08 0002fc0000000001", ""},
			[3]string{"", "80 0f 10 0001 80 60 000101" + rd + "0a", ""},
			[3]string{"", fAttrs + mHop + mNHC, "%P"})
	}
	add("6.3 VPN next hop zero", believed, guard.WrongNextHop,
		[3]string{"", fAttrs + "80 0e 1e 0001 80 0c 0000000000000000 00000000 00 60 000101 0000fc0000000001 0a", ""})

	// Prefixes and messages without routes.
	add("6.3 multicast prefix beside", believed, guard.WrongPrefix, [3]string{"", fAttrs + mHop + mNHC, "08 e1 %P 20 efffffff"})
	add("6.3 IPv6 multicast prefix", believed, guard.WrongPrefix, [3]string{"", fAttrs + "80 0e 17 0002 01 10" + fHop6 + "00 08 ff", ""})
	add("host bits are set", believed, 0, [3]string{"", fAttrs + mHop + mNHC, "%P 01 ff 09 0aff"})
	add("default route", believed, 0, [3]string{"", fAttrs + mHop + mNHC, "00 %P"}, [3]string{"00", "", ""})
	add("the same prefix many times", believed, 0, [3]string{"", fAttrs + mHop + mNHC, strings.Repeat("%P", 900)})
	add("5.2 attribute discard without routes", believed, guard.WrongLength, [3]string{"", "40 06 01 00", ""})
	add("5.2 attributes without routes", believed, 0, [3]string{"", fAttrs + mHop, ""})
	add("RFC 4724 2 End-of-RIB many times", believed, 0, [3]string{}, [3]string{}, [3]string{"", "80 0f 03 0002 01", ""}, [3]string{"", "80 0f 03 0001 80", ""})
	add("withdrawal of what isn't there", believed, 0, [3]string{"18 0bffff 20 01020304", "", ""})

	refresh := func(name, body string, find guard.Kind) {
		cases = append(cases, survival{name: name, after: believed, find: find, send: func(*raw, netip.Prefix) [][]byte {
			return [][]byte{bgpraw.Bytes(bgpraw.RouteRefresh, bgpraw.Hex(body))}
		}})
	}
	refresh("RFC 2918 request", "0001 00 01", 0)
	refresh("RFC 2918 3 the reserved octet is ignored", "0001 ff 01", 0)
	refresh("RFC 2918 4 of another family", "0019 00 46", guard.FamilyNotOffered)
	refresh("RFC 2918 4 of no family", "0000 00 00", guard.FamilyNotOffered)
	refresh("RFC 5291 with filters", "0001 00 01 01 40 0004 00000000", guard.WrongLength)
	cases = append(cases, survival{name: "a hundred KEEPALIVEs", after: believed, send: func(*raw, netip.Prefix) (out [][]byte) {
		for range 100 {
			out = append(out, bgpraw.Bytes(bgpraw.Keepalive, nil))
		}
		return out
	}})
	return cases
}

// outsideCases are from an EBGP neighbour.
func outsideCases() []survival {
	path := "40 02 06 02 01 0000fc01"
	return []survival{
		{name: "7.5 LOCAL_PREF", send: with(mPref + mNHC), after: believed, find: guard.NotForUs},
		{name: "7.5 malformed LOCAL_PREF", send: with("40 05 01 00" + mNHC), after: believed, find: guard.NotForUs},
		{name: "7.5 LOCAL_PREF with wrong flags", send: with("c0 05 04 00000064" + mNHC), after: believed, find: guard.NotForUs},
		{name: "7.9 ORIGINATOR_ID", send: with("80 09 04 0a0a0a0a" + mNHC), after: believed, find: guard.NotForUs},
		{name: "7.9 malformed ORIGINATOR_ID", send: with("80 09 01 0a" + mNHC), after: believed, find: guard.NotForUs},
		{name: "7.10 CLUSTER_LIST", send: with("80 0a 04 0a0a0a0a" + mNHC), after: believed, find: guard.NotForUs},
		{name: "7.10 malformed CLUSTER_LIST", send: with("80 0a 00" + mNHC), after: believed, find: guard.NotForUs},
		{name: "RFC 5065 5 confederation sequence", send: only(mOrigin + "40 02 06 03 01 0000fc01" + mHop + mNHC), after: gone, find: guard.WrongValue},
		{name: "RFC 5065 5 confederation set", send: only(mOrigin + "40 02 0c 02 01 0000fc01 04 01 0000fc02" + mHop + mNHC), after: gone, find: guard.WrongValue},
		{name: "7.2 segment overruns", send: only(mOrigin + "40 02 06 02 02 0000fc01" + mHop + mNHC), after: gone, find: guard.WrongLength},
		{name: "3d without NEXT_HOP", send: only(mOrigin + path + mNHC), after: gone, find: guard.Missing},
		{name: "6.3 next hop loopback", send: only(mOrigin + path + "40 03 04 7f000001" + mNHC), after: gone, find: guard.WrongNextHop},
	}
}

// twoOctetCases are from a neighbour with AS numbers of two octets (RFC 6793).
func twoOctetCases() []survival {
	const trans = "40 02 04 02 01 5ba0"
	attrs := func(path, more string) func(*raw, netip.Prefix) [][]byte {
		return only(mOrigin + path + mHop + mPref + more + mNHC)
	}
	return []survival{
		{name: "AS4_PATH", send: attrs(trans, "c0 11 06 02 01 00010000"), after: believed},
		{name: "AS4_PATH before AS_PATH", send: only("c0 11 06 02 01 00010000" + mOrigin + mHop + mPref + mNHC + trans), after: believed},
		{name: "AS4_PATH longer than AS_PATH", send: attrs(trans, "c0 11 0a 02 02 00010000 00010001"), after: believed},
		{name: "AS4_PATH of a confederation", send: attrs(trans, "c0 11 06 03 01 00010000"), after: believed},
		{name: "6 malformed AS4_PATH", send: attrs(trans, "c0 11 05 02 01 000100"), after: believed, find: guard.WrongLength},
		{name: "6 AS4_PATH empty", send: attrs(trans, "c0 11 00"), after: believed, find: guard.WrongLength},
		{name: "6 AS4_PATH of AS 0", send: attrs(trans, "c0 11 06 02 01 00000000"), after: believed, find: guard.WrongValue},
		{name: "6 AS4_AGGREGATOR of four octets", send: attrs(trans, "c0 12 04 00010000"), after: believed, find: guard.WrongLength},
		{name: "AS4_AGGREGATOR without AGGREGATOR", send: attrs(trans, "c0 12 08 00010000 c0000201"), after: believed, find: guard.NotForUs},
		{name: "4.2.3 AS4_PATH with AGGREGATOR of another AS", send: attrs(trans, "c0 07 06 fc01 c0000201 c0 11 06 02 01 00010000"), after: believed, find: guard.NotForUs},
		{name: "7.7 AGGREGATOR of eight octets", send: attrs(trans, "c0 07 08 0000fc01 c0000201"), after: believed, find: guard.WrongLength},
		{name: "path that could be one of four octets", send: attrs("40 02 0e 02 03 fc01 fc02 fc03 01 02 fc04 fc05", ""), after: believed},
		{name: "7.2 AS_PATH of four octets", send: attrs("40 02 06 02 01 0000fc01", ""), after: gone, find: guard.WrongValue},
		{name: "7.2 segment overruns", send: attrs("40 02 04 02 02 fc01", ""), after: gone, find: guard.WrongLength},
	}
}

// addPathCases are from a neighbour that sends path identifiers (RFC 7911).
func addPathCases() []survival {
	return []survival{
		{name: "treat as withdraw names the path", send: only("40 01 01 09" + mPath + mHop + mPref), after: gone, find: guard.WrongValue},
		{name: "3 a path identifier for each", send: updates([3]string{"", fAttrs + mHop + mNHC, "00000001 18 0b0b0b %P 00000002 18 0b0b0b"}), after: believed},
		{name: "3 another path is withdrawn", send: updates([3]string{"00000009 18 0a0000", fAttrs + mHop + mNHC, "%P"}), after: believed},
		{name: "NHC well-known", send: with("40 27 10" + hHead + hPNC), after: kept, find: guard.WrongFlags},
		{name: "4 overrun", send: with("c0 27 ff 00"), after: gone, find: guard.Overrun},
	}
}
