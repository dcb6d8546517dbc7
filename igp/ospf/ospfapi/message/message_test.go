package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/igp/ospf/packet"
)

// captured are messages of FRR 8.4.4's ospfd, as they came over the two connections.
var captured = map[string]string{
	"reply":            "010a00040000000100000000",
	"no such if":       "010a000400000008ff000000",
	"not registered":   "010a000400000007fa000000",
	"router LSA":       "010c00300000000200000000000000000100000000000201010101010101010180000001a1900024000000010a050000ffffff000300000a",
	"LSA gone":         "010d0030000000000000000000000000010000000e100201010101010101010180000001a1900024000000010a050000ffffff000300000a",
	"router ID":        "01140004000000030101014d",
	"interface":        "0110000c000000050a0500010000000003000000",
	"neighbor":         "01110010000000060a0500010a0500010101010105000000",
	"interface down":   "0110000c000000000a0500010000000001000000",
	"empty router LSA": "010c0024000000000000000000000000010000000000020101010101010101018000000231290018000000" + "00",
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatOspfdSaysIsReadAndWrittenBackByteForByte(t *testing.T) {
	for name, text := range captured {
		b := unhex(t, text)
		m, err := Parse(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, unknown := m.Body.(Unknown); unknown {
			t.Errorf("%s: type %s is not known", name, m.Body.Type())
		}
		if got, err := m.Append(nil); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: got %x, %v\nwant %x", name, got, err, b)
		}
	}
}

func TestFieldsOfWhatOspfdSays(t *testing.T) {
	parse := func(name string) Message {
		m, err := Parse(unhex(t, captured[name]))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := parse("router LSA")
	c := m.Body.(LSAChange)
	if m.Sequence != 2 || c.Deleted || c.Self != 1 || c.Area != 0 || c.LSA.Type != packet.V2Router || c.LSA.Adv.String() != "1.1.1.1" || !c.LSA.ChecksumOK() {
		t.Errorf("router LSA: %+v", m)
	}
	if c := parse("LSA gone").Body.(LSAChange); !c.Deleted || c.LSA.AgeSeconds() != packet.MaxAge {
		t.Errorf("LSA gone: %+v", c)
	}
	if r := parse("not registered").Body.(Reply); r.Code != OpaqueNotRegistered || r.Code.String() != "opaque type not registered" {
		t.Errorf("reply: %+v", r)
	}
	if r := parse("router ID").Body.(RouterID); r.ID.String() != "1.1.1.77" {
		t.Errorf("router ID: %+v", r)
	}
	n := parse("neighbor").Body.(NeighborState)
	if n.Interface != netip.MustParseAddr("10.5.0.1") || n.RouterID.String() != "1.1.1.1" || n.State != 5 {
		t.Errorf("neighbor: %+v", n)
	}
	if i := parse("interface").Body.(InterfaceState); i.Interface != netip.MustParseAddr("10.5.0.1") || i.State != 3 {
		t.Errorf("interface: %+v", i)
	}
}

func TestEveryBodyIsReadAsItWasWritten(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	for _, body := range []Body{
		RegisterEvent{Filter{Types: TypeMask(packet.V2Router, packet.V2OpaqueArea), Origin: OriginAny}},
		SyncLSDB{Filter{Types: 2, Origin: OriginOthers}}, SyncRouterID{}, Reply{Code: NotReady},
		NewInterface{addr, 7}, DelInterface{addr}, InterfaceState{Interface: addr, Area: 1, State: 4},
		NeighborState{Interface: addr, Neighbor: addr, RouterID: 9, State: 9},
		Reachable{Added: []packet.ID{1, 2}, Removed: []packet.ID{3}}, RouterID{5}, Unknown{Kind: TypeReady, Octets: []byte{9, 1, 0, 0}},
	} {
		b, err := Message{Sequence: 77, Body: body}.Append(nil)
		if err != nil {
			t.Errorf("%s: %v", body.Type(), err)
			continue
		}
		m, err := Parse(b)
		if err != nil || m.Sequence != 77 || m.Body.Type() != body.Type() {
			t.Errorf("%s: %+v, %v", body.Type(), m, err)
			continue
		}
		if again, err := m.Append(nil); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: got %x, %v, want %x", body.Type(), again, err, b)
		}
		for n := range b {
			if _, err := Parse(b[:n]); err == nil {
				t.Errorf("%s: read from %d of %d octets", body.Type(), n, len(b))
			}
		}
	}
}

// requests are all that a client can send.
func requests() []Request {
	f := Filter{Types: TypeMask(packet.V2Router), Origin: OriginAny}
	return []Request{RegisterEvent{f}, SyncLSDB{f}, SyncRouterID{}, InstanceProbe{netip.MustParseAddr("192.0.2.1")},
		RegisterEvent{}, SyncLSDB{}, InstanceProbe{}} // as empty as they can be
}

func TestNoMessageHasAnEmptyBody(t *testing.T) {
	for _, r := range requests() {
		b, err := Message{Sequence: 1, Body: r}.Append(nil)
		if err != nil {
			t.Errorf("%s: %v", r.Type(), err)
			continue
		}
		if h, err := ParseHeader(b); err != nil || h.Length == 0 || int(h.Length) != len(b)-HeaderLen {
			t.Errorf("%s: %+v, %v: %x", r.Type(), h, err, b)
		}
	}
	for typ := range 256 {
		before := []byte{1, 2}
		b, err := Message{Sequence: 1, Body: Unknown{Kind: Type(typ)}}.Append(before)
		if err == nil || !bytes.Equal(b, before) {
			t.Errorf("type %d without a body was written: %x", typ, b)
		}
	}
}

func TestARequestCanRegisterAndOriginateNothing(t *testing.T) {
	for _, r := range requests() {
		if slices.Contains([]Type{TypeRegisterOpaque, TypeUnregisterOpaque, TypeDelete}, r.Type()) {
			t.Errorf("%s is a request", r.Type())
		}
		if r.Type() != TypeOriginate {
			continue
		}
		b, err := Message{Sequence: 1, Body: r}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := packet.ParseLSA(packet.V2, b[HeaderLen+8:])
		if err != nil || l.Type != packet.V2OpaqueLink || l.ID.OpaqueType() != 255 || len(l.Body()) != 0 || len(b) != HeaderLen+8+packet.HeaderLen {
			t.Errorf("the probe would originate %+v, %v", l, err)
		}
	}
}

func TestTheProbeAsOspfdTookIt(t *testing.T) {
	b, err := Message{Sequence: 7, Body: InstanceProbe{netip.MustParseAddr("10.5.0.1")}}.Append(nil)
	want := "0105001c00000007" + "0a05000100000000" + "00000009ff000000" + "00000000000000000000" + "0014"
	if got := hex.EncodeToString(b); err != nil || got != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestErrorsNameOffsetFieldAndRule(t *testing.T) {
	for text, want := range map[string]string{
		"010a":                          "offset 2: header: 2 octets, must be 8",
		"020a00040000000100000000":      "offset 0: version: 2, must be 1",
		"010a000400000001000000":        "offset 2: length: 4, but 3 octets follow the header",
		"010a00030000000100" + "0000":   "offset 8: reply: 3 octets, must be 4",
		"0114000400000003010101":        "offset 2: length: 4, but 3",
		"0112000400000000" + "00010000": "offset 8: numbers of routers: 1 and 0, but 0 octets follow",
		"0103000400000001" + "00020201": "offset 11: areas: 1 and 0 octets, must be none",
		"010c000400000000" + "00000000": "offset 8: lsa-update-notify: 4 octets, must be at least 32",
		// An LSA that says to be longer than the message.
		"010c002000000000" + "000000000000000000000000" + "0000020101010101010101018000000102030024": "LSA length: 36, but 20 octets are left",
	} {
		_, err := Parse(unhex(t, text))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
