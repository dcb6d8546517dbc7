package daemon

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/speaker"
)

func TestWhyALinkIsNotUsed(t *testing.T) {
	address := netip.MustParsePrefix("192.0.2.12/31")
	for _, tc := range []struct {
		v    packet.Version
		link speaker.Link
		why  error
		up   bool
		want string
	}{
		{packet.V2, speaker.Link{Up: true, Address: address}, nil, true, ""},
		{packet.V2, speaker.Link{}, nil, false, "the link is down"},
		{packet.V2, speaker.Link{Up: true}, nil, false, "the interface has no IPv4 address"},
		{packet.V3, speaker.Link{Up: true}, nil, false, "the interface has no IPv6 link-local address"},
		{packet.V2, speaker.Link{}, errors.New("there is no such interface"), false, "there is no such interface"},
	} {
		got := ospfLink(tc.v, &speaker.LinkStatus{Name: "ospf0", Link: tc.link}, tc.why)
		if got.GetDetail() != tc.want || got.GetUp() != tc.up {
			t.Errorf("%v: %v, want %q", tc.link, got, tc.want)
		}
	}
}

func TestNeighboursForTheAPI(t *testing.T) {
	got := ospfLink(packet.V2, &speaker.LinkStatus{Name: "ospf0", Broadcast: true, State: iface.DROther, DR: 0xC0000202, Neighbors: []speaker.NeighborStatus{{
		Router: 7, Address: netip.MustParseAddr("192.0.2.2"), State: neighbor.ExStart, DR: 0xC0000202, Dropped: map[neighbor.Reason]uint64{neighbor.ReasonMTU: 3},
	}}}, nil)
	n := got.GetNeighbors()[0]
	if got.GetDesignated() != "192.0.2.2" || got.GetBackup() != "" || got.GetState() != "dr-other" || n.GetRouterId() != "0.0.0.7" || n.GetState() != "exstart" || n.GetDropped()["mtu"] != 3 || n.HelpedUntil != nil {
		t.Errorf("%v", got)
	}
}

// detail gives what a reader is shown of an LSA.
func detail(t *testing.T, c marks.Config, h packet.Header, body []byte) *pncv1.OspfLsa {
	t.Helper()
	l, err := packet.NewLSA(c.Version, h, body)
	if err != nil {
		t.Fatal(err)
	}
	out := ospfLSA(c.Version, l, 17)
	ospfDetail(c, l, out)
	return out
}

