package integration

import (
	"net/netip"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
)

// Routers with the same link-local address on two links of one speaker, with a key: FRR waits for the speaker to
// connect, BIRD connects. (FRR 8.4 doesn't: it knows no scope of such a neighbour before there is a session.)
func TestBGPLinkLocalNeighboursWithFRRAndBIRD(t *testing.T) {
	needFRR(t, "bgpd")
	needPrograms(t, "bird", "birdc")
	const nFRR, nLeaf, nBIRD = 1, 2, 3
	const announced, ofBIRD = "2001:db8:1::/48", "2001:db8:a3::/48"
	frr := `frr defaults traditional
hostname waits
router bgp 65000
 bgp router-id 10.200.0.1
 no bgp default ipv4-unicast
 no bgp network import-check
 neighbor fe80::2 remote-as 65000
 neighbor fe80::2 interface eth1
 neighbor fe80::2 password secret
 neighbor fe80::2 passive
` + frrNHC(t, "fe80::2") + ` address-family ipv6 unicast
  neighbor fe80::2 activate
  network 2001:db8:a1::/48
 exit-address-family
`
	const bird = `router id 10.200.0.3;
protocol device {}
protocol static { ipv6; route ` + ofBIRD + ` blackhole; }
protocol bgp leaf {
  local fe80::1 as 65000; neighbor fe80::2%eth2 as 65000; direct; password "secret";
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv6 { import all; export where source = RTS_STATIC; };
}
`
	l := upBGP(t, "bgp-ll", true, []bgpNode{
		{name: "waits", n: nFRR, image: "frr", files: map[string]string{"/etc/frr/frr.conf": frr}, extra: []string{"ip addr add fe80::1/64 dev eth1 nodad"}},
		{name: "leaf", n: nLeaf, extra: []string{"ip addr add fe80::2/64 dev eth1 nodad", "ip addr add fe80::2/64 dev eth2 nodad"}},
		{name: "connects", n: nBIRD, image: "bird", files: map[string]string{"/etc/bird/bird.conf": bird}, extra: []string{"ip addr add fe80::1/64 dev eth2 nodad"}},
	}, `"leaf:eth2", "connects:eth2"`)
	waits, connects := netip.MustParseAddr("fe80::1%eth1"), netip.MustParseAddr("fe80::1%eth2")
	local := netip.MustParseAddr("fe80::2")
	cfg := l.config(nLeaf,
		bgp.NeighborConfig{Address: waits, LocalAddress: local, Password: "secret"},
		bgp.NeighborConfig{Address: connects, LocalAddress: local, Password: "secret", Passive: true})
	cfg.Originate = []bgp.OriginateConfig{{Prefix: netip.MustParsePrefix(announced), Proxy: netip.MustParseAddr("10.200.0.2"), NextHop: l.at(nLeaf)}}
	leaf := l.speaker("leaf", cfg)
	on := true
	leaf.Must(speakertest.Request{Enable: &on})
	leaf.AwaitUp(waits.String())
	leaf.AwaitUp(connects.String())
	for node, show := range map[string][]string{
		"waits":    {"vtysh", "-c", "show bgp ipv6 unicast " + announced},
		"connects": {"birdc", "-s", "/run/bird.ctl", "show", "route", "all", announced},
	} {
		l.eventually("the announcement at "+node, func() string {
			out := l.run(node, show...)
			if !strings.Contains(out, l.at(nLeaf).String()) {
				return out
			}
			return ""
		})
	}
	got := leaf.Await("a route of each router", func(a speakertest.Answer) bool {
		return a.Neighbor(waits.String()).Received == 1 && a.Neighbor(connects.String()).Received == 1 && len(a.Of(ofBIRD)) == 1
	})
	for _, a := range []netip.Addr{waits, connects} {
		n := got.Neighbor(a.String())
		if n.LocalAddress != local.WithZone(a.Zone()) || n.Flaps != 1 {
			t.Errorf("%s: from %s, came up %d times", a, n.LocalAddress, n.Flaps)
		}
	}
	// What goes down on one link is nothing to the other.
	l.run("connects", "birdc", "-s", "/run/bird.ctl", "disable", "leaf")
	got = leaf.Await("the end of one session", func(a speakertest.Answer) bool { return !a.Up(connects.String()) })
	if n := got.Neighbor(waits.String()); !got.Up(waits.String()) || n.Flaps != 1 {
		t.Errorf("the other session: %+v", n)
	}
}
