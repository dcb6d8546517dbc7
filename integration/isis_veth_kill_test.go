package integration

import (
	"fmt"
	"strings"
	"testing"

	"pncd/integration/lab"
)

// After kill -9 the veth pair is taken over as it is: the router's end doesn't flap, and keeps its adjacency and
// the addresses that it has by itself.
func TestISISTakesItsVethPairOverAfterAKill(t *testing.T) {
	l := upISIS(t, isisOptions{})
	l.editLeaf(func(s string) string {
		return s + fmt.Sprintf("    - interface: isis0\n      hello: 1s\n      multiplier: 60\n      veth: {peer: isis-r, namespace: \"%d\", addresses: [10.9.4.10/24]}\n", l.Programs("r2")[0].Pid())
	})
	l.eventually("the pair is there", func() string {
		if text := l.run("r2", "ip", "-o", "link"); !strings.Contains(text, "isis-r@") {
			return text
		}
		return ""
	})
	l.vtysh("r2", "configure terminal", "interface isis-r", "ip address 10.9.4.2/24", "ip router isis 1", "ipv6 router isis 1", "isis network point-to-point", "isis circuit-type level-2-only")
	adjacent := func(step string) {
		t.Helper()
		l.eventually(step, func() string {
			text := l.vtysh("r2", "show isis neighbor")
			for line := range strings.Lines(text) {
				if strings.Contains(line, "isis-r") && strings.Contains(line, "Up") {
					return ""
				}
			}
			return text + l.run("pa", "ip", "addr", "show")
		})
	}
	adjacent("r2 has the adjacency over the pair")
	state := func() string {
		return l.run("r2", "cat", "/sys/class/net/isis-r/ifindex", "/sys/class/net/isis-r/carrier_changes") + l.run("r2", "ip", "-4", "-br", "addr", "show", "isis-r")
	}
	before, sequence := state(), l.sequence("pa.00-00")

	again := l.program("pa")
	l.kill("pa", "pncd")
	pncd, err := l.Start(l.ctx, "pa", lab.Proc{Name: "again", Argv: []string{again, "--config", "/etc/pncd/pncd.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	l.eventually("the sequence number is recovered", func() string {
		if after := l.sequence("pa.00-00"); after <= sequence {
			return fmt.Sprintf("%d after %d", after, sequence)
		}
		return ""
	})
	l.resolves("10.1.0.2", isisProxy)
	l.eventually("pncd has its neighbour over the pair again", func() string {
		for _, c := range l.isis("pa").GetCircuits() {
			if n := c.GetNeighbors(); c.GetInterface() == "isis0" && len(n) == 1 && n[0].GetState() == "up" {
				return ""
			}
		}
		return "not up"
	})
	adjacent("after the kill")
	if after := state(); after != before || !strings.Contains(after, "10.9.4.2/24") {
		t.Errorf("the router's end was\n%sand is\n%s", before, after)
	}
	l.resolves("10.1.0.2", isisProxy)
	if err := pncd.Stop(); err != nil {
		t.Errorf("pncd's end: %v", err)
	}
	if text := l.run("pa", "ip", "-o", "link"); strings.Contains(text, "isis0") {
		t.Errorf("left after a clean stop:\n%s", text)
	}
}
