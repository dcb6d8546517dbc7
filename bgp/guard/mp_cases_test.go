package guard

// hop6 is an MP_REACH_NLRI of 2001:db8:1::/48 with a next hop of 16 octets in hexadecimal.
func hop6(hop string) string { return "80 0e 1c 0002 01 10" + hop + "00 30 20010db80001" }

// hop6Two is the same with two next hops.
func hop6Two(hop string) string { return "80 0e 2c 0002 01 20" + hop + "00 30 20010db80001" }

const (
	global6 = "20010db8000000000000000000000001"
	local6  = "fe800000000000000000000000000001"
	zero6   = "00000000000000000000000000000000"
	as4Add  = as4 + capsAddPath
	as4Hop  = as4 + capsHop
)

var (
	w6       = [][]byte{updateOf("", aUnreach6, "")}
	badHop   = finding(WrongNextHop, Withdrawn, attrNextHop)
	badHop6  = finding(WrongNextHop, Withdrawn, attrReach)
	noFamily = func(typ uint8, f Family) []Finding { return []Finding{{FamilyNotOffered, Discarded, typ, f}} }
)

// mpCases are about routes of several families, next hops and path identifiers.
var mpCases = []updateCase{
	// RFC 7606 sections 5.3, 7.11 and 7.12, RFC 4760 section 7: an MP attribute that can't be read.
	{name: "5.3 MP_REACH_NLRI of four octets", attrs: aOrigin + aPath + "80 0e 04 0002 01 00", fault: [2]uint8{3, 9}},
	{name: "5.3 MP_REACH_NLRI empty", attrs: aOrigin + aPath + "80 0e 00", fault: [2]uint8{3, 9}},
	{name: "5.3 MP_REACH_NLRI well-known", attrs: aOrigin + aPath + "40" + aReach6[2:], fault: [2]uint8{3, 9}},
	{name: "5.3 MP_REACH_NLRI transitive", attrs: aOrigin + aPath + "c0" + aReach6[2:], fault: [2]uint8{3, 9}},
	{name: "5.3 MP_UNREACH_NLRI of two octets", attrs: "80 0f 02 0002", fault: [2]uint8{3, 9}},
	{name: "5.3 MP_UNREACH_NLRI transitive", attrs: "c0" + aUnreach6[2:], fault: [2]uint8{3, 9}},
	{name: "5.3 IPv6 NLRI of 129 bits", attrs: aOrigin + aPath + "80 0e 27 0002 01 10" + global6 + "00 81" + global6 + "00", fault: [2]uint8{3, 9}},
	{name: "5.3 IPv6 NLRI is cut short", attrs: aOrigin + aPath + "80 0e 1b 0002 01 10" + global6 + "00 30 20010db800", fault: [2]uint8{3, 9}},
	{name: "5.3 IPv6 withdrawal is cut short", attrs: "80 0f 09 0002 01 30 20010db800", fault: [2]uint8{3, 9}},
	{name: "5.3 VPN NLRI too short for a label and a route distinguisher", attrs: aOrigin + aPath +
		"80 0e 15 0001 80 0c 0000000000000000c0000201 00 18 000101", fault: [2]uint8{3, 9}},
	{name: "5.3 VPN NLRI longer than an IPv4 prefix", attrs: aOrigin + aPath +
		"80 0e 22 0001 80 0c 0000000000000000c0000201 00 79 000101 0000fc0000000001 0a00000080", fault: [2]uint8{3, 9}},
	{name: "5.3 VPN withdrawal is cut short", attrs: "80 0f 0f 0001 80 60 800000 0000fc0000000001", fault: [2]uint8{3, 9}},
	{name: "7.11 next hop runs over", attrs: aOrigin + aPath + "80 0e 0a 0002 01 10 20010db80000", fault: [2]uint8{3, 9}},
	{name: "7.11 no next hop", attrs: aOrigin + aPath + "80 0e 0c 0002 01 00 00 30 20010db80001", fault: [2]uint8{3, 9}},
	{name: "7.11 IPv6 with an IPv4 next hop", attrs: aOrigin + aPath + "80 0e 10 0002 01 04 c0000201 00 30 20010db80001", fault: [2]uint8{3, 9}},
	{name: "7.11 next hop of five octets", attrs: aOrigin + aPath + "80 0e 11 0002 01 05 c000020100 00 30 20010db80001", fault: [2]uint8{3, 9}},
	{name: "7.11 VPN next hop without route distinguisher", attrs: aOrigin + aPath +
		"80 0e 16 0001 80 04 c0000201 00 60 000101 0000fc0000000001 0a", fault: [2]uint8{3, 9}},
	{name: "RFC 8950 IPv6 next hop that wasn't offered", attrs: aOrigin + aPath + "80 0e 19 0001 01 10" + global6 + "00 18 0a4d01", fault: [2]uint8{3, 9}},
	{name: "RFC 8950 IPv6 next hop", caps: as4Hop, attrs: aOrigin + aPath + "80 0e 19 0001 01 10" + global6 + "00 18 0a4d01", same: true},
	{name: "RFC 8950 two IPv6 next hops", caps: as4Hop, attrs: aOrigin + aPath + "80 0e 29 0001 01 20" + global6 + local6 + "00 18 0a4d01", same: true},
	{name: "RFC 4760 IPv4 in MP_REACH_NLRI", attrs: aOrigin + aPath + "80 0e 0d 0001 01 04 c0000201 00 18 0a4d01", same: true},
	{name: "Partial on MP_REACH_NLRI", attrs: aOrigin + aPath + "a0" + aReach6[2:],
		pass: [][]byte{updateOf("", aOrigin+aPath+aReach6, "")}, finds: finding(WrongFlags, Mended, 14)},

	// Next hops: RFC 4271 section 6.3.
	{name: "6.3 next hop zero", attrs: aOrigin + aPath + "40 03 04 00000000", nlri: nlri10, pass: w10, finds: badHop},
	{name: "6.3 next hop 0.1.2.3", attrs: aOrigin + aPath + "40 03 04 00010203", nlri: nlri10, pass: w10, finds: badHop},
	{name: "6.3 next hop loopback", attrs: aOrigin + aPath + "40 03 04 7f000001", nlri: nlri10, pass: w10, finds: badHop},
	{name: "6.3 next hop multicast", attrs: aOrigin + aPath + "40 03 04 e0000001", nlri: nlri10, pass: w10, finds: badHop},
	{name: "6.3 next hop class E", attrs: aOrigin + aPath + "40 03 04 f0000001", nlri: nlri10, pass: w10, finds: badHop},
	{name: "6.3 next hop broadcast", attrs: aOrigin + aPath + "40 03 04 ffffffff", nlri: nlri10, pass: w10, finds: badHop},
	{name: "RFC 4760 3 NEXT_HOP without IPv4 routes is ignored", attrs: aOrigin + aPath + "40 03 04 00000000" + aReach6,
		pass: [][]byte{updateOf("", aOrigin+aPath+aReach6, "")}, finds: finding(WrongNextHop, Discarded, 3)},
	{name: "6.3 IPv6 next hop zero", attrs: aOrigin + aPath + hop6(zero6), pass: w6, finds: badHop6},
	{name: "6.3 IPv6 next hop loopback", attrs: aOrigin + aPath + hop6("00000000000000000000000000000001"), pass: w6, finds: badHop6},
	{name: "6.3 IPv6 next hop multicast", attrs: aOrigin + aPath + hop6("ff020000000000000000000000000001"), pass: w6, finds: badHop6},
	{name: "6.3 IPv4-mapped loopback", attrs: aOrigin + aPath + hop6("00000000000000000000ffff7f000001"), pass: w6, finds: badHop6},
	{name: "IPv4-mapped next hop", attrs: aOrigin + aPath + hop6("00000000000000000000ffffc0000201"), same: true},
	{name: "RFC 2545 3 global and link-local", attrs: aOrigin + aPath + hop6Two(global6+local6), same: true},
	{name: "zero and link-local", attrs: aOrigin + aPath + hop6Two(zero6+local6), same: true},
	{name: "link-local only", attrs: aOrigin + aPath + hop6(local6), same: true},
	{name: "6.3 global and zero", attrs: aOrigin + aPath + hop6Two(global6+zero6), pass: w6, finds: badHop6},
	{name: "6.3 zero twice", attrs: aOrigin + aPath + hop6Two(zero6+zero6), pass: w6, finds: badHop6},
	{name: "6.3 VPN next hop zero", attrs: aOrigin + aPath + "80 0e 1e 0001 80 0c 0000000000000000 00000000 00 60 000101 0000fc0000000001 0a",
		pass: [][]byte{updateOf("", aUnreachVPN, "")}, finds: badHop6},

	// Treat as withdraw with routes of several families.
	{name: "2 IPv4 and IPv6 are withdrawn", withdrawn: "08 0b", attrs: "40 01 01 09" + aPath + aHop + aReach6, nlri: nlri10,
		pass: [][]byte{updateOf("08 0b"+nlri10, aUnreach6, "")}, finds: finding(WrongValue, Withdrawn, 1)},
	{name: "2 two families of MP attributes take two messages", attrs: "40 01 01 09" + aPath + aHop + aReach6 + aUnreachVPN, nlri: nlri10,
		pass: [][]byte{updateOf(nlri10, aUnreachVPN, ""), updateOf("", aUnreach6, "")}, finds: finding(WrongValue, Withdrawn, 1)},
	{name: "2 one family in both MP attributes", attrs: "40 01 01 09" + aPath + aReach6 + "80 0f 0a 0002 01 30 20010db80002",
		pass: [][]byte{updateOf("", "80 0f 11 0002 01 30 20010db80002 30 20010db80001", "")}, finds: finding(WrongValue, Withdrawn, 1)},
	{name: "2 a VPN route is withdrawn whatever its label", attrs: "40 01 01 09" + aPath + aReachVPN,
		pass: [][]byte{updateOf("", aUnreachVPN, "")}, finds: finding(WrongValue, Withdrawn, 1)},
	{name: "2 an empty MP_UNREACH_NLRI beside isn't End-of-RIB", attrs: "40 01 01 09" + aPath + aHop + "80 0f 03 0002 01", nlri: nlri10,
		pass: w10, finds: finding(WrongValue, Withdrawn, 1)},

	// Families that weren't negotiated: RFC 4760 section 6.
	{name: "6 FlowSpec is kept from GoBGP", attrs: aOrigin + aPath + "80 0e 0c 0001 85 00 00 06 01 18 0a4d01 03",
		finds: noFamily(14, Family{1, 133})},
	{name: "6 FlowSpec that ends early is kept from GoBGP", attrs: aOrigin + aPath + "80 0e 07 0001 85 00 00 f0 01",
		finds: noFamily(14, Family{1, 133})},
	{name: "6 withdrawal of VPLS is kept from GoBGP", attrs: "80 0f 05 0019 41 00 11", finds: noFamily(15, Family{25, 65})},
	{name: "6 End-of-RIB of another family isn't one of IPv4", attrs: "80 0f 03 0019 46", finds: noFamily(15, Family{25, 70})},
	{name: "6 IPv4 routes beside pass", attrs: aBase + "80 0e 07 0001 49 00 00 20 00", nlri: nlri10,
		pass: [][]byte{updateOf("", aBase, nlri10)}, finds: noFamily(14, Family{1, 73})},
	{name: "6 withdrawals beside pass without the attributes", withdrawn: nlri10, attrs: aBase + aUnreach6 + "80 0e 07 4004 47 00 00 00 01",
		pass: [][]byte{updateOf(nlri10, aUnreach6, "")}, finds: noFamily(14, Family{16388, 71})},
	{name: "6 an error beside withdraws nothing of the family", attrs: "40 01 01 09" + aPath + "80 0e 07 0001 85 00 00 f0 01",
		finds: []Finding{{WrongValue, Withdrawn, 1, Family{}}, {FamilyNotOffered, Discarded, 14, Family{1, 133}}}},
	{name: "6 IPv4 fields when only IPv6 was negotiated", families: []Family{{2, 1}}, withdrawn: "08 0b", attrs: aBase + aReach6, nlri: nlri10,
		pass: [][]byte{updateOf("", aBase+aReach6, "")}, finds: noFamily(0, Family{1, 1})},
	{name: "6 End-of-RIB of IPv4 when only IPv6 was negotiated", families: []Family{{2, 1}}, finds: noFamily(0, Family{1, 1})},
	{name: "6 malformed IPv4 fields when only IPv6 was negotiated", families: []Family{{2, 1}}, withdrawn: "ff", attrs: aUnreach6,
		pass: [][]byte{updateOf("", aUnreach6, "")}, finds: noFamily(0, Family{1, 1})},
	{name: "RFC 4760 8 no capability means IPv4", caps: capsAS4, attrs: aBase, nlri: nlri10, same: true},
	{name: "RFC 4760 8 no capability means no IPv6", caps: capsAS4, attrs: aOrigin + aPath + aReach6, finds: noFamily(14, Family{2, 1})},

	// RFC 7911: path identifiers where they were negotiated.
	{name: "RFC 7911 3 path identifier", caps: as4Add, attrs: aBase, nlri: "00000001" + nlri10, same: true},
	{name: "RFC 7911 3 withdrawal with path identifier", caps: as4Add, withdrawn: "00000002 08 0b", same: true},
	{name: "RFC 7911 3 without path identifier", caps: as4Add, attrs: aBase, nlri: nlri10, fault: [2]uint8{3, 10}},
	{name: "RFC 7911 3 path identifier is cut short", caps: as4Add, withdrawn: "000000", fault: [2]uint8{3, 10}},
	{name: "RFC 7911 3 path identifier that wasn't negotiated", attrs: aBase, nlri: "000000ff" + nlri10, fault: [2]uint8{3, 10}},
	{name: "RFC 7911 3 IPv6 path identifier", caps: as4Add, attrs: aOrigin + aPath + "80 0e 20 0002 01 10" + global6 + "00 00000001 30 20010db80001", same: true},
	{name: "RFC 7911 3 not of the VPN family", caps: as4Add, attrs: aOrigin + aPath + aReachVPN, same: true},
	{name: "RFC 7911 treat as withdraw keeps path identifiers", caps: as4Add, attrs: "40 01 01 09" + aPath + aHop, nlri: "00000001" + nlri10,
		pass: [][]byte{updateOf("00000001"+nlri10, "", "")}, finds: finding(WrongValue, Withdrawn, 1)},

	// RFC 8277 sections 2.2 and 2.4: one label, whose bottom bit is to be ignored.
	{name: "RFC 8277 2.2 label without bottom of stack", attrs: aOrigin + aPath + "80 0e 1e 0001 80 0c 0000000000000000c0000201 00 60 000100 0000fc0000000001 0a",
		pass: [][]byte{updateOf("", aOrigin+aPath+aReachVPN, "")}},
	{name: "RFC 8277 2.4 withdrawal with any label", attrs: "80 0f 10 0001 80 60 000100 0000fc0000000001 0a",
		pass: [][]byte{updateOf("", aUnreachVPN, "")}},
	{name: "RFC 8277 2.4 withdrawal with label zero", attrs: "80 0f 10 0001 80 60 000000 0000fc0000000001 0a", same: true},

	// RFC 4271 section 6.3: prefixes that no unicast route has.
	{name: "6.3 multicast prefix is ignored", attrs: aBase, nlri: "08 e1" + nlri10,
		pass: [][]byte{updateOf("", aBase, nlri10)}, finds: []Finding{{WrongPrefix, Discarded, 0, Family{1, 1}}}},
	{name: "6.3 IPv6 multicast prefix is ignored", attrs: aOrigin + aPath + "80 0e 1e 0002 01 10" + global6 + "00 08 ff 30 20010db80001",
		pass: [][]byte{updateOf("", aOrigin+aPath+aReach6, "")}, finds: []Finding{{WrongPrefix, Discarded, 14, Family{2, 1}}}},
	{name: "6.3 224.0.0.0/3 is more than multicast", attrs: aBase, nlri: "03 e0", same: true},
	{name: "6.3 a multicast prefix can be withdrawn", withdrawn: "08 e1", same: true},
}

