package integration

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/engine"
	"pncd/bgp/speakertest"
	"pncd/integration/bgpraw"
)

// ending is what must end the session, on a neighbour of its own.
type ending struct {
	name string
	when when
	send []byte
	want bgpraw.Code
}

// when says how far the session is when the message comes.
type when uint8

const (
	atOnce      when = iota // in place of the OPEN
	opened                  // after the OPEN, before the KEEPALIVE
	established             // the session is up
)

// end opens sessions with neighbours of their own, and has each end for what it says.
func (h *hostile) end(t *testing.T, cases []ending) {
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.cases++
			a := h.fault(i)
			p := h.dial(a)
			defer p.Close()
			usual := h.open(a, hFamilies+hFour)
			switch c.when {
			case opened:
				if err := p.Send(usual); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Await(h.ctx, bgpraw.Keepalive); err != nil {
					t.Fatal(err)
				}
			case established:
				if _, err := p.Establish(h.ctx, usual); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Send(c.send); err != nil {
				t.Fatal(err)
			}
			got, err := p.Ended(h.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("NOTIFICATION %v, want %v", got, c.want)
			}
		})
	}
	// Each says why it ended, and is counted.
	refused := 0
	h.p.Await("every end to be told, with the NOTIFICATION", func(x speakertest.Answer) bool {
		return !slices.ContainsFunc(x.Neighbors, func(n bgp.NeighborStatus) bool {
			// What only GoBGP can know is wrong with an OPEN is no fault of the check before it.
			told := n.Faults <= 1 && strings.HasPrefix(n.LastError, "sent notification")
			return hFault.Compare(n.Address) <= 0 && (n.State == engine.StateEstablished || !told)
		})
	})
	all := h.p.Ask(speakertest.Request{})
	for i, c := range cases {
		if n := all.Neighbor(h.fault(i).String()); n.Faults == 0 {
			refused++
			if c.want[0] != 2 {
				t.Errorf("%s: not counted: %q", c.name, n.LastError)
			}
		}
	}
	if refused > 3 {
		t.Errorf("GoBGP had to refuse %d OPENs", refused)
	}
}

