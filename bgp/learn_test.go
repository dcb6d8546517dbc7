package bgp

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/bgp/engine"
	"pncd/pnc"
)

var (
	addr   = netip.MustParseAddr
	prefix = netip.MustParsePrefix
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	head4   = "0001 01 04 c6336401" // next hop 198.51.100.1
	pnc7    = "ff78 0004 c0000207"  // 192.0.2.7
	pnc8    = "ff78 0004 c0000208"  // 192.0.2.8
	unknown = "0100 0004 abcdef01"
)

func testLearning() learning {
	return learning{code: 65400, routerID: addr("192.0.2.99")}
}

func TestJudgeGivesEachFaultItsReason(t *testing.T) {
	type want struct {
		proxy   string
		reason  pnc.DisregardReason
		counted []pnc.DisregardReason
	}
	ibgp, ebgp := peerInfo{accept: true}, peerInfo{ebgp: true}
	for name, tt := range map[string]struct {
		nhc   string
		flags uint8
		peer  peerInfo
		edit  func(*learning, *nhcPath)
		want  want
	}{
		"believed":                {head4 + pnc7, 0xc0, ibgp, nil, want{"192.0.2.7", 0, nil}},
		"unknown TLVs beside":     {head4 + unknown + pnc7, 0xc0, ibgp, nil, want{"192.0.2.7", 0, nil}},
		"unordered":               {head4 + pnc7 + unknown, 0xc0, ibgp, nil, want{"192.0.2.7", 0, nil}},
		"identical twice":         {head4 + pnc7 + pnc7, 0xc0, ibgp, nil, want{"192.0.2.7", 0, nil}},
		"no PNC":                  {head4 + unknown, 0xc0, ibgp, nil, want{"", 0, nil}},
		"without TLV":             {head4, 0xc0, ibgp, nil, want{"", 0, nil}},
		"Partial":                 {head4 + pnc7, 0xe0, ibgp, nil, want{"192.0.2.7", 0, nil}},
		"next hop changed":        {"0001 01 04 c6336402" + pnc7, 0xc0, ibgp, nil, want{"192.0.2.7", pnc.DisregardNextHopMismatch, []pnc.DisregardReason{pnc.DisregardNextHopMismatch}}},
		"zero header":             {"0001 01 04 00000000" + pnc7, 0xc0, ibgp, nil, want{"192.0.2.7", pnc.DisregardNextHopMismatch, []pnc.DisregardReason{pnc.DisregardNextHopMismatch}}},
		"of another family":       {"0002 01 04 c6336401" + pnc7, 0xc0, ibgp, nil, want{"192.0.2.7", pnc.DisregardNextHopMismatch, []pnc.DisregardReason{pnc.DisregardNextHopMismatch}}},
		"malformed attribute":     {"0001 01 05 c633640100" + pnc7, 0xc0, ibgp, nil, want{"", pnc.DisregardMalformedAttribute, []pnc.DisregardReason{pnc.DisregardMalformedAttribute}}},
		"wrong flags":             {head4 + pnc7, 0x40, ibgp, nil, want{"", pnc.DisregardMalformedAttribute, []pnc.DisregardReason{pnc.DisregardMalformedAttribute}}},
		"malformed TLV, PNC used": {head4 + pnc7 + "0100 0009 00", 0xc0, ibgp, nil, want{"192.0.2.7", 0, []pnc.DisregardReason{pnc.DisregardMalformedTLV}}},
		"PNC cut short":           {head4 + "ff78 0004 c000", 0xc0, ibgp, nil, want{"", pnc.DisregardMalformedTLV, []pnc.DisregardReason{pnc.DisregardMalformedTLV}}},
		"unknown length":          {head4 + "ff78 0005 c000020700", 0xc0, ibgp, nil, want{"", pnc.DisregardUnknownLength, []pnc.DisregardReason{pnc.DisregardUnknownLength}}},
		"unknown length, then ok": {head4 + "ff78 0000" + pnc7, 0xc0, ibgp, nil, want{"192.0.2.7", 0, []pnc.DisregardReason{pnc.DisregardUnknownLength}}},
		"two different":           {head4 + pnc8 + pnc7, 0xc0, ibgp, nil, want{"192.0.2.8", 0, []pnc.DisregardReason{pnc.DisregardDuplicatePNC}}},
		"EBGP":                    {head4 + pnc7, 0xc0, ebgp, nil, want{"192.0.2.7", pnc.DisregardEBGPNotAllowed, []pnc.DisregardReason{pnc.DisregardEBGPNotAllowed}}},
		"multicast proxy":         {head4 + "ff78 0004 e0000001", 0xc0, ibgp, nil, want{"224.0.0.1", pnc.DisregardInvalidProxyAddress, []pnc.DisregardReason{pnc.DisregardInvalidProxyAddress}}},
		"accepted proxy": {head4 + pnc7, 0xc0, ibgp, func(l *learning, _ *nhcPath) { l.accept = []netip.Prefix{prefix("192.0.2.0/29")} },
			want{"192.0.2.7", 0, nil}},
		"proxy not accepted": {head4 + pnc8, 0xc0, ibgp, func(l *learning, _ *nhcPath) { l.accept = []netip.Prefix{prefix("192.0.2.0/29")} },
			want{"192.0.2.8", pnc.DisregardProxyNotAccepted, []pnc.DisregardReason{pnc.DisregardProxyNotAccepted}}},
		"another code configured": {head4 + pnc7, 0xc0, ibgp, func(l *learning, _ *nhcPath) { l.code = 65000 }, want{"", 0, nil}},
		"IPv6 next hop with IPv4 prefix": {"0001 01 10 20010db8000000000000000000000001" + pnc7, 0xc0, ibgp,
			func(_ *learning, p *nhcPath) { p.nextHop = addr("2001:db8::1") }, want{"192.0.2.7", 0, nil}},
		"link-local next hop without BGP ID": {"0002 01 10 fe800000000000000000000000000001" + pnc7, 0xc0, ibgp,
			func(_ *learning, p *nhcPath) { p.v6, p.nextHop = true, addr("fe80::1") },
			want{"192.0.2.7", pnc.DisregardNextHopMismatch, []pnc.DisregardReason{pnc.DisregardNextHopMismatch}}},
		"link-local next hop with BGP ID": {"0002 01 10 fe800000000000000000000000000001 0003 0004 c0000209" + pnc7, 0xc0, ibgp,
			func(_ *learning, p *nhcPath) { p.v6, p.nextHop = true, addr("fe80::1") }, want{"192.0.2.7", 0, nil}},
	} {
		l := testLearning()
		p := nhcPath{nextHop: addr("198.51.100.1"), peerID: addr("192.0.2.9"), hasNHC: true, nhcFlags: tt.flags, nhc: unhex(t, tt.nhc)}
		if tt.edit != nil {
			tt.edit(&l, &p)
		}
		v := l.judge(&p, &tt.peer)
		proxy := ""
		if v.proxy.IsValid() {
			proxy = v.proxy.String()
		}
		var counted []pnc.DisregardReason
		for _, pr := range v.problems {
			counted = append(counted, pr.reason)
			if pr.detail == "" {
				t.Errorf("%s: %s without detail", name, pr.reason)
			}
		}
		if proxy != tt.want.proxy || v.reason != tt.want.reason || !slices.Equal(counted, tt.want.counted) {
			t.Errorf("%s: proxy %q reason %s counted %v, want %+v", name, proxy, v.reason, counted, tt.want)
		}
		if v.partial != (tt.flags&0x20 != 0) {
			t.Errorf("%s: partial %v", name, v.partial)
		}
		if v.believed() != (tt.want.proxy != "" && tt.want.reason == 0) {
			t.Errorf("%s: believed %v", name, v.believed())
		}
	}
}