const as2 = capsFamilies

// asCases are about a neighbour with AS numbers of two octets (RFC 6793).
var asCases = []updateCase{
	{name: "AS_PATH of two octets", caps: as2, attrs: aOrigin + "40 02 04 02 01 fc01" + aHop, nlri: nlri10, same: true},
	{name: "AS_PATH of four octets", caps: as2, attrs: aBase, nlri: nlri10, pass: w10, finds: finding(WrongValue, Withdrawn, 2)},
	{name: "7.7 AGGREGATOR of eight octets", caps: as2, attrs: aOrigin + "40 02 00" + aHop + "c0 07 08 0000fc01 c0000201", nlri: nlri10,
		pass: [][]byte{updateOf("", aOrigin+"40 02 00"+aHop, nlri10)}, finds: finding(WrongLength, Discarded, 7)},
	{name: "4.2.3 AS4_PATH", caps: as2, attrs: aOrigin + "40 02 04 02 01 5ba0" + aHop + "c0 11 06 02 01 00010000", nlri: nlri10, same: true},
	{name: "6 malformed AS4_PATH is discarded", caps: as2, attrs: aOrigin + "40 02 04 02 01 5ba0" + aHop + "c0 11 05 02 01 000100", nlri: nlri10,
		pass: [][]byte{updateOf("", aOrigin+"40 02 04 02 01 5ba0"+aHop, nlri10)}, finds: finding(WrongLength, Discarded, 17)},
	{name: "6 malformed AS4_AGGREGATOR is discarded", caps: as2, attrs: aOrigin + "40 02 00" + aHop + "c0 12 04 00010000", nlri: nlri10,
		pass: [][]byte{updateOf("", aOrigin+"40 02 00"+aHop, nlri10)}, finds: finding(WrongLength, Discarded, 18)},
	{name: "6 AS4_PATH from a speaker of four octets", attrs: aBase + "c0 11 06 02 01 00010000", nlri: nlri10,
		pass: [][]byte{updateOf("", aBase, nlri10)}, finds: finding(NotForUs, Discarded, 17)},
	{name: "6 AS4_AGGREGATOR from a speaker of four octets", attrs: aBase + "c0 12 08 00010000 c0000201", nlri: nlri10,
		pass: [][]byte{updateOf("", aBase, nlri10)}, finds: finding(NotForUs, Discarded, 18)},
	{name: "4.2.3 AGGREGATOR and AS4_AGGREGATOR", caps: as2, attrs: aOrigin + "40 02 00" + aHop + "c0 07 06 5ba0 c0000201" + "c0 12 08 00010000 c0000201", nlri: nlri10, same: true},
	{name: "4.2.3 AGGREGATOR isn't of AS_TRANS", caps: as2,
		attrs: aOrigin + "40 02 04 02 01 5ba0" + aHop + "c0 07 06 fc01 c0000201" + "c0 11 06 02 01 00010000" + "c0 12 08 00010000 c0000201", nlri: nlri10,
		pass:  [][]byte{updateOf("", aOrigin+"40 02 04 02 01 5ba0"+aHop+"c0 07 06 fc01 c0000201", nlri10)},
		finds: []Finding{{NotForUs, Discarded, 18, Family{}}, {NotForUs, Discarded, 17, Family{}}}},
	{name: "AS4_AGGREGATOR without AGGREGATOR", caps: as2, attrs: aOrigin + "40 02 00" + aHop + "c0 12 08 00010000 c0000201", nlri: nlri10,
		pass: [][]byte{updateOf("", aOrigin+"40 02 00"+aHop, nlri10)}, finds: finding(NotForUs, Discarded, 18)},
	{name: "AS4_PATH before AS_PATH is put behind it", caps: as2, attrs: aOrigin + "c0 11 06 02 01 00010000" + aHop + "40 02 04 02 01 5ba0", nlri: nlri10,
		pass: [][]byte{updateOf("", aOrigin+aHop+"40 02 04 02 01 5ba0"+"c0 11 06 02 01 00010000", nlri10)}},
	{name: "AS_PATH that GoBGP would read with four octets is given with four", caps: as2,
		attrs: aOrigin + "40 02 0e 02 03 fc01 fc02 fc03 01 02 fc04 fc05" + aHop, nlri: nlri10,
		pass: [][]byte{updateOf("", aOrigin+"40 02 18 02 03 0000fc01 0000fc02 0000fc03 01 02 0000fc04 0000fc05"+aHop, nlri10)}},
}