// endings are the messages for which RFC 4271, 4760, 5492, 6608 and 7606 end a session, and the
// NOTIFICATIONs with which they do.
func endings() []ending {
	var all []ending
	add := func(name string, w when, want bgpraw.Code, msg []byte) {
		all = append(all, ending{name, w, msg, want})
	}
	alive := bgpraw.Bytes(bgpraw.Keepalive, nil)
	header := func(typ uint8, n int) []byte {
		m := bgpraw.Bytes(typ, make([]byte, max(0, n-bgpraw.HeaderLen)))
		binary.BigEndian.PutUint16(m[16:], uint16(n))
		return m
	}

	// The header: RFC 4271 section 6.1.
	for _, w := range []when{atOnce, established} {
		at := map[when]string{atOnce: "before OPEN", established: "established"}[w]
		for _, i := range []int{0, 7, 15} {
			m := append([]byte(nil), alive...)
			m[i] = 0xfe
			add(fmt.Sprintf("6.1 marker, octet %d, %s", i, at), w, bgpraw.Code{1, 1}, m)
		}
		for _, n := range []int{0, 18} {
			add(fmt.Sprintf("6.1 length %d, %s", n, at), w, bgpraw.Code{1, 2}, header(bgpraw.Keepalive, n))
		}
		add("6.1 KEEPALIVE with a body, "+at, w, bgpraw.Code{1, 2}, header(bgpraw.Keepalive, 20))
		add("6.1 short UPDATE, "+at, w, bgpraw.Code{1, 2}, header(bgpraw.Update, 22))
		add("6.1 short NOTIFICATION, "+at, w, bgpraw.Code{1, 2}, header(bgpraw.Notification, 20))
		add("6.1 short ROUTE-REFRESH, "+at, w, bgpraw.Code{1, 2}, header(bgpraw.RouteRefresh, 22))
		add("6.1 short OPEN, "+at, w, bgpraw.Code{1, 2}, header(bgpraw.Open, 28))
		add("RFC 8654 UPDATE of 4097 octets, "+at, w, bgpraw.Code{1, 2}, header(bgpraw.Update, 4097))
		add("RFC 8654 UPDATE of 65535 octets, "+at, w, bgpraw.Code{1, 2}, header(bgpraw.Update, 65535))
		for _, typ := range []uint8{0, 6, 128, 255} {
			add(fmt.Sprintf("6.1 type %d, %s", typ, at), w, bgpraw.Code{1, 3}, header(typ, 19))
		}
	}

	// The state machine: RFC 6608 section 4.
	eor := bgpraw.UpdateBytes(nil, nil, nil)
	refresh := bgpraw.Bytes(bgpraw.RouteRefresh, bgpraw.Hex("0001 00 01"))
	again := bgpraw.OpenBytes(hAS, 180, netip.MustParseAddr("10.1.2.3"), bgpraw.Hex(hFamilies+hFour))
	add("RFC 6608 KEEPALIVE before OPEN", atOnce, bgpraw.Code{5, 1}, alive)
	add("RFC 6608 UPDATE before OPEN", atOnce, bgpraw.Code{5, 1}, eor)
	add("RFC 6608 ROUTE-REFRESH before OPEN", atOnce, bgpraw.Code{5, 1}, refresh)
	add("RFC 6608 OPEN after OPEN", opened, bgpraw.Code{5, 2}, again)
	add("RFC 6608 UPDATE after OPEN", opened, bgpraw.Code{5, 2}, eor)
	add("RFC 6608 ROUTE-REFRESH after OPEN", opened, bgpraw.Code{5, 2}, refresh)
	add("RFC 6608 OPEN when established", established, bgpraw.Code{5, 3}, again)
	add("RFC 6608 malformed OPEN when established", established, bgpraw.Code{5, 3}, bgpraw.Bytes(bgpraw.Open, make([]byte, 10)))

	for _, o := range openEndings() {
		add(o.name, atOnce, o.want, o.send)
	}
	for _, u := range updateEndings() {
		add(u.name, established, u.want, u.send)
	}
	return all
}

