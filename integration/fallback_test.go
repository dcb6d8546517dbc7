package integration

import (
	"testing"
	"time"
)

// A proxy known by BGP, IS-IS and OSPF at once: as the sources go, one by one, the next is used, and not one congestion
// event in between finds no proxy; nor when they come back. First an operator takes them away, then they fail.
func TestFallBackOverAllSources(t *testing.T) {
	needFRR(t, "bgpd")
	l := upFallback(t)
	l.congest()
	l.uses("all three are learned", "bgp", "isis", "ospf")
	_, shown := pncctl(t, l, "pb", "resolve", fallbackSender)
	t.Logf("pncctl resolve:\n%s", shown)

	const isis, ospf = "isis:\n", "ospfv2:\n"
	const off = "  advertise: false\n"
	l.resolved("withdrawn by the operator", func() {
		l.change("pa", "mode: originate, next_hop: 10.9.1.1", "mode: none")
		l.uses("withdrawn from BGP", "isis", "ospf")
		l.change("pa", isis, isis+off)
		l.uses("withdrawn from IS-IS", "ospf")
	})
	l.change("pa", ospf, ospf+off)
	l.uses("withdrawn from OSPF")
	l.arrived("withdrawn from all")

	l.change("pa", ospf+off, ospf)
	l.uses("announced by OSPF", "ospf")
	l.resolved("announced again", func() {
		l.change("pa", isis+off, isis)
		l.uses("announced by IS-IS", "isis", "ospf")
		l.change("pa", "mode: none", "mode: originate, next_hop: 10.9.1.1")
		l.uses("announced by BGP", "bgp", "isis", "ospf")
	})

	const node = "node: pb\n"
	const reversed = node + "resolve: {preference: [static, ospf, isis, bgp]}\n"
	l.resolved("another preference", func() {
		l.change("pb", node, reversed)
		l.uses("OSPF before IS-IS before BGP", "ospf", "isis", "bgp")
		l.change("pa", ospf, ospf+off)
		l.uses("withdrawn from OSPF alone", "isis", "bgp")
		l.change("pa", ospf+off, ospf)
		l.uses("announced by OSPF again", "ospf", "isis", "bgp")
		l.change("pb", reversed, node)
		l.uses("the default order", "bgp", "isis", "ospf")
	})

	l.resolved("failing", func() {
		l.cutBGP(true)
		l.uses("the session is dead", "isis", "ospf")
		l.configure("no ip router isis 1", "no ipv6 router isis 1")
		l.uses("the router has no circuit to the proxy", "ospf")
	})
	l.configure("no ip ospf area 0.0.0.0")
	l.uses("the router has no OSPF link to the proxy")
	l.arrived("all have failed")

	l.configure("ip ospf area 0.0.0.0")
	l.uses("OSPF is back", "ospf")
	l.resolved("repaired", func() {
		l.configure(isisOptions{circuit: fallbackLink}.frrLines()...)
		l.uses("IS-IS is back", "isis", "ospf")
		l.cutBGP(false)
		l.uses("the session is back", "bgp", "isis", "ospf")
	})

	t.Run("a stop of the proxy", func(t *testing.T) {
		l.t = t
		begin := time.Now()
		if err := l.Programs("pa")[0].Stop(); err != nil {
			t.Errorf("pncd's end: %v", err)
		}
		l.uses("withdrawn from all")
		took := time.Since(begin)
		t.Logf("figure: a stop of the proxy, and pb knows no route any more: %s", took.Round(time.Millisecond))
		if took > fallbackHold {
			t.Errorf("that took %s: as long as when nothing is withdrawn", took)
		}
	})
}
