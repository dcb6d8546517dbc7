package engine

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/apiutil"
	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"google.golang.org/protobuf/types/known/anypb"
)

func octets(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The three types of RFC 4364 section 4.2, and route targets by RFC 4360 section 4 and RFC 5668.
func TestVPNNumbersAreReadAndWrittenAsOnTheWire(t *testing.T) {
	for in, want := range map[string]struct{ rd, rt, text string }{
		"65000:100":        {"0000fde800000064", "0002fde800000064", ""},
		"0:65000:100":      {"0000fde800000064", "0002fde800000064", "65000:100"},
		"65535:4294967295": {"0000ffffffffffff", "0002ffffffffffff", ""},
		"192.0.2.1:100":    {"0001c00002010064", "0102c00002010064", ""},
		"1:192.0.2.1:100":  {"0001c00002010064", "0102c00002010064", "192.0.2.1:100"},
		"65536:100":        {"0002000100000064", "0202000100000064", ""},
		"2:65000:100":      {"00020000fde80064", "02020000fde80064", ""},
		"0:0":              {"0000000000000000", "0002000000000000", ""},
	} {
		if want.text == "" {
			want.text = in
		}
		rd, err := ParseRD(in)
		if err != nil || hex.EncodeToString(rd[:]) != want.rd || rd.String() != want.text {
			t.Errorf("RD %s: %x %s, %v", in, rd, rd, err)
		}
		rt, err := ParseRouteTarget(in)
		if err != nil || hex.EncodeToString(rt[:]) != want.rt || rt.String() != want.text {
			t.Errorf("route target %s: %x %s, %v", in, rt, rt, err)
		}
	}
	for _, in := range []string{"", ":", "65000", "65000:", ":1", "65535:4294967296", "65536:65536", "192.0.2.1:65536",
		"2:65000:65536", "0:65536:1", "0:192.0.2.1:1", "1:65000:1", "3:65000:1", "+1:1", "1:-1", "2001:db8::1:1", "1:2:3:4"} {
		if rd, err := ParseRD(in); !errors.Is(err, ErrVPNNumber) {
			t.Errorf("RD %q: %s, %v", in, rd, err)
		}
		if rt, err := ParseRouteTarget(in); !errors.Is(err, ErrVPNNumber) || !strings.Contains(err.Error(), "route target") {
			t.Errorf("route target %q: %s, %v", in, rt, err)
		}
	}
	if got := (RD{0, 9, 1, 2, 3, 4, 5, 6}).String(); got != "9:0x010203040506" {
		t.Errorf("an unknown type: %s", got)
	}
}

func TestVPNAnnouncementsAreWrittenAsOnTheWire(t *testing.T) {
	rd, _ := ParseRD("65000:1")
	e := withPeer()
	for name, tt := range map[string]struct {
		prefix, nextHop string
		label           uint32
		nlri, reach     string
	}{
		// RFC 4364 section 4.3.2: RD of zero in front of the next hop; RFC 8277: label with bottom of stack.
		"VPNv4": {"192.0.2.0/24", "10.200.0.1", 1001, "70 | 003e91 | 0000fde800000001 | c00002",
			"80 0e 20 | 0001 80 0c 0000000000000000 0ac80001 00 | 70 003e91 0000fde800000001 c00002"},
		"VPNv4, host": {"192.0.2.1/32", "10.200.0.1", 3, "78 | 000031 | 0000fde800000001 | c0000201", ""},
		"VPNv6": {"2001:db8:a::/48", "2001:db8::1", 3, "88 | 000031 | 0000fde800000001 | 20010db8000a",
			"80 0e 2f | 0002 80 18 0000000000000000 20010db8000000000000000000000001 00 | 88 000031 0000fde800000001 20010db8000a"},
		// RFC 4659 section 3.2.1.2: IPv4 core.
		"VPNv6 over IPv4": {"2001:db8:a::/48", "10.200.0.1", 1048575, "88 | fffff1 | 0000fde800000001 | 20010db8000a",
			"80 0e 2f | 0002 80 18 0000000000000000 00000000000000000000ffff0ac80001 00 | 88 fffff1 0000fde800000001 20010db8000a"},
	} {
		a := Announcement{Prefix: netip.MustParsePrefix(tt.prefix), NextHop: netip.MustParseAddr(tt.nextHop),
			VPN: &VPNInfo{RD: rd, Label: tt.label}, Attributes: []RawAttribute{{0x40, 1, 1, 0}}}
		p, err := e.toAPIPath(a)
		if err != nil {
			t.Fatal(err)
		}
		if want := octets(t, tt.nlri); !slices.Equal(p.NlriBinary, want) {
			t.Errorf("%s: NLRI %x, want %x", name, p.NlriBinary, want)
		}
		if want := octets(t, tt.reach); tt.reach != "" && !slices.Equal(p.PattrsBinary[1], want) {
			t.Errorf("%s: MP_REACH_NLRI\n%x, want\n%x", name, p.PattrsBinary[1], want)
		}
		if p.Family.Safi != api.Family_SAFI_MPLS_VPN || !a.Family().VPN() {
			t.Errorf("%s: family %v", name, p.Family)
		}
	}
	targets := []RouteTarget{{0, 2, 0xfd, 0xe8, 0, 0, 0, 100}, {1, 2, 192, 0, 2, 1, 0, 7}}
	if got, want := TargetsAttribute(targets), octets(t, "d0 10 0010 0002fde800000064 0102c00002010007"); !slices.Equal(got, want) {
		t.Errorf("extended communities %x, want %x", got, want)
	}
}

// fromWire gives the path that GoBGP makes of an UPDATE's path attributes.
func fromWire(t *testing.T, attributes string) *api.Path {
	t.Helper()
	body := octets(t, attributes)
	update := append([]byte{0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	header := append(slices.Repeat([]byte{0xff}, 16), byte((len(update)+19)>>8), byte(len(update)+19), bgp.BGP_MSG_UPDATE)
	msg, err := bgp.ParseBGPMessage(append(header, update...))
	if err != nil {
		t.Fatal(err)
	}
	attrs := msg.Body.(*bgp.BGPUpdate).PathAttributes
	p := &api.Path{SourceId: peer.a.String()}
	if p.Pattrs, err = apiutil.MarshalPathAttributes(attrs); err != nil {
		t.Fatal(err)
	}
	for _, a := range attrs {
		var nlri bgp.AddrPrefixInterface
		switch a := a.(type) {
		case *bgp.PathAttributeMpReachNLRI:
			nlri = a.Value[0]
		case *bgp.PathAttributeMpUnreachNLRI:
			nlri, p.IsWithdraw = a.Value[0], true
		default:
			continue
		}
		if p.Nlri, err = apiutil.MarshalNLRI(nlri); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestVPNPathsAreReadFromTheWire(t *testing.T) {
	const origin, asPath = "40 01 01 00 | ", "40 02 00 | "
	const targets = "c0 10 28 | 0002fde800000064 | 0102c00002010007 | 0202fa56ea000009 | 4002fde800000063 | 0003fde800000062 | "
	const nhc = "c0 27 18 | 0001 80 0c 0000fde800000001 0ac80001 | ff78 0004 c0000207"
	for name, tt := range map[string]struct{ in, prefix, rd, nextHop string }{
		"VPNv4": {origin + asPath + "80 0e 20 | 0001 80 0c 0000000000000000 0ac80001 00 | 70 003e91 0000fde800000001 c00002 | " + targets + nhc,
			"192.0.2.0/24", "65000:1", "10.200.0.1"},
		"VPNv4, RD with an address": {origin + asPath + "80 0e 20 | 0001 80 0c 0000000000000000 0ac80001 00 | 70 003e91 0001c00002010005 c00002 | " + targets + nhc,
			"192.0.2.0/24", "192.0.2.1:5", "10.200.0.1"},
		"VPNv6": {origin + asPath + "80 0e 2f | 0002 80 18 0000000000000000 20010db8000000000000000000000001 00 | 88 000031 0002fa56ea000005 20010db8000a | " + targets + nhc,
			"2001:db8:a::/48", "4200000000:5", "2001:db8::1"},
		"VPNv6 over IPv4": {origin + asPath + "80 0e 2f | 0002 80 18 0000000000000000 00000000000000000000ffff0ac80001 00 | 88 000031 0000fde800000001 20010db8000a | " + targets + nhc,
			"2001:db8:a::/48", "65000:1", "10.200.0.1"},
	} {
		p, err := new(pathReader).read(fromWire(t, tt.in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Prefix.String() != tt.prefix || p.RD.String() != tt.rd || p.NextHop.Unmap().String() != tt.nextHop || !p.HasNHC {
			t.Errorf("%s: %+v", name, p)
		}
		var got []string
		for _, rt := range p.Targets {
			got = append(got, rt.String())
		}
		// Neither the non-transitive one nor the route origin counts.
		if want := []string{"65000:100", "192.0.2.1:7", "4200000000:9"}; !slices.Equal(got, want) {
			t.Errorf("%s: route targets %v, want %v", name, got, want)
		}
	}
	// RFC 8277 section 2.4: a withdrawal has a label that means nothing.
	p, err := new(pathReader).read(fromWire(t, "80 0f 12 | 0001 80 | 70 800000 0000fde800000001 c00002"))
	if err != nil || !p.Withdrawn || p.Prefix.String() != "192.0.2.0/24" || p.RD.String() != "65000:1" {
		t.Errorf("withdrawal: %+v, %v", p, err)
	}
}

func TestAPathOfAnUnknownRDIsAnErrorAndNoPath(t *testing.T) {
	other, err := anypb.New(&api.IPAddressPrefix{Prefix: "192.0.2.0", PrefixLen: 24})
	if err != nil {
		t.Fatal(err)
	}
	for name, rd := range map[string]*anypb.Any{"none": nil, "another message": other} {
		nlri, err := anypb.New(&api.LabeledVPNIPAddressPrefix{Rd: rd, Prefix: "192.0.2.0", PrefixLen: 24})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := new(pathReader).read(&api.Path{Nlri: nlri}); err == nil || p.Prefix.IsValid() {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestTheQueueKeepsVPNsApart(t *testing.T) {
	q := newQueue()
	for i, f := range []Family{IPv4Unicast, IPv4VPN, IPv4VPN, IPv4VPN} {
		ev := event(peer.a, 0, uint32(i))
		ev.Family, ev.Path.RD[7] = f, byte(i/2)
		q.add(&ev)
	}
	// Unicast, RD 0, and twice RD 1.
	if got := q.take(); len(got) != 3 || got[2].Path.MED != 3 {
		t.Errorf("%+v", got)
	}
}

func TestAReplayLeavesOutWhatChangedMeanwhile(t *testing.T) {
	e := withPeer()
	r := &replay{paths: map[replayKey]struct{}{}, peers: map[netip.Addr]struct{}{}}
	e.replays = map[*replay]struct{}{r: {}}
	changed, down := event(peer.a, 0, 1), Event{Kind: EventState, Peer: peer.b}
	e.touch(&changed)
	e.touch(&down)
	if _, ok := r.paths[replayKey{peer.a, keyOf(&changed)}]; !ok || len(r.paths) != 1 {
		t.Errorf("paths %v", r.paths)
	}
	if _, ok := r.peers[peer.b]; !ok || len(r.peers) != 1 {
		t.Errorf("peers %v", r.peers)
	}
}

// FuzzVPNNumber holds that what is read is written so that it is read again as the same.
func FuzzVPNNumber(f *testing.F) {
	for _, s := range []string{"65000:100", "192.0.2.1:7", "2:1:2", "4200000000:9", "0:0", "::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rd, err := ParseRD(s)
		rt, err2 := ParseRouteTarget(s)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v, %v", s, err, err2)
		}
		if err != nil {
			return
		}
		if again, err := ParseRD(rd.String()); err != nil || again != rd {
			t.Fatalf("%q: %x, then %x, %v", s, rd, again, err)
		}
		if again, err := ParseRouteTarget(rt.String()); err != nil || again != rt {
			t.Fatalf("%q: %x, then %x, %v", s, rt, again, err)
		}
	})
}
