package integration

import (
	"fmt"
	"strings"
	"testing"

	"net/netip"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// The border of the domain: a router of another AS between two pncd. One announces its PNC to it, because it is
// told to, and it passes the attribute on, as every router that doesn't know it does; the other is at the border.
// On the way in nothing is believed, with a reason; on the way out nothing is announced.
func TestBGPAtTheBorderOfTheDomainNHCIsNeitherBelievedNorSent(t *testing.T) {
	needFRR(t, "bgpd")
	for _, v6 := range []bool{false, true} {
		t.Run(familyOf(v6).af, func(t *testing.T) { testBorder(t, familyOf(v6)) })
	}
}

func testBorder(t *testing.T, f labFamily) {
	const other = 65001
	in, out := nProxy, nCongestion
	frr := fmt.Sprintf(`frr defaults traditional
hostname other
router bgp %d
 bgp router-id 10.200.0.1
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 neighbor %[2]s remote-as 65002
 neighbor %[2]s timers connect 1
 neighbor %[3]s remote-as 65000
 neighbor %[3]s timers connect 1
%[4]s%[5]s address-family %[6]s unicast
  neighbor %[2]s activate
  neighbor %[2]s attribute-unchanged next-hop
  neighbor %[3]s activate
  neighbor %[3]s attribute-unchanged next-hop
 exit-address-family
`, other, labAddr(f.v6, in), labAddr(f.v6, out), frrNHC(t, labAddr(f.v6, in).String()), frrNHC(t, labAddr(f.v6, out).String()), f.af)
	l := upBGP(t, "bgp-border-"+f.af, f.v6, []bgpNode{
		{name: "other", n: nRouter, image: "frr", files: map[string]string{"/etc/frr/frr.conf": frr}},
		{name: "foreign", n: in},
		{name: "border", n: out},
	})
	w := waysOf(f.v6)
	originate := func(p string) bgp.OriginateConfig {
		return bgp.OriginateConfig{Prefix: netip.MustParsePrefix(p), Proxy: netip.MustParseAddr(proxyAddr), NextHop: l.at(in)}
	}
	send := true
	foreign := l.config(in, bgp.NeighborConfig{Address: l.at(nRouter), PeerAS: other, Passive: true, SendNHC: &send, AcceptEBGP: true})
	foreign.AS, foreign.Originate = 65002, []bgp.OriginateConfig{originate(w.originate)}
	f1 := l.speaker("foreign", foreign)
	f1.Must(speakertest.Request{Enable: &send})

	at := func(edit func(*bgp.NeighborConfig)) *bgp.Config {
		n := bgp.NeighborConfig{Address: l.at(nRouter), PeerAS: other, Passive: true}
		edit(&n)
		cfg := l.config(out, n)
		cfg.Originate = []bgp.OriginateConfig{originate(w.path)}
		return &cfg
	}
	border := l.speaker("border", *at(func(n *bgp.NeighborConfig) { n.Border = true }))
	border.Must(speakertest.Request{Enable: &send})
	count := func(a speakertest.Answer) uint64 {
		return a.Neighbor(l.at(nRouter).String()).Disregarded[pnc.DisregardEBGPNotAllowed]
	}
	got := border.Await("the route, whose PNC is not believed", func(a speakertest.Answer) bool {
		rs := a.Of(w.originate)
		return len(rs) == 1 && rs[0].Disregarded == pnc.DisregardEBGPNotAllowed && rs[0].Proxy.String() == proxyAddr && rs[0].Best
	})
	if !hasEvent(got, w.originate, pnc.DisregardEBGPNotAllowed) || count(got) != 1 {
		t.Errorf("no record, or %d counted:\n%s", count(got), got)
	}
	// Out: nothing, neither the own announcement nor what was learned; the session is up and has been for a while.
	if n := got.Neighbor(l.at(nRouter).String()); n.Advertised != 0 || n.SendNHC {
		t.Errorf("%+v", n)
	}
	none := func(what string) {
		t.Helper()
		if text := l.vtysh("other", "show bgp "+f.af+" unicast neighbors "+l.at(out).String()+" routes"); strings.Contains(text, w.path) || strings.Contains(text, w.originate) {
			t.Errorf("%s: the border announced something:\n%s", what, text)
		}
	}
	none("at the border")

	// Without any key its routes count for nothing at all (RFC 8212), and the PNC is still reported.
	border.Must(speakertest.Request{Configure: at(func(*bgp.NeighborConfig) {})})
	border.Await("no route, and a record", func(a speakertest.Answer) bool {
		return len(a.Routes) == 0 && a.Up(l.at(nRouter).String()) && count(a) == 1
	})
	none("by default")

	// Told to, both directions are open: what was held back was held back by policy, and by nothing else.
	border.Must(speakertest.Request{Configure: at(func(n *bgp.NeighborConfig) { n.AcceptEBGP, n.SendNHC = true, &send })})
	border.Await("the PNC of another AS", speakertest.Believes(w.originate, proxyAddr))
	f1.Await("the border's PNC", speakertest.Believes(w.path, proxyAddr))

	// And closed again: what went out is withdrawn, what is there is not believed.
	border.Must(speakertest.Request{Configure: at(func(n *bgp.NeighborConfig) { n.Border = true })})
	border.Await("not believed", func(a speakertest.Answer) bool {
		rs := a.Of(w.originate)
		return len(rs) == 1 && !rs[0].Believed()
	})
	f1.Await("the withdrawal", func(a speakertest.Answer) bool { return len(a.Of(w.path)) == 0 })
	none("closed again")
}