// openEndings are OPENs that are refused: RFC 4271 section 6.2, RFC 5492, 6286, 6793, 7607, 9072.
func openEndings() []ending {
	var all []ending
	body := func(name string, want bgpraw.Code, hex string) {
		all = append(all, ending{name: name, send: bgpraw.Bytes(bgpraw.Open, bgpraw.Hex(hex)), want: want})
	}
	const id = "0a0b0c0d"
	for _, v := range []string{"00", "03", "05", "ff"} {
		body("6.2 version "+v, bgpraw.Code{2, 1}, v+"fc00 00b4"+id+"00")
	}
	body("RFC 7607 AS 0", bgpraw.Code{2, 2}, "04 0000 00b4"+id+"00")
	body("6.2 another AS", bgpraw.Code{2, 2}, "04 fc01 00b4"+id+"00")
	body("6.2 hold time of 1 s", bgpraw.Code{2, 6}, "04 fc00 0001"+id+"00")
	body("6.2 hold time of 2 s", bgpraw.Code{2, 6}, "04 fc00 0002"+id+"00")
	body("RFC 6286 identifier zero", bgpraw.Code{2, 3}, "04 fc00 00b4 00000000 00")
	body("RFC 6286 our identifier", bgpraw.Code{2, 3}, "04 fc00 00b4 0aff0001 00")
	for _, p := range []string{"00", "01", "03", "80", "fe"} {
		body("6.2 optional parameter "+p, bgpraw.Code{2, 4}, "04 fc00 00b4"+id+"03"+p+"01 00")
	}
	params := func(name, length, p string) { body(name, bgpraw.Code{2, 0}, "04 fc00 00b4"+id+length+p) }
	params("6.2 parameters longer than the message", "09", "02 06 0104 0001 00 01")
	params("6.2 parameters shorter than the message", "07", "02 06 0104 0001 00 01")
	params("6.2 parameter runs over", "08", "02 07 0104 0001 00 01")
	params("6.2 parameter without length", "01", "02")
	params("RFC 5492 capability runs over", "08", "02 06 0105 0001 00 01")
	params("RFC 5492 capability without length", "03", "02 01 01")
	params("RFC 9072 without length", "ff", "ff")
	params("RFC 9072 longer than the message", "ff", "ff 0010 02 0006 0104 0001 00 01")
	params("RFC 9072 parameter runs over", "ff", "ff 0009 02 0007 0104 0001 00 01")
	params("RFC 9072 parameter without length", "ff", "ff 0002 02 00")
	for _, c := range []struct{ name, capability string }{
		{"RFC 4760 multiprotocol empty", "0100"}, {"RFC 4760 multiprotocol of three octets", "0103 000100"}, {"RFC 4760 multiprotocol of five octets", "0105 0001000101"},
		{"RFC 6793 AS number empty", "4100"}, {"RFC 6793 AS number of two octets", "4102 fc00"}, {"RFC 6793 AS number of five octets", "4105 0000fc0000"},
		{"RFC 2918 route refresh with a value", "0201 00"}, {"RFC 7313 enhanced route refresh with a value", "4601 00"}, {"RFC 8654 extended message with a value", "0601 00"},
		{"RFC 8950 extended next hop of five octets", "0505 0001000100"}, {"RFC 8950 extended next hop empty", "0500"},
		{"RFC 4724 graceful restart of one octet", "4001 00"}, {"RFC 4724 graceful restart of five octets", "4005 0078000101"},
		{"RFC 7911 add-path empty", "4500"}, {"RFC 7911 add-path of five octets", "4505 0001010300"}, {"RFC 9494 long-lived graceful restart of six octets", "4706 000101000000"},
	} {
		x := strings.Join(strings.Fields(c.capability), "")
		n := len(x) / 2
		params(c.name, fmt.Sprintf("%02x", n+2), fmt.Sprintf("02 %02x %s", n, x))
	}
	body("RFC 7607 AS 0 in the capability", bgpraw.Code{2, 2}, "04 fc00 00b4"+id+"08 02 06 4104 00000000")
	body("RFC 6793 another AS in the capability", bgpraw.Code{2, 2}, "04 fc00 00b4"+id+"08 02 06 4104 0000fc01")
	return all
}

