package integration

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
)

// RFC 8950: what needs an IPv6 next hop goes to a reflector only once it offers the capability, and
// arrives with a header that matches.
func TestBGPIPv6NextHopsOfIPv4PrefixesNeedTheCapability(t *testing.T) {
	needFRR(t, "bgpd")
	const (
		nReflect, nFrom, nTo = 1, 2, 3
		plain, extended      = "203.0.113.0/24", "192.0.2.0/24"
	)
	var b strings.Builder
	b.WriteString("frr defaults traditional\nhostname reflector\nrouter bgp 65000\n bgp router-id 10.200.0.1\n no bgp default ipv4-unicast\n")
	for _, n := range []int{nFrom, nTo} {
		a := labAddr(true, n).String()
		fmt.Fprintf(&b, " neighbor %[1]s remote-as 65000\n neighbor %[1]s timers connect 1\n%[2]s", a, frrNHC(t, a))
		fmt.Fprintf(&b, " address-family ipv4 unicast\n  neighbor %[1]s activate\n  neighbor %[1]s route-reflector-client\n exit-address-family\n", a)
	}
	l := upBGP(t, "bgp-enh", true, []bgpNode{
		{name: "reflector", n: nReflect, image: "frr", files: map[string]string{"/etc/frr/frr.conf": b.String()}},
		{name: "proxy", n: nFrom}, {name: "congestion", n: nTo},
	})
	config := func(n int) bgp.Config {
		cfg := l.config(n, bgp.NeighborConfig{Address: l.at(nReflect)})
		cfg.Neighbors[0].Families = []bgp.Family{bgp.IPv4Unicast}
		return cfg
	}
	cfg := config(nFrom)
	for prefix, nextHop := range map[string]netip.Addr{plain: labAddr(false, nFrom), extended: l.at(nFrom)} {
		cfg.Originate = append(cfg.Originate, bgp.OriginateConfig{
			Prefix: netip.MustParsePrefix(prefix), Proxy: netip.MustParseAddr("10.200.0.2"), NextHop: nextHop})
	}
	proxy, congestion := l.speaker("proxy", cfg), l.speaker("congestion", config(nTo))
	on := true
	proxy.Must(speakertest.Request{Enable: &on})
	proxy.AwaitUp(l.at(nReflect).String())
	advertised := func(a speakertest.Answer) uint64 { return a.Neighbor(l.at(nReflect).String()).Advertised }

	// The later prefix is announced as well, so it would be there by now.
	l.eventually("the plain announcement", func() string {
		out := l.vtysh("reflector", "show bgp ipv4 unicast "+plain)
		if !strings.Contains(out, l.at(nFrom).String()) {
			return out
		}
		return ""
	})
	if out := l.vtysh("reflector", "show bgp ipv4 unicast "+extended); !strings.Contains(out, "not in table") {
		t.Errorf("without the capability FRR has got it:\n%s", out)
	}
	before := proxy.Must(speakertest.Request{})
	if n := advertised(before); n != 1 {
		t.Errorf("%d announcements go to a neighbour without the capability, want 1", n)
	}
	if n := before.Neighbor(l.at(nReflect).String()).Flaps; n != 1 {
		t.Errorf("the session came up %d times: %s", n, before)
	}

	lines := []string{"configure terminal", "router bgp 65000"}
	for _, n := range []int{nFrom, nTo} {
		lines = append(lines, "neighbor "+l.at(n).String()+" capability extended-nexthop")
	}
	l.vtysh("reflector", append(lines, "end", "clear bgp *")...)
	got := congestion.Await("the PNC with an IPv6 next hop", func(a speakertest.Answer) bool {
		r := a.Believed(extended)
		return r != nil && r.NextHop == l.at(nFrom) && len(a.Of(plain)) == 1
	})
	// On a session with the capability FRR puts its own address in the place of an IPv4 next hop, so the
	// plain one is a mismatch now. What it leaves alone must not be.
	for _, e := range got.Disregarded {
		if e.Route.Prefix.String() == extended {
			t.Errorf("disregarded: %s", got)
		}
	}
	if n := advertised(proxy.Must(speakertest.Request{})); n != 2 {
		t.Errorf("%d announcements go to a neighbour with the capability, want 2", n)
	}
	off := false
	proxy.Must(speakertest.Request{Enable: &off})
	congestion.Await("withdrawal", func(a speakertest.Answer) bool { return len(a.Routes) == 0 })

	// And without the capability again.
	proxy.Must(speakertest.Request{Enable: &on})
	for i, line := range lines[2:] {
		lines[2+i] = "no " + line
	}
	l.vtysh("reflector", append(lines, "end", "clear bgp *")...)
	proxy.Await("a session that holds it back", func(a speakertest.Answer) bool {
		return a.Up(l.at(nReflect).String()) && advertised(a) == 1
	})
	congestion.Await("the plain announcement alone", func(a speakertest.Answer) bool {
		return a.Believed(plain) != nil && len(a.Of(extended)) == 0
	})
}
