package guard

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// openCase is an OPEN and what must become of it.
type openCase struct {
	name  string
	msg   []byte
	pass  []byte // passed instead; nil: passed unchanged
	fault [2]uint8
	finds []Finding
}

// open9072 is an OPEN with extended optional parameters, given in hexadecimal.
func open9072(params string) []byte {
	p := hx(params)
	b := append(hx("04 fc00 005a 0a000001 ff ff"), uint8(len(p)>>8), uint8(len(p)))
	return message(typeOpen, append(b, p...))
}

// openParams is an OPEN with optional parameters in hexadecimal.
func openParams(params string) []byte {
	p := hx(params)
	return message(typeOpen, append(append(hx("04 fc00 005a 0a000001"), uint8(len(p))), p...))
}

// tenFamilies are capabilities of 60 octets that GoBGP makes nothing of here.
var tenFamilies = strings.Repeat("0104 4004 00 47 ", 10)

var openCases = []openCase{
	{name: "RFC 4271 4.2 without parameters", msg: openOf("")},
	{name: "RFC 5492 4 capabilities", msg: openOf(as4 + "0200 4600 8000 4002 8078 0600" + capsHop + capsAddPath)},
	{name: "RFC 5492 4 unknown capability", msg: openOf(as4 + "c803 010203")},
	{name: "RFC 5492 4 several parameters", msg: openParams("02 06 0104 0001 00 01 02 06 4104 0000fc00")},
	{name: "host name and version", msg: openOf("4905 02 6162 01 63  4b04 03 312e30")},
	{name: "RFC 4724 3 graceful restart", msg: openOf("4006 0078 0001 01 80")},

	{name: "RFC 4271 6.2 version 3", msg: message(typeOpen, hx("03 fc00 005a 0a000001 00")), fault: [2]uint8{2, 1}},
	{name: "RFC 7607 2 AS 0", msg: message(typeOpen, hx("04 0000 005a 0a000001 00")), fault: [2]uint8{2, 2}},
	{name: "RFC 7607 2 AS 0 in the capability", msg: openOf("4104 00000000"), fault: [2]uint8{2, 2}},
	{name: "RFC 6286 2.1 identifier zero", msg: message(typeOpen, hx("04 fc00 005a 00000000 00")), fault: [2]uint8{2, 3}},
	{name: "RFC 4271 6.2 hold time of 2 s", msg: message(typeOpen, hx("04 fc00 0002 0a000001 00")), fault: [2]uint8{2, 6}},
	{name: "RFC 4271 6.2 hold time of 1 s", msg: message(typeOpen, hx("04 fc00 0001 0a000001 00")), fault: [2]uint8{2, 6}},
	{name: "RFC 4271 6.2 hold time zero", msg: message(typeOpen, hx("04 fc00 0000 0a000001 00"))},
	{name: "RFC 4271 6.2 unknown optional parameter", msg: openParams("09 01 00"), fault: [2]uint8{2, 4}},
	{name: "RFC 4271 6.2 authentication parameter", msg: openParams("01 01 00"), fault: [2]uint8{2, 4}},
	{name: "RFC 4271 6.2 parameters longer than the message", msg: message(typeOpen, hx("04 fc00 005a 0a000001 08 02 06 0104 0001")), fault: [2]uint8{2, 0}},
	{name: "RFC 4271 6.2 parameters shorter than the message", msg: message(typeOpen, hx("04 fc00 005a 0a000001 00 02 00")), fault: [2]uint8{2, 0}},
	{name: "RFC 4271 6.2 parameter is cut short", msg: openParams("02 09 0104 0001 00 01"), fault: [2]uint8{2, 0}},
	{name: "RFC 4271 6.2 parameter without length", msg: openParams("02 00 02"), fault: [2]uint8{2, 0}},
	{name: "RFC 5492 4 capability is cut short", msg: openOf("0104 0001 00"), fault: [2]uint8{2, 0}},
	{name: "RFC 5492 4 capability without length", msg: openOf("0200 01"), fault: [2]uint8{2, 0}},
	{name: "RFC 4760 8 multiprotocol of three octets", msg: openOf("0103 0001 00"), fault: [2]uint8{2, 0}},
	{name: "RFC 6793 3 AS number of two octets", msg: openOf("4102 fc00"), fault: [2]uint8{2, 0}},
	{name: "RFC 2918 2 route refresh with a value", msg: openOf("0201 00"), fault: [2]uint8{2, 0}},
	{name: "RFC 8950 4 extended next hop of five octets", msg: openOf("0505 0001000100"), fault: [2]uint8{2, 0}},
	{name: "RFC 4724 3 graceful restart of three octets", msg: openOf("4003 007800"), fault: [2]uint8{2, 0}},
	{name: "RFC 4724 3 graceful restart empty", msg: openOf("4000"), fault: [2]uint8{2, 0}},
	{name: "RFC 9494 3 long-lived graceful restart of six octets", msg: openOf("4706 000101000000"), fault: [2]uint8{2, 0}},
	{name: "RFC 7911 4 add-path of three octets", msg: openOf("4503 000101"), fault: [2]uint8{2, 0}},
	{name: "RFC 7911 4 add-path empty", msg: openOf("4500"), fault: [2]uint8{2, 0}},

	{name: "RFC 7911 4 other than send and receive is ignored", msg: openOf(as4 + "4508 0001 01 07 0002 01 02"),
		pass: openOf(as4 + "4508 0001 01 00 0002 01 02"), finds: finding(WrongValue, Discarded, 0)},
	{name: "malformed host name is left out", msg: openOf(as4 + "4902 0561"), pass: openOf(as4), finds: finding(WrongLength, Discarded, 0)},
	{name: "malformed version is left out", msg: openOf(as4 + "4b01 00"), pass: openOf(as4), finds: finding(WrongLength, Discarded, 0)},

	{name: "RFC 9072 2 extended parameters", msg: open9072("02 0006 0104 0001 00 01 02 0006 4104 0000fc00"),
		pass: openOf("0104 0001 00 01 4104 0000fc00")},
	{name: "RFC 9072 2 without parameters", msg: open9072(""), pass: openOf("")},
	{name: "RFC 9072 2 whatever the short length says", msg: message(typeOpen, hx("04 fc00 005a 0a000001 05 ff 0003 02 0000")), pass: openOf("")},
	{name: "RFC 9072 2 length is cut short", msg: message(typeOpen, hx("04 fc00 005a 0a000001 ff ff 00")), fault: [2]uint8{2, 0}},
	{name: "RFC 9072 2 longer than the message", msg: message(typeOpen, hx("04 fc00 005a 0a000001 ff ff 0009 02 0006 0104 0001")), fault: [2]uint8{2, 0}},
	{name: "RFC 9072 2 parameter is cut short", msg: open9072("02 0006 0104"), fault: [2]uint8{2, 0}},
	{name: "RFC 9072 2 unknown parameter", msg: open9072("07 0001 00"), fault: [2]uint8{2, 4}},
	{name: "RFC 9072 2 parameter of the extended type", msg: open9072("ff 0000"), fault: [2]uint8{2, 4}},
	{name: "RFC 5492 4 the longest parameter", msg: openParams("02 fd" + as4 + "c8dd" + strings.Repeat("00", 0xdd))},
	{name: "what GoBGP doesn't know makes room", msg: open9072("02 0124" + as4 + "c8fe" + strings.Repeat("00", 0xfe) + "4904 01 61 01 63"),
		pass: openOf(as4 + "4904 01 61 01 63")},
	{name: "families that aren't ours make room", msg: open9072("02 0126" + strings.Repeat(tenFamilies, 4) + strings.Repeat("0104 4004 00 47 ", 4) + as4),
		pass: openOf(as4)},
	{name: "too much for GoBGP", msg: open9072("02 0120" + strings.Repeat("0104 0001 00 01", 48)), fault: [2]uint8{2, 0}},
}

func TestOpen(t *testing.T) {
	for _, c := range openCases {
		t.Run(c.name, func(t *testing.T) {
			s := New(Config{Families: families})
			s.ToPeer(openOf(as4))
			v := s.FromPeer(c.msg)
			if c.fault != [2]uint8{} {
				if v.Fault == nil || [2]uint8{v.Fault.Code, v.Fault.Subcode} != c.fault || v.Pass != nil {
					t.Fatalf("%+v, want fault %v", v, c.fault)
				}
				return
			}
			if v.Fault != nil {
				t.Fatal(v.Fault)
			}
			want := c.pass
			if want == nil {
				want = c.msg
			}
			if !bytes.Equal(v.Pass, want) || !slices.Equal(v.Findings, c.finds) {
				t.Errorf("pass %x findings %v, want\n     %x %v", v.Pass, v.Findings, want, c.finds)
			}
		})
	}
}

func TestVersionFaultNamesOurs(t *testing.T) {
	f := New(Config{}).FromPeer(message(typeOpen, hx("03 fc00 005a 0a000001 00"))).Fault
	if want := message(typeNotification, hx("02 01 0004")); !bytes.Equal(f.Notification(), want) {
		t.Errorf("%x, want %x", f.Notification(), want)
	}
}
