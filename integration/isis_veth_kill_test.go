package integration

import (
	"fmt"
	"strings"
	"testing"
)

// After kill -9 the veth pair is taken over as it is: the router's end doesn't flap, and keeps its adjacency and
// the addresses that it has by itself.
func TestISISTakesItsVethPairOverAfterAKill(t *testing.T) {
	l := upISIS(t, isisOptions{})
	l.editLeaf(func(s string) string {
		return s + fmt.Sprintf("    - interface: isis0\n      hello: 1s\n      multiplier: 60\n      veth: {peer: isis-r, namespace: \"%d\", addresses: [10.9.4.10/24]}\n", l.Programs("r2")[0].Pid())
	})
	l.vethUp("the pair is there")
	l.vtysh("r2", "configure terminal", "interface isis-r", "ip address 10.9.4.2/24", "ip router isis 1", "ipv6 router isis 1", "isis network point-to-point", "isis circuit-type level-2-only")
	l.vethAdjacent("r2 has the adjacency over the pair")
	state := func() string {
		return l.run("r2", "cat", "/sys/class/net/isis-r/ifindex", "/sys/class/net/isis-r/carrier_changes") + l.run("r2", "ip", "-4", "-br", "addr", "show", "isis-r")
	}
	before := state()

	pncd := l.killAndStartLeaf()
	l.resolves("10.1.0.2", igpProxy)
	l.eventually("pncd has its neighbour over the pair again", func() string {
		for _, c := range l.isis("pa").GetCircuits() {
			if n := c.GetNeighbors(); c.GetInterface() == "isis0" && len(n) == 1 && n[0].GetState() == "up" {
				return ""
			}
		}
		return "not up"
	})
	l.vethAdjacent("after the kill")
	if after := state(); after != before || !strings.Contains(after, "10.9.4.2/24") {
		t.Errorf("the router's end was\n%sand is\n%s", before, after)
	}
	l.resolves("10.1.0.2", igpProxy)
	if err := pncd.Stop(); err != nil {
		t.Errorf("pncd's end: %v", err)
	}
	if text := l.interfaces("pa"); strings.Contains(text, "isis0") {
		t.Errorf("left after a clean stop:\n%s", text)
	}
}
