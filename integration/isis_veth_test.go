package integration

import (
	"fmt"
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
)

// vethUp waits until both ends of pa's pair to r2 are there.
func (l *isisLab) vethUp(step string) {
	l.t.Helper()
	l.eventually(step, func() string {
		if a, b := l.interfaces("pa"), l.interfaces("r2"); !strings.Contains(a, "isis0@") || !strings.Contains(b, "isis-r@") {
			return a + b
		}
		return ""
	})
}

func (l *isisLab) interfaces(node string) string {
	l.t.Helper()
	return l.run(node, "ip", "-o", "link")
}

// vethAdjacent waits until r2 has an adjacency over the pair.
func (l *isisLab) vethAdjacent(step string) {
	l.t.Helper()
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

func TestISISMakesItsOwnVethPair(t *testing.T) {
	l := upISIS(t, isisOptions{})
	l.resolves("10.1.0.2", igpProxy)
	router := l.Programs("r2")[0].Pid()
	// pa gets a second circuit, to the router at the other end, by a reload.
	l.editLeaf(func(s string) string {
		return s + fmt.Sprintf("    - interface: isis0\n      hello: 1s\n      veth: {peer: isis-r, namespace: \"%d\", addresses: [10.9.4.10/24], peer_addresses: [10.9.4.2/24]}\n", router)
	})
	l.vethUp("the pair is there")
	l.vtysh("r2", "configure terminal", "interface isis-r", "ip router isis 1", "ipv6 router isis 1", "isis network point-to-point", "isis hello-interval 1", "isis circuit-type level-2-only")
	l.vethAdjacent("r2 has the adjacency over the pair")
	l.noTransit()

	l.run("r2", "ip", "link", "set", "isis-r", "down") // a flap
	l.eventually("the adjacency is gone", func() string {
		if text := l.vtysh("r2", "show isis neighbor"); strings.Contains(text, "isis-r") {
			return text
		}
		return ""
	})
	l.run("r2", "ip", "link", "set", "isis-r", "up")
	l.vethAdjacent("after the flap")

	l.editLeaf(func(s string) string { return strings.Replace(s, "{peer: isis-r", "{mtu: 1400, peer: isis-r", 1) })
	l.eventually("both ends have the new MTU", func() string {
		if a, b := l.run("pa", "ip", "link", "show", "isis0"), l.run("r2", "ip", "link", "show", "isis-r"); !strings.Contains(a, "mtu 1400") || !strings.Contains(b, "mtu 1400") {
			return a + b
		}
		return ""
	})
	l.kill("r1", "isisd") // from here on everything goes over the pair
	l.resolves("10.1.0.2", igpProxy)

	l.run("pa", "ip", "addr", "del", "10.9.4.10/24", "dev", "isis0")
	l.run("r2", "ip", "addr", "del", "10.9.4.2/24", "dev", "isis-r")
	l.eventually("addresses that somebody took are put back", func() string {
		a, b := l.run("pa", "ip", "addr", "show", "isis0"), l.run("r2", "ip", "addr", "show", "isis-r")
		list, err := pncv1.NewRecordServiceClient(l.dial("pa")).ListHostChanges(l.ctx, &pncv1.ListHostChangesRequest{})
		changes := fmt.Sprint(list, err)
		for _, text := range []string{"10.9.4.10/24 of isis0", "10.9.4.2/24 of isis-r"} {
			if !strings.Contains(changes, text) {
				return changes
			}
		}
		if !strings.Contains(a, "10.9.4.10/24") || !strings.Contains(b, "10.9.4.2/24") {
			return a + b
		}
		return ""
	})
	l.vethAdjacent("with its addresses again")

	before := l.run("pa", "cat", "/sys/class/net/isis0/ifindex")
	l.run("r2", "ip", "link", "del", "isis-r")
	l.vethUp("the pair is made again")
	if after := l.run("pa", "cat", "/sys/class/net/isis0/ifindex"); after == before {
		t.Fatalf("the pair never went: index %s", after)
	}
	l.vethAdjacent("after it vanished and came back")
	l.resolves("10.1.0.2", igpProxy)

	if err := l.Programs("pa")[0].Stop(); err != nil {
		t.Errorf("pncd's end: %v", err)
	}
	if a, b := l.interfaces("pa"), l.interfaces("r2"); strings.Contains(a, "isis0") || strings.Contains(b, "isis-r") {
		t.Errorf("left after a clean stop:\n%s%s", a, b)
	}
}
