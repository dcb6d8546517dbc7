package integration

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// A proxy, a route reflector (FRR) and a congestion node; policies at both ends.
func TestBGPPolicyAndShutdownWithFRR(t *testing.T) {
	needFRR(t, "bgpd")
	for _, v6 := range []bool{false, true} {
		t.Run(familyOf(v6).af, func(t *testing.T) { testPolicy(t, familyOf(v6)) })
	}
}

func testPolicy(t *testing.T, f labFamily) {
	frr := strings.Replace(preferFRR(t, f, "reflector", nReflector, []int{nProxy, nCongestion}, ""), " no bgp default", " bgp log-neighbor-changes\n no bgp default", 1)
	l := upBGP(t, "bgp-policy-"+f.af, f.v6, []bgpNode{
		{name: "reflector", n: nReflector, image: "frr", files: map[string]string{"/etc/frr/frr.conf": frr}},
		{name: "proxy", n: nProxy},
		{name: "congestion", n: nCongestion},
	})
	w := waysOf(f.v6)
	sent, other, held := w.originate, w.inline, w.both
	reflector := l.at(nReflector)
	community := func(s string) bgp.Community {
		c, err := bgp.ParseCommunity(s)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	list := func(prefixes ...string) (out bgp.PrefixList) {
		for _, p := range prefixes {
			out = append(out, bgp.PrefixRule{Prefix: netip.MustParsePrefix(p)})
		}
		return out
	}
	cfg := l.config(nProxy, bgp.NeighborConfig{Address: reflector, Passive: true, ExportPrefixes: list(sent, other)})
	cfg.Communities = []bgp.Community{community("65000:100"), community("65000:1:100")}
	for _, p := range []string{sent, other, held} {
		cfg.Originate = append(cfg.Originate, bgp.OriginateConfig{
			Prefix: netip.MustParsePrefix(p), Proxy: netip.MustParseAddr(proxyAddr), NextHop: l.at(nProxy)})
	}
	proxy := l.speaker("proxy", cfg)
	policy := func(edit func(*bgp.NeighborConfig)) *bgp.Config {
		n := bgp.NeighborConfig{Address: reflector, Passive: true, RequireCommunities: []bgp.Community{community("65000:100")}}
		edit(&n)
		c := l.config(nCongestion, n)
		return &c
	}
	congestion := l.speaker("congestion", *policy(func(*bgp.NeighborConfig) {}))
	configure := func(edit func(*bgp.NeighborConfig)) { congestion.Must(speakertest.Request{Configure: policy(edit)}) }
	on := true
	proxy.Must(speakertest.Request{Enable: &on})
	congestion.Await("PNC with the community", speakertest.Believes(sent, proxyAddr))
	got := congestion.Await("PNC with the community", speakertest.Believes(other, proxyAddr))
	if len(got.Of(held)) != 0 {
		t.Errorf("an announcement went out that the neighbour's list doesn't permit:\n%s", got)
	}
	if n := proxy.Ask(speakertest.Request{}).Neighbor(reflector.String()); n.Advertised != 2 {
		t.Errorf("%d announcements counted, want 2", n.Advertised)
	}
	if out := l.vtysh("reflector", "show bgp "+f.af+" unicast "+sent); !strings.Contains(out, "65000:100") || !strings.Contains(out, "65000:1:100") {
		t.Errorf("no communities at the reflector:\n%s", out)
	}

	configure(func(n *bgp.NeighborConfig) { n.RequireCommunities = []bgp.Community{community("65000:1:101")} })
	congestion.Await("another community is asked for", func(a speakertest.Answer) bool {
		rs := a.Of(sent)
		return len(rs) == 1 && rs[0].Disregarded == pnc.DisregardCommunityMissing && hasEvent(a, sent, pnc.DisregardCommunityMissing)
	})
	// The originator is the proxy, by its ORIGINATOR_ID; the reflector is not.
	from := func(n int) []netip.Prefix { return []netip.Prefix{netip.PrefixFrom(labAddr(false, n), 32)} }
	configure(func(n *bgp.NeighborConfig) { n.AcceptFrom = from(nReflector) })
	congestion.Await("another originator is asked for", func(a speakertest.Answer) bool {
		rs := a.Of(sent)
		return len(rs) == 1 && rs[0].Disregarded == pnc.DisregardOriginatorNotAccepted && hasEvent(a, sent, pnc.DisregardOriginatorNotAccepted)
	})
	configure(func(n *bgp.NeighborConfig) { n.AcceptFrom = from(nProxy) })
	congestion.Await("PNC of its originator", speakertest.Believes(sent, proxyAddr))
	configure(func(n *bgp.NeighborConfig) { n.ImportPrefixes = list(other) })
	congestion.Await("a route that the list doesn't take is gone", func(a speakertest.Answer) bool {
		return len(a.Of(sent)) == 0 && a.Believed(other) != nil && a.Neighbor(reflector.String()).Refused > 0
	})
	configure(func(n *bgp.NeighborConfig) {})
	got = congestion.Await("and is back", speakertest.Believes(sent, proxyAddr))
	if n := got.Neighbor(reflector.String()); n.Flaps != 1 {
		t.Errorf("policies changed, and the session was established %d times", n.Flaps)
	}

	configure(func(n *bgp.NeighborConfig) { n.MaxPrefixes = 1 })
	congestion.Await("too many prefixes end the session, and it says so", func(a speakertest.Answer) bool {
		n := a.Neighbor(reflector.String())
		return len(a.Routes) == 0 && strings.Contains(n.LastError, "max_prefixes") && n.HoldTime == 0
	})
	l.eventually("the reflector knows why", func() string {
		out := l.vtysh("reflector", "show bgp neighbors "+l.at(nCongestion).String())
		if strings.Contains(out, "Cease/Maximum Number of Prefixes Reached") {
			return ""
		}
		return out
	})
	configure(func(n *bgp.NeighborConfig) { n.MaxPrefixes = 2 })
	congestion.Await("a higher limit brings it back", speakertest.Believes(sent, proxyAddr))

	configure(func(n *bgp.NeighborConfig) { n.Shutdown = "moved to rack 7" })
	congestion.Await("shut down", func(a speakertest.Answer) bool {
		n := a.Neighbor(reflector.String())
		return len(a.Routes) == 0 && n.HoldTime == 0 && n.Shutdown == "moved to rack 7"
	})
	// FRR shows the message until the next connection attempt, and logs it.
	l.eventually("the reflector knows why", func() string {
		files, err := filepath.Glob(filepath.Join(l.Dir(), "reflector", "*.log"))
		for _, f := range files {
			text, rerr := os.ReadFile(f)
			if strings.Contains(string(text), "Administrative Shutdown") && strings.Contains(string(text), "moved to rack 7") {
				return ""
			}
			err = errors.Join(err, rerr)
		}
		return fmt.Sprintf("not in %v: %v", files, err)
	})
	configure(func(n *bgp.NeighborConfig) {})
	congestion.Await("up again", speakertest.Believes(sent, proxyAddr))
}
