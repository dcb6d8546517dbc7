package integration

import (
	"fmt"
	"net/netip"
	"strings"

	"pncd/bgp/guard"
	"pncd/integration/bgpraw"
)

const (
	mOrigin = "40 01 01 00"
	mPath   = "40 02 00"
	mHop    = "40 03 04" + hNextHop
	mPref   = "40 05 04 00000064"
	mNHC    = "c0 27 10" + hHead + hPNC
)

// only sends the route with exactly these attributes.
func only(attrs string) func(r *raw, p netip.Prefix) [][]byte {
	return func(r *raw, p netip.Prefix) [][]byte {
		return [][]byte{bgpraw.UpdateBytes(nil, bgpraw.Hex(attrs), r.nlri(p))}
	}
}

// updateCases are UPDATEs from an IBGP neighbour with path attributes that RFC 7606 lets a session survive.
// The NHC attribute is in each, so that what is kept is believed.
func updateCases() []survival {
	var cases []survival
	// in has the attributes in the place of the one that is wrong: the others are right.
	in := func(name, attrs string, after after, find guard.Kind) {
		cases = append(cases, survival{name: name, send: only(attrs + mNHC), after: after, find: find})
	}
	origin := func(name, a string, find guard.Kind) { in("7.1 ORIGIN "+name, a+mPath+mHop+mPref, gone, find) }
	origin("empty", "40 01 00", guard.WrongLength)
	origin("of two octets", "40 01 02 0000", guard.WrongLength)
	origin("of 255 octets", "40 01 ff"+strings.Repeat("00", 255), guard.WrongLength)
	origin("3", "40 01 01 03", guard.WrongValue)
	origin("255", "40 01 01 ff", guard.WrongValue)
	for _, f := range []string{"00", "80", "c0", "e0"} {
		origin("with flags "+f, f+"01 01 00", guard.WrongFlags)
	}

	path := func(name, v string, find guard.Kind) {
		v = strings.Join(strings.Fields(v), "")
		in("7.2 AS_PATH "+name, mOrigin+fmt.Sprintf("50 02 %04x", len(v)/2)+v+mHop+mPref, gone, find)
	}
	path("of one octet", "02", guard.WrongLength)
	path("with a segment that overruns", "02 02 0000fc01", guard.WrongLength)
	path("with a segment that underruns", "02 01 0000fc01 02", guard.WrongLength)
	path("with a segment without AS", "02 00", guard.WrongLength)
	path("with a segment without AS after a right one", "02 01 0000fc01 02 00", guard.WrongLength)
	path("with AS numbers of two octets", "02 01 fc01", guard.WrongLength)
	path("with a segment of 255 that is cut short", "02 ff"+strings.Repeat("0000fc01", 254), guard.WrongLength)
	path("with segment type 0", "00 01 0000fc01", guard.WrongValue)
	path("with segment type 5", "05 01 0000fc01", guard.WrongValue)
	path("with segment type 255", "ff 01 0000fc01", guard.WrongValue)
	path("with AS 0 (RFC 7607)", "02 02 0000fc01 00000000", guard.WrongValue)
	in("7.2 AS_PATH with flags 00", mOrigin+"00 02 00"+mHop+mPref, gone, guard.WrongFlags)
	in("7.2 AS_PATH with flags c0", mOrigin+"c0 02 00"+mHop+mPref, gone, guard.WrongFlags)

	hop := func(name, a string, find guard.Kind) { in("7.3 NEXT_HOP "+name, mOrigin+mPath+a+mPref, gone, find) }
	for _, n := range []int{0, 1, 3, 5, 8, 16} {
		hop(fmt.Sprintf("of %d octets", n), fmt.Sprintf("40 03 %02x %s", n, strings.Repeat("c0", n)), guard.WrongLength)
	}
	for _, a := range []string{"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"} {
		hop(a, fmt.Sprintf("40 03 04 %x", netip.MustParseAddr(a).AsSlice()), guard.WrongNextHop)
	}
	for _, f := range []string{"00", "80", "c0"} {
		hop("with flags "+f, f+"03 04"+hNextHop, guard.WrongFlags)
	}

	// What is wrong beside the mandatory attributes.
	beside := func(name, attrs string, after after, find guard.Kind) {
		in(name, mOrigin+mPath+mHop+mPref+attrs, after, find)
	}
	lengths := func(section, name string, flags, typ uint8, unit int, after after, list bool) {
		for _, n := range []int{0, 1, 2, 3, 5, 6, 7, 9, 11, 13, 19, 21} {
			if n%unit == 0 && (n > 0 || !list) && n > 0 {
				continue
			}
			beside(fmt.Sprintf("%s %s of %d octets", section, name, n), fmt.Sprintf("%02x %02x %02x %s", flags, typ, n, strings.Repeat("01", n)), after, guard.WrongLength)
		}
	}
	lengths("7.4", "MED", 0x80, 4, 4, gone, false)
	lengths("7.8", "COMMUNITIES", 0xc0, 8, 4, gone, true)
	lengths("7.9", "ORIGINATOR_ID", 0x80, 9, 4, gone, false)
	lengths("7.10", "CLUSTER_LIST", 0x80, 10, 4, gone, true)
	lengths("7.14", "EXTENDED COMMUNITIES", 0xc0, 16, 8, gone, true)
	lengths("RFC 8092 6", "LARGE_COMMUNITY", 0xc0, 32, 12, gone, true)
	for _, n := range []int{1, 4, 255} {
		beside(fmt.Sprintf("7.6 ATOMIC_AGGREGATE of %d octets", n), fmt.Sprintf("40 06 %02x %s", n, strings.Repeat("01", n)), believed, guard.WrongLength)
	}
	for _, n := range []int{0, 1, 4, 6, 7, 9, 12} {
		beside(fmt.Sprintf("7.7 AGGREGATOR of %d octets", n), fmt.Sprintf("c0 07 %02x %s", n, strings.Repeat("01", n)), believed, guard.WrongLength)
	}
	beside("RFC 7607 AGGREGATOR of AS 0", "c0 07 08 00000000 c0000201", believed, guard.WrongValue)
	in("7.5 LOCAL_PREF of three octets", mOrigin+mPath+mHop+"40 05 03 000064", gone, guard.WrongLength)
	in("7.5 LOCAL_PREF with flags c0", mOrigin+mPath+mHop+"c0 05 04 00000064", gone, guard.WrongFlags)

	// Flags: RFC 7606 section 3c.
	for _, f := range []struct {
		name, attr string
		wrong      []string
		after      after
	}{
		{"MED", "04 04 00000064", []string{"00", "40", "c0"}, gone},
		{"ATOMIC_AGGREGATE", "06 00", []string{"00", "80", "c0"}, believed},
		{"AGGREGATOR", "07 08 0000fc01 c0000201", []string{"00", "40", "80"}, believed},
		{"COMMUNITIES", "08 04 fc000001", []string{"00", "40", "80"}, gone},
		{"ORIGINATOR_ID", "09 04 0a0a0a0a", []string{"00", "40", "c0"}, gone},
		{"CLUSTER_LIST", "0a 04 0a0a0a0a", []string{"00", "40", "c0"}, gone},
		{"EXTENDED COMMUNITIES", "10 08 0002fc0000000001", []string{"00", "40", "80"}, gone},
		{"LARGE_COMMUNITY", "20 0c 0000fc00 00000001 00000002", []string{"00", "40", "80"}, gone},
		{"AIGP", "1a 0b 01 000b 0000000000000005", []string{"00", "40", "c0"}, believed},
		{"PMSI_TUNNEL", "16 05 00 00 000000", []string{"00", "40", "80"}, gone},
		{"Prefix-SID", "28 03 ff0000", []string{"00", "40", "80"}, believed},
	} {
		for _, w := range f.wrong {
			beside("3c "+f.name+" with flags "+w, w+f.attr, f.after, guard.WrongFlags)
		}
	}
	in("3c Partial on ORIGIN", "60 01 01 00"+mPath+mHop+mPref, believed, guard.WrongFlags)
	beside("3c Partial on MED", "a0 04 04 00000064", believed, guard.WrongFlags)
	in("4.3 lower flag bits on ORIGIN", "4f 01 01 00"+mPath+mHop+mPref, believed, 0)
	in("4.3 lower flag bits on AS_PATH", mOrigin+"48 02 00"+mHop+mPref, believed, 0)
	beside("4.3 lower flag bits on COMMUNITIES", "c3 08 04 fc000001", believed, 0)

	// Mandatory attributes: RFC 7606 section 3d.
	in("3d without ORIGIN", mPath+mHop+mPref, gone, guard.Missing)
	in("3d without AS_PATH", mOrigin+mHop+mPref, gone, guard.Missing)
	in("3d without NEXT_HOP", mOrigin+mPath+mPref, gone, guard.Missing)
	cases = append(cases, survival{name: "3d without attributes", send: only(""), after: gone, find: guard.Missing})

	// Attributes that are there again: RFC 7606 section 3g.
	for _, a := range []struct{ name, attr string }{
		{"ORIGIN", "40 01 01 02"}, {"AS_PATH", "40 02 06 02 01 0000fc01"}, {"NEXT_HOP", "40 03 04 00000000"}, {"LOCAL_PREF", "40 05 04 ffffffff"},
		{"malformed ORIGIN", "40 01 01 09"}, {"malformed AS_PATH", "40 02 01 02"}, {"NEXT_HOP of another length", "40 03 01 00"}, {"ORIGIN with wrong flags", "c0 01 01 00"},
	} {
		beside("3g another "+a.name, a.attr, believed, guard.Duplicate)
	}
	beside("3g unknown attribute twice", "c0 fb 01 00 c0 fb 01 01", believed, guard.Duplicate)
	beside("3g ORIGIN four hundred times", strings.Repeat("40 01 01 00", 400), believed, guard.Duplicate)

	// Attributes that overrun: RFC 7606 section 4.
	for _, a := range []string{"80", "80 04", "80 04 05 00000000", "80 04 ff", "c0 08 08 fc000001", "d0 08", "d0 08 00", "d0 08 ffff 00", "c0 fa 02 00", "00 00 01", "ff ff ff"} {
		cases = append(cases, survival{name: "4 overrun " + a, send: with(a), after: gone, find: guard.Overrun})
	}

	// Attributes that aren't known, or not by the guard: what GoBGP can't decode is left out or withdrawn.
	beside("unknown optional attribute", "c0 fa 00", believed, 0)
	beside("unknown non-transitive attribute", "80 fa 03 010203", believed, 0)
	beside("unknown attribute 0", "c0 00 01 00", believed, 0)
	beside("ATTR_SET", "c0 80 04 0000fc00", believed, 0)
	beside("7.14 unknown EVPN extended community", "c0 10 08 06ff000000000000", believed, guard.Undecodable)
	beside("7.14 FlowSpec's redirect to IPv6 in eight octets", "c0 10 08 800b000000000000", believed, guard.Undecodable)
	beside("7.14 MUP extended community", "c0 10 08 0cff000000000000", believed, guard.Undecodable)
	beside("7.15 IPv6 extended communities of 19 octets", "c0 19 13"+strings.Repeat("00", 19), gone, guard.WrongLength)
	beside("PMSI_TUNNEL of one octet", "c0 16 01 00", gone, guard.Undecodable)
	beside("PMSI_TUNNEL with a label that ends early", "c0 16 04 00 06 0000", gone, guard.Undecodable)
	beside("tunnel encapsulation that GoBGP can read", "c0 17 04 0001 00ff", believed, 0)
	beside("RFC 8669 Prefix-SID TLV runs over", "c0 28 04 01 00ff 00", believed, guard.Undecodable)
	beside("RFC 9252 SRv6 service TLV that ends early", "c0 28 08 05 0005 00 01 001e 00", believed, guard.Undecodable)
	beside("RFC 9552 BGP-LS attribute TLV runs over", "80 1d 04 0400 00ff", believed, guard.Undecodable)
	for _, v := range []string{"", "01", "01 000b", "01 0003", "01 000c 0000000000000000", "01 ffff 0000000000000000", "02 0003", "01 0000 00", "01 000b 0000000000000000 01"} {
		x := strings.Join(strings.Fields(v), "")
		beside("RFC 7311 3.1 AIGP "+v, fmt.Sprintf("80 1a %02x %s", len(x)/2, x), believed, guard.WrongLength)
	}
	beside("RFC 9234 5 ONLY_TO_CUSTOMER of three octets", "c0 23 03 0000fc", gone, guard.WrongLength)
	beside("RFC 6793 6 AS4_PATH from a speaker of four octets", "c0 11 06 02 01 00010000", believed, guard.NotForUs)
	beside("RFC 6793 6 malformed AS4_PATH", "c0 11 01 02", believed, guard.NotForUs)
	beside("RFC 6793 6 AS4_AGGREGATOR", "c0 12 08 00010000 c0000201", believed, guard.NotForUs)

	// 3h: the strongest of several.
	cases = append(cases, survival{name: "3h malformed AS_PATH, ATOMIC_AGGREGATE and NHC", after: gone, find: guard.WrongLength,
		send: only(mOrigin + "40 02 01 02" + mHop + mPref + "40 06 01 00" + "c0 27 01 00")})
	return cases
}