func TestAnAttributeWithoutPNCIsCountedAndNotReported(t *testing.T) {
	p := nhcPath{nextHop: addr("198.51.100.2"), hasNHC: true, nhcFlags: 0xc0, nhc: unhex(t, head4+unknown)}
	v := testLearning().judge(&p, &peerInfo{accept: true})
	if len(v.problems) != 1 || !v.problems[0].silent {
		t.Errorf("problems %+v", v.problems)
	}
}

func TestAPathThatWasHereBeforeIsIgnored(t *testing.T) {
	l := testLearning()
	peer := peerInfo{accept: true}
	for name, tt := range map[string]struct {
		p     engine.Path
		ownAS int
		want  bool
	}{
		"fresh":                   {engine.Path{}, 0, false},
		"our AS":                  {engine.Path{OwnAS: 1}, 0, true},
		"our AS as often allowed": {engine.Path{OwnAS: 2}, 2, false},
		"our AS too often":        {engine.Path{OwnAS: 3}, 2, true},
		"originated by us":        {engine.Path{OriginatorID: addr("192.0.2.99")}, 0, true},
		"passed our cluster":      {engine.Path{ClusterList: []netip.Addr{addr("192.0.2.1"), addr("192.0.2.99")}}, 0, true},
		"passed others":           {engine.Path{ClusterList: []netip.Addr{addr("192.0.2.1")}, OriginatorID: addr("192.0.2.2")}, 0, false},
	} {
		peer.ownAS = tt.ownAS
		if got := l.looped(&tt.p, &peer); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzJudge feeds any attribute to the receiver's rules: nothing may panic, and nothing may be
// believed whose header isn't the route's next hop.
func FuzzJudge(f *testing.F) {
	f.Add(uint8(0xc0), unhex(f, head4+pnc7))
	f.Add(uint8(0xe0), unhex(f, head4+pnc8+pnc7+"0100 0009 00"))
	f.Add(uint8(0xc0), unhex(f, "0002 01 10 fe800000000000000000000000000001 0003 0004 c0000209"+pnc7))
	f.Fuzz(func(t *testing.T, flags uint8, value []byte) {
		for _, nh := range []string{"198.51.100.1", "2001:db8::1", "fe80::1"} {
			p := nhcPath{v6: addr(nh).Is6(), nextHop: addr(nh), peerID: addr("192.0.2.9"), hasNHC: true, nhcFlags: flags, nhc: value}
			v := testLearning().judge(&p, &peerInfo{accept: true})
			if !v.believed() {
				continue
			}
			n := len(p.nextHop.AsSlice())
			if len(value) < 4+n || int(value[3]) != n && value[3] != 16 {
				t.Fatalf("believed with a short header: %x", value)
			}
			if err := pnc.CheckProxy(v.proxy); err != nil {
				t.Fatal(err)
			}
		}
	})
}
