package integration

import (
	"fmt"
	"net/netip"
	"strings"

	"pncd/bgp/guard"
	"pncd/integration/bgpraw"
	"pncd/pnc"
)

// with sends the route with other attributes beside the mandatory ones.
func with(attrs string) func(r *raw, p netip.Prefix) [][]byte {
	return func(r *raw, p netip.Prefix) [][]byte {
		return [][]byte{bgpraw.UpdateBytes(nil, bgpraw.Hex(r.base()+attrs), r.nlri(p))}
	}
}

// nhcAttr is an NHC attribute with flags and value in hexadecimal.
func nhcAttr(flags, value string) string {
	v := strings.Join(strings.Fields(value), "")
	return fmt.Sprintf("%s 27 %02x %s", flags, len(v)/2, v)
}

const (
	hHead = "0001 01 04" + hNextHop // header of the route
	hPNC  = "ff78 0004 c6120002"    // a PNC
	hPNC2 = "ff78 0004 c6120003"    // another
	hPNC6 = "ff78 0010 20010db8000000000000000000000002"
	hELC  = "0001 0001 00"       // an entropy label characteristic
	hID   = "0003 0004 0a0a0001" // a BGP Identifier
)

// nhcCases are the variants of the attribute that the draft and RFC 7606 let a session survive.
func nhcCases() []survival {
	const (
		none      = pnc.DisregardNone
		mismatch  = pnc.DisregardNextHopMismatch
		malformed = pnc.DisregardMalformedAttribute
		tlv       = pnc.DisregardMalformedTLV
		length    = pnc.DisregardUnknownLength
		duplicate = pnc.DisregardDuplicatePNC
		invalid   = pnc.DisregardInvalidProxyAddress
	)
	var cases []survival
	value := func(name, v string, after after, reason pnc.DisregardReason) {
		cases = append(cases, survival{name: name, send: with(nhcAttr("c0", v)), after: after, reason: reason})
	}
	value("right", hHead+hPNC, believed, none)
	value("IPv6 proxy", hHead+hPNC6, believed, none)
	value("no TLV", hHead, kept, none)
	value("only others' TLVs", hHead+hELC+hID, kept, none)
	value("TLVs in any order", hHead+hPNC+hID+hELC, believed, none)
	value("unknown TLVs are ignored", hHead+"00ff 0003 010203"+hPNC+"fffe 0000", believed, none)
	value("identical TLVs", hHead+hPNC+hPNC, believed, none)
	value("the first of two PNCs is used", hHead+hPNC+hPNC2, believed, duplicate)
	value("the first of many PNCs is used", hHead+hPNC+strings.Repeat(hPNC2, 20), believed, duplicate)

	// The header can't be parsed: the attribute is discarded, the route kept.
	whole := strings.Join(strings.Fields(hHead), "")
	for n := range 8 {
		value(fmt.Sprintf("header of %d octets", n), whole[:2*n], kept, malformed)
	}
	for _, n := range []int{0, 1, 3, 5, 8, 12, 15, 17, 24, 32} {
		value(fmt.Sprintf("next hop of %d octets", n), fmt.Sprintf("0001 01 %02x %s", n, strings.Repeat("c0", n)), kept, malformed)
	}
	value("next hop runs over", "0001 01 ff c0000201", kept, malformed)
	value("next hop length zero before a PNC", "0001 01 00"+hPNC, kept, malformed)

	// The header isn't the route's: a speaker on the way changed the next hop.
	value("another next hop", "0001 01 04 c0000202"+hPNC, kept, mismatch)
	value("next hop zero", "0001 01 04 00000000"+hPNC, kept, mismatch)
	value("next hop broadcast", "0001 01 04 ffffffff"+hPNC, kept, mismatch)
	value("IPv6 next hop", "0001 01 10 20010db8000000000000000000000001"+hPNC, kept, mismatch)
	value("IPv6 next hop zero", "0001 01 10 00000000000000000000000000000000"+hPNC, kept, mismatch)
	for _, f := range []string{"0002 01", "0001 02", "0001 04", "0001 80", "0001 00", "0000 01", "0019 46", "4004 47", "ffff ff"} {
		value("of the family "+f, f+"04"+hNextHop+hPNC, kept, mismatch)
	}
	value("IPv4-mapped next hop", "0001 01 10 00000000000000000000ffff"+hNextHop+hPNC, believed, none)

	// A TLV is malformed: it is ignored, the others are used.
	for n := 1; n < 4; n++ {
		value(fmt.Sprintf("%d octets after the PNC", n), hHead+hPNC+strings.Repeat("ff", n), believed, tlv)
		value(fmt.Sprintf("%d octets in place of TLVs", n), hHead+strings.Repeat("ff", n), kept, tlv)
	}
	for n := range 4 {
		value(fmt.Sprintf("PNC with %d of its octets", n), hHead+"ff78 0004"+strings.Repeat("c6", n), kept, tlv)
	}
	value("PNC with a length that runs over", hHead+"ff78 ffff c6120002", kept, tlv)
	value("TLV behind the PNC runs over", hHead+hPNC+"0001 0100 00", believed, tlv)
	value("TLV before the PNC runs over it", hHead+"0001 0100"+hPNC, kept, tlv)
	value("BGP Identifier of three octets", hHead+"0003 0003 0a0a00"+hPNC, believed, tlv)
	value("BGP Identifier empty", hHead+"0003 0000"+hPNC, believed, tlv)
	value("BGP Identifier of eight octets", hHead+"0003 0008 0a0a0001 0000fc00"+hPNC, believed, none)

	// The PNC has a length that isn't known.
	for _, n := range []int{0, 1, 2, 3, 5, 8, 12, 15, 17, 20, 32, 64} {
		value(fmt.Sprintf("PNC of %d octets", n), hHead+fmt.Sprintf("ff78 %04x %s", n, strings.Repeat("c6", n)), kept, length)
	}
	value("PNC of five octets before a right one", hHead+"ff78 0005 c612000200"+hPNC, believed, length)

	// The proxy's address is none that a proxy can have.
	for _, a := range []string{"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "fe80::1"} {
		x := netip.MustParseAddr(a).AsSlice()
		value("proxy "+a, hHead+fmt.Sprintf("ff78 %04x %x", len(x), x), kept, invalid)
	}

	// Flags, lengths and repetition.
	flags := func(f string, after after, find guard.Kind, reason pnc.DisregardReason) {
		cases = append(cases, survival{name: "flags " + f, send: with(nhcAttr(f, hHead+hPNC)), after: after, find: find, reason: reason})
	}
	flags("c1", believed, 0, none) // the lower four bits are ignored
	flags("cf", believed, 0, none)
	flags("e0", believed, 0, none) // Partial
	flags("80", kept, 0, malformed)
	flags("a0", kept, guard.WrongFlags, malformed)
	for _, f := range []string{"00", "20", "40", "60", "4f", "0f"} {
		flags(f, kept, guard.WrongFlags, none)
	}
	attr := func(name, a string, after after, find guard.Kind, reason pnc.DisregardReason) {
		cases = append(cases, survival{name: name, send: with(a), after: after, find: find, reason: reason})
	}
	attr("extended length", "d0 27 0010"+hHead+hPNC, believed, 0, none)
	attr("extended length, well-known", "50 27 0010"+hHead+hPNC, kept, guard.WrongFlags, none)
	attr("a long one", "d0 27 0810"+hHead+hPNC+strings.Repeat("00ff 0004 00000000", 256), believed, 0, none)
	attr("twice: the first counts", nhcAttr("c0", hHead+hPNC)+nhcAttr("c0", hHead+hPNC2), believed, guard.Duplicate, none)
	attr("twice: the first is malformed", nhcAttr("c0", "00")+nhcAttr("c0", hHead+hPNC), kept, guard.Duplicate, malformed)
	attr("twice: the second is malformed", nhcAttr("c0", hHead+hPNC)+nhcAttr("c0", "00"), believed, guard.Duplicate, none)
	attr("twice: the first is well-known", nhcAttr("40", hHead+hPNC)+nhcAttr("c0", hHead+hPNC), kept, guard.WrongFlags, none)
	cases[len(cases)-1].more = []guard.Kind{guard.Duplicate}
	attr("overruns by one octet", "c0 27 11"+hHead+hPNC, gone, guard.Overrun, none)
	attr("overruns by far", "d0 27 ffff"+hHead+hPNC, gone, guard.Overrun, none)
	attr("without length", "c0 27", gone, guard.Overrun, none)
	attr("extended length is cut short", "d0 27 00", gone, guard.Overrun, none)
	attr("empty", "c0 27 00", kept, 0, malformed)
	cases = append(cases, survival{name: "before the mandatory attributes", after: believed,
		send: func(r *raw, p netip.Prefix) [][]byte {
			return [][]byte{bgpraw.UpdateBytes(nil, bgpraw.Hex(nhcAttr("c0", hHead+hPNC)+r.base()), r.nlri(p))}
		}})
	cases = append(cases, survival{name: "on a withdrawal", after: gone,
		send: func(r *raw, p netip.Prefix) [][]byte {
			return [][]byte{bgpraw.UpdateBytes(r.nlri(p), bgpraw.Hex(nhcAttr("c0", hHead+hPNC)), nil)}
		}})
	cases = append(cases, survival{name: "alone in a message", after: believed,
		send: func(r *raw, p netip.Prefix) [][]byte {
			return [][]byte{bgpraw.UpdateBytes(nil, bgpraw.Hex(nhcAttr("c0", "00")), nil)}
		}})
	return cases
}