// updateEndings are UPDATEs whose routes can't be told: RFC 7606 sections 3, 5 and 7.11.
func updateEndings() []ending {
	var all []ending
	raw := func(name string, want bgpraw.Code, hex string) {
		all = append(all, ending{name: name, send: bgpraw.Bytes(bgpraw.Update, bgpraw.Hex(hex)), want: want})
	}
	fields := func(name string, want bgpraw.Code, withdrawn, attrs, nlri string) {
		all = append(all, ending{name: name, want: want,
			send: bgpraw.UpdateBytes(bgpraw.Hex(withdrawn), bgpraw.Hex(attrs), bgpraw.Hex(nlri))})
	}
	list, optional, network := bgpraw.Code{3, 1}, bgpraw.Code{3, 9}, bgpraw.Code{3, 10}
	all4 := fAttrs + mHop

	raw("3b withdrawn routes run over", list, "0005 0000 00")
	raw("3b withdrawn routes run far over", list, "ffff 0000")
	raw("3b attributes run over", list, "0000 0005 400101")
	raw("3b attributes run far over", list, "0000 ffff")
	raw("3b no room for the length of attributes", list, "0002 0000")
	for _, n := range []string{"21 0a00000000", "ff", "18 0a00", "18 0a0000 20 0a", "80 0a0000000000000000"} {
		fields("5.3 NLRI "+n, network, "", all4, n)
		fields("3i withdrawn routes "+n, network, n, "", "")
	}
	fields("3g MP_REACH_NLRI twice", list, "", fAttrs+reach6(fHop6)+reach6(fHop6), "")
	fields("3g MP_UNREACH_NLRI twice", list, "", "80 0f 03 0002 01 80 0f 03 0001 80", "")
	fields("6.3 unrecognized well-known attribute", bgpraw.Code{3, 2}, "", all4+"40 fa 00", "18 0a0000")
	fields("6.3 unrecognized well-known attribute that isn't transitive", bgpraw.Code{3, 2}, "", all4+"00 fa 00", "18 0a0000")

	reach := func(name, value string) {
		x := strings.Join(strings.Fields(value), "")
		fields(name, optional, "", fAttrs+fmt.Sprintf("90 0e %04x %s", len(x)/2, x), "")
	}
	for n, v := range []string{"", "00", "0002", "000201", "00020100"} {
		reach(fmt.Sprintf("5.3 MP_REACH_NLRI of %d octets", n), v)
	}
	reach("7.11 next hop runs over", "0002 01 ff 20010db8")
	reach("7.11 no room for the reserved octet", "0002 01 10"+fHop6)
	for _, n := range []int{0, 1, 4, 8, 15, 17, 24, 31, 33, 48} {
		reach(fmt.Sprintf("7.11 IPv6 next hop of %d octets", n), fmt.Sprintf("0002 01 %02x %s 00 30 20010db80001", n, strings.Repeat("20", n)))
	}
	for _, n := range []int{0, 4, 8, 16, 20, 32} {
		reach(fmt.Sprintf("7.11 VPN next hop of %d octets", n), fmt.Sprintf("0001 80 %02x %s 00 60 000101 0000fc0000000001 0a", n, strings.Repeat("c0", n)))
	}
	reach("5.3 IPv6 prefix of 129 bits", "0002 01 10"+fHop6+"00 81"+strings.Repeat("20", 17))
	reach("5.3 IPv6 prefix is cut short", "0002 01 10"+fHop6+"00 30 20010db800")
	for _, n := range []string{"00", "18 000101", "57 000101 0000fc0000000001", "60 000101 0000fc00000000", "79 000101 0000fc0000000001 0a00000000", "ff"} {
		reach("5.3 VPN prefix "+n, "0001 80 0c 0000000000000000"+hNextHop+"00"+n)
	}
	for _, f := range []string{"00", "40", "c0"} {
		fields("5.3 MP_REACH_NLRI with flags "+f, optional, "", fAttrs+f+reach6(fHop6)[2:], "")
		fields("5.3 MP_UNREACH_NLRI with flags "+f, optional, "", f+"0f 0a 0002 01 30 20010db80001", "")
	}
	for n, v := range []string{"", "00", "0002"} {
		fields(fmt.Sprintf("5.3 MP_UNREACH_NLRI of %d octets", n), optional, "", fmt.Sprintf("80 0f %02x %s", n, v), "")
	}
	fields("5.3 IPv6 withdrawal of 129 bits", optional, "", "80 0f 15 0002 01 81"+strings.Repeat("20", 17), "")
	fields("5.3 IPv6 withdrawal is cut short", optional, "", "80 0f 09 0002 01 30 20010db800", "")
	fields("3j MP_REACH_NLRI overruns", optional, "", fAttrs+mHop+"80 0e ff 0002 01", "18 0a0000")
	fields("3j MP_UNREACH_NLRI overruns", optional, "", fAttrs+mHop+"80 0f", "18 0a0000")

	fields("5.2 ORIGIN without routes", bgpraw.Code{3, 6}, "18 0a0000", "40 01 01 09", "")
	fields("5.2 flags without routes", bgpraw.Code{3, 4}, "", "c0 01 01 00", "")
	fields("5.2 length without routes", bgpraw.Code{3, 5}, "", "80 04 01 00", "")
	fields("5.2 AS_PATH without routes", bgpraw.Code{3, 11}, "", "40 02 01 02", "")
	fields("5.2 overrun without routes", bgpraw.Code{3, 5}, "", "40 01 01 00 40", "")
	return all
}
