package integration

import (
	"fmt"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// What ExaBGP sends, and what has to become of it. The next hop is ExaBGP's own address.
func TestBGPReceiverRulesAgainstExaBGP(t *testing.T) {
	needPrograms(t, "exabgp")
	const (
		head4   = "00010104" + "0ac80005"
		head6   = "00020110" + "20010db8020000000000000000000005"
		one     = "ff780004c0000207"
		two     = "ff780004c0000208"
		long    = "ff78001020010db8000000000000000000000007"
		unknown = "01000004abcdef01"
		higher  = "fff00002abcd"
	)
	cases := []struct {
		name, prefix string
		flags        uint8
		value        string
		proxy        string // believed when reason is none
		reason       pnc.DisregardReason
		reported     pnc.DisregardReason
		partial      bool
	}{
		{"sound", "10.77.0.0/24", 0xc0, head4 + one, "192.0.2.7", 0, 0, false},
		{"Partial", "10.77.1.0/24", 0xe0, head4 + one, "192.0.2.7", 0, 0, true},
		{"IPv6 proxy", "10.77.2.0/24", 0xc0, head4 + long, "2001:db8::7", 0, 0, false},
		{"unknown TLVs", "10.77.3.0/24", 0xc0, head4 + unknown + one + higher, "192.0.2.7", 0, 0, false},
		{"unordered", "10.77.4.0/24", 0xc0, head4 + higher + one + unknown, "192.0.2.7", 0, 0, false},
		{"identical twice", "10.77.5.0/24", 0xc0, head4 + one + one, "192.0.2.7", 0, 0, false},
		{"two different: the first wins", "10.77.6.0/24", 0xc0, head4 + two + one, "192.0.2.8", 0, pnc.DisregardDuplicatePNC, false},
		{"a TLV past the end: the others are used", "10.77.7.0/24", 0xc0, head4 + one + "0100000900", "192.0.2.7", 0, pnc.DisregardMalformedTLV, false},
		{"PNC cut short", "10.77.8.0/24", 0xc0, head4 + "ff780004c000", "", pnc.DisregardMalformedTLV, pnc.DisregardMalformedTLV, false},
		{"PNC of five octets", "10.77.9.0/24", 0xc0, head4 + "ff780005c000020700", "", pnc.DisregardUnknownLength, pnc.DisregardUnknownLength, false},
		{"next hop of five octets: the route stays", "10.77.10.0/24", 0xc0, "00010105" + "0ac8000500" + one, "", pnc.DisregardMalformedAttribute, pnc.DisregardMalformedAttribute, false},
		{"header cut: the route stays", "10.77.11.0/24", 0xc0, "000101", "", pnc.DisregardMalformedAttribute, pnc.DisregardMalformedAttribute, false},
		{"not transitive: the route stays", "10.77.12.0/24", 0x80, head4 + one, "", pnc.DisregardMalformedAttribute, pnc.DisregardMalformedAttribute, false},
		{"another next hop", "10.77.13.0/24", 0xc0, "00010104" + "0ac80006" + one, "192.0.2.7", pnc.DisregardNextHopMismatch, pnc.DisregardNextHopMismatch, false},
		{"header of zeros", "10.77.14.0/24", 0xc0, "00010104" + "00000000" + one, "192.0.2.7", pnc.DisregardNextHopMismatch, pnc.DisregardNextHopMismatch, false},
		{"multicast proxy", "10.77.15.0/24", 0xc0, head4 + "ff780004e0000001", "224.0.0.1", pnc.DisregardInvalidProxyAddress, pnc.DisregardInvalidProxyAddress, false},
		{"no TLV", "10.77.16.0/24", 0xc0, head4, "", 0, 0, false},
		{"no NHC", "10.77.17.0/24", 0, "", "", 0, 0, false},
		{"IPv6", "2001:db8:77::/48", 0xc0, head6 + one, "192.0.2.7", 0, 0, false},
		{"IPv6, another next hop", "2001:db8:78::/48", 0xc0, "00020110" + "20010db8020000000000000000000006" + one, "192.0.2.7", pnc.DisregardNextHopMismatch, pnc.DisregardNextHopMismatch, false},
		{"header of IPv4 on an IPv6 route", "2001:db8:79::/48", 0xc0, head4 + one, "192.0.2.7", pnc.DisregardNextHopMismatch, pnc.DisregardNextHopMismatch, false},
	}
	var routes strings.Builder
	for _, c := range cases {
		hop := "10.200.0.5"
		if strings.Contains(c.prefix, ":") {
			hop = "2001:db8:200::5"
		}
		attr := ""
		if c.value != "" {
			attr = fmt.Sprintf(" attribute [ 0x27 0x%02x 0x%s ]", c.flags, c.value)
		}
		fmt.Fprintf(&routes, "    route %s next-hop %s%s;\n", c.prefix, hop, attr)
	}
	l := upBGP(t, "bgp-exabgp", false, []bgpNode{
		{name: "congestion", n: nCongestion},
		{name: "exabgp", n: 5, image: "debian", files: map[string]string{"/etc/exabgp/exabgp.conf": fmt.Sprintf(`neighbor 10.200.0.4 {
  router-id 10.200.0.5;
  local-address 10.200.0.5;
  local-as 65000;
  peer-as 65000;
  family { ipv4 unicast; ipv6 unicast; }
  static {
%s  }
}
`, routes.String())}},
	})
	cfg := l.config(nCongestion, bgp.NeighborConfig{Address: l.at(5), Passive: true})
	cfg.Neighbors[0].Families = []bgp.Family{bgp.IPv4Unicast, bgp.IPv6Unicast}
	learner := l.speaker("congestion", cfg)
	l.start("exabgp", "env", "exabgp.daemon.user=root", "exabgp.api.cli=false", "exabgp", "/etc/exabgp/exabgp.conf")
	got := learner.Await("every route", func(a speakertest.Answer) bool { return len(a.Routes) == len(cases) })

	counts := map[pnc.DisregardReason]uint64{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rs := got.Of(c.prefix)
			if len(rs) != 1 {
				t.Fatalf("the route must be there, once: %+v", rs)
			}
			r := rs[0]
			proxy := ""
			if r.Proxy.IsValid() {
				proxy = r.Proxy.String()
			}
			if proxy != c.proxy || r.Disregarded != c.reason || r.Partial != c.partial || !r.Best {
				t.Errorf("proxy %q disregarded %s partial %v best %v", proxy, r.Disregarded, r.Partial, r.Best)
			}
			if r.Believed() != (c.proxy != "" && c.reason == pnc.DisregardNone) {
				t.Errorf("believed: %v", r.Believed())
			}
			if c.reported != pnc.DisregardNone {
				counts[c.reported]++
				if !hasEvent(got, c.prefix, c.reported) {
					t.Errorf("%s isn't reported", c.reported)
				}
			}
		})
	}
	n := got.Neighbor("10.200.0.5")
	for _, reason := range pnc.DisregardReasons() {
		if n.Disregarded[reason] != counts[reason] || got.Counters.Disregarded[reason] != counts[reason] {
			t.Errorf("%s counted %d times at the neighbour and %d in total, want %d", reason, n.Disregarded[reason], got.Counters.Disregarded[reason], counts[reason])
		}
	}
	if n.Flaps != 1 || n.State.String() != "established" || n.NHCReceived != len(cases)-1 {
		t.Errorf("the session must not suffer: %+v", n)
	}
}