func TestLSAsForAReader(t *testing.T) {
	v2, v3 := marks.Config{Version: packet.V2, Carrier: marks.Carrier{Bit: 2}}, marks.Config{Version: packet.V3, Carrier: marks.Carrier{Bit: 2}}
	key := func(t packet.LSType, id packet.ID) packet.Header {
		return packet.Header{Key: packet.Key{Type: t, ID: id, Adv: 0xC0000201}, Sequence: packet.InitialSequence}
	}
	marked := []packet.TLV{{Type: packet.V2SubPrefixFlags, Value: packet.WithFlagBit(2)}, {Type: packet.V2SubSourceRouterAddr, Value: []byte{192, 0, 2, 1}}, {Type: 2, Value: make([]byte, 8)}}
	ext := packet.V2ExtendedPrefix{RouteType: packet.RouteIntraArea, Flags: 0x40, Prefix: netip.MustParsePrefix("10.1.0.0/24"), Subs: marked}
	x := detail(t, v2, key(packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, 1)), ext.Append(nil))
	if p := x.GetPrefixes(); x.GetTypeName() != "extended-prefix" || len(p) != 1 || !p[0].GetP() || p[0].GetFlags() != "20000000" || p[0].GetSourceAddress() != "192.0.2.1" ||
		p[0].GetRouteType() != "intra-area" || p[0].GetOptions() != 0x40 || p[0].GetOtherSubTlvs()[0] != 2 || x.GetSequence() != 0x80000001 || x.GetAge() != 17 || x.GetScope() != "area" {
		t.Errorf("%v", x)
	}
	if x := detail(t, v2, key(packet.V2OpaqueAS, packet.OpaqueID(packet.OpaqueExtendedPrefix, 1)), ext.Append(nil)); x.GetPrefixes()[0].GetP() {
		t.Errorf("of the domain's scope: %v; the P flag counts in an area alone", x)
	}
	v3prefix := packet.V3EIntraArea{Prefixes: []packet.V3ExtendedPrefix{{Type: packet.V3TLVIntraAreaPrefix, Metric: 5, Prefix: netip.MustParsePrefix("2001:db8::/48"),
		Options: 2, Subs: []packet.TLV{{Type: packet.V3SubPrefixFlags, Value: packet.WithFlagBit(2)}}}}}
	if x := detail(t, v3, key(packet.V3EIntraAreaPrefix, 1), v3prefix.Append(nil)); x.GetTypeName() != "e-intra-area-prefix" || !x.GetPrefixes()[0].GetP() || x.GetPrefixes()[0].GetMetric() != 5 {
		t.Errorf("%v", x)
	}
	router := packet.V2RouterLSA{Flags: packet.RouterB, Links: []packet.V2Link{{ID: 0xC00002FE, Kind: packet.LinkPointToPoint, Metric: 65535}, {ID: 0x0A000000, Data: 0xFF000000, Kind: packet.LinkStub, Metric: 10}}}
	for _, tc := range []struct {
		c    marks.Config
		h    packet.Header
		body []byte
		want string
	}{
		{v2, key(packet.V2Router, 1), router.Append(nil), "flags: area border router | link to router 192.0.2.254, metric 65535 | link to stub network 10.0.0.0/8, metric 10"},
		{v2, key(packet.V2Network, 1), []byte{255, 255, 255, 0, 0, 0, 0, 1}, "mask: 255.255.255.0 | routers: 0.0.0.1"},
		{v2, key(packet.V2Summary, 0x0A000000), []byte{255, 0, 0, 0, 0, 0, 0, 7}, "network: 10.0.0.0/8 | metric: 7"},
		{v2, key(packet.V2External, 0x0A000000), []byte{255, 0, 0, 0, 0, 0, 0, 7}, "network: 10.0.0.0/8"},
		{v2, key(packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueTE, 1)), packet.AppendTLV(nil, packet.TLV{Type: 1, Value: []byte{10, 0, 0, 1}}), "router address: 10.0.0.1"},
		{v2, key(packet.V2OpaqueArea, packet.OpaqueID(99, 1)), []byte{1, 2, 3, 4}, "01020304"},
		{v3, key(packet.V3Router, 0), packet.V3RouterLSA{Links: []packet.V3RouterLink{{Kind: packet.LinkTransit, Neighbor: 9, Metric: 65535}}}.Append(nil), "no transit: the R bit is clear | link to network 0.0.0.9, metric 65535"},
		{v3, key(packet.V3InterAreaRouter, 0), []byte{0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9}, "router: 0.0.0.9, metric 3"},
	} {
		if got := strings.Join(detail(t, tc.c, tc.h, tc.body).GetLines(), " | "); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	if x := detail(t, v2, key(packet.V2Router, 1), []byte{0}); !strings.Contains(strings.Join(x.GetLines(), " "), "must be at least 4") {
		t.Errorf("one that can't be read: %v", x)
	}
}

// The names of the API are those of the types that are known here.
func TestKnownTypesHaveNames(t *testing.T) {
	for _, typ := range []packet.LSType{packet.V3Router, packet.V3Network, packet.V3InterAreaPrefix, packet.V3InterAreaRouter, packet.V3External, packet.V3NSSA, packet.V3Link, packet.V3IntraAreaPrefix,
		packet.V3Grace, packet.V3ERouter, packet.V3ENetwork, packet.V3EInterAreaPrefix, packet.V3EExternal, packet.V3ENSSA, packet.V3ELink, packet.V3EIntraAreaPrefix, packet.V3IntraAreaTE} {
		if name := api.LsaTypeName(3, uint32(typ), 0); strings.HasPrefix(name, "0x") {
			t.Errorf("%#x has no name", uint16(typ))
		}
	}
}

func TestALinkSaysWhatItRefusedAndWhatLast(t *testing.T) {
	s := speaker.LinkStatus{
		Link:    speaker.Link{Up: true, Address: netip.MustParsePrefix("192.0.2.12/31")},
		Refused: map[iface.Reason]uint64{iface.ReasonInterval: 2}, Dropped: map[speaker.Drop]uint64{speaker.DropAuthentication: 3},
		Last: "authentication, from 192.0.2.13: an unknown key", Neighbors: []speaker.NeighborStatus{{State: neighbor.Init}},
	}
	got := ospfLink(packet.V2, &s, nil)
	if got.GetRefused()["hello-interval"] != 2 || got.GetRefused()["authentication"] != 3 || got.GetDetail() != "last refused: "+s.Last {
		t.Errorf("%v", got)
	}
	s.Neighbors[0].State = neighbor.Full // what was refused before is past
	if got := ospfLink(packet.V2, &s, nil); got.GetDetail() != "" {
		t.Errorf("%q", got.GetDetail())
	}
}
