package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
)

// A LAN with two FRR routers and the leaf pa; pb is behind r2, and in the lab of both levels r3, of another
// area, too.
func TestISISLANOfThreeSystems(t *testing.T) {
	for _, level := range []string{"level-1", "level-2", "level-1-2"} {
		t.Run(level, func(t *testing.T) {
			l := newISISLab(t)
			both := level == "level-1-2"
			levels := map[string][]uint32{"level-1": {1}, "level-2": {2}, "level-1-2": {1, 2}}[level]
			lan, point := isisOptions{lan: true, level: level}, isisOptions{level: level}
			second := lan.frr(2, "eth1") + point.frrInterface("eth2")
			if both {
				second += isisOptions{level: "level-2"}.frrInterface("eth3")
			}
			nodes := []igpNode{
				{name: "sw", image: "bridge"},
				{name: "r1", image: "frr", conf: lan.frr(1, "eth1") + "interface eth1\n isis priority 100\n", exec: []string{"ip addr add 10.255.0.1/32 dev lo", "ip addr add 10.9.0.1/24 dev eth1"}},
				{name: "r2", image: "frr", conf: second, exec: []string{"ip addr add 10.255.0.2/32 dev lo", "ip addr add 10.9.0.2/24 dev eth1", "ip addr add 10.9.3.2/24 dev eth2"}},
				{name: "pa", image: "pncd", conf: lan.pncd("0010", igpProxyConf("10.1.0.0/24")), exec: []string{"ip addr add 10.9.0.10/24 dev eth1", "ip addr add " + igpProxy + "/32 dev lo"}},
				{name: "pb", image: "pncd", conf: point.pncd("0011", "node: pb\n"), exec: []string{"ip addr add 10.9.3.11/24 dev eth1", "ip route add " + igpProxy + "/32 via 10.9.3.2"}},
			}
			links := [][2]string{{"r1:eth1", "sw:p1"}, {"r2:eth1", "sw:p2"}, {"pa:eth1", "sw:p3"}, {"r2:eth2", "pb:eth1"}}
			if both {
				other := strings.ReplaceAll(isisOptions{level: "level-2"}.frr(3, "eth1"), "net 49.0001.", "net 49.0002.")
				nodes[2].exec = append(nodes[2].exec, "ip addr add 10.9.4.2/24 dev eth3")
				nodes = append(nodes, igpNode{name: "r3", image: "frr", conf: other, exec: []string{"ip addr add 10.255.0.3/32 dev lo", "ip addr add 10.9.4.3/24 dev eth1"}})
				links = append(links, [2]string{"r2:eth3", "r3:eth1"})
			}
			l.build(nodes, links...)
			l.resolves("10.1.0.2", igpProxy)
			l.eventually("a router is designated at every level", func() string { return l.notDesignated("pa", levels...) })
			if both {
				l.levelsAreApart()
			}

			l.kill("r1", "isisd") // the designated one
			l.eventually("r2 is designated", func() string {
				for _, n := range levels {
					if d := l.isis("pa").GetCircuits()[0].GetDesignated()[n]; !strings.HasPrefix(d, "0000.0000.0002.") {
						return fmt.Sprintf("level %d: %q", n, d)
					}
				}
				return l.notDesignated("pa", levels...)
			})
			l.resolves("10.1.0.2", igpProxy)
		})
	}
}

// levelsAreApart holds that a router of both levels sets the attached bit for level 1, and that no router takes a
// marked prefix from one level to the other: the P flag is of its level. (FRR 8.4 leaks nothing at all.)
func (l *isisLab) levelsAreApart() {
	l.t.Helper()
	l.eventually("r2 is attached at level 1", func() string {
		if lsps := l.lsps("pa", 1, "r2"); !slices.ContainsFunc(lsps, (*pncv1.IsisLsp).GetAttached) {
			return fmt.Sprint(lsps)
		}
		return ""
	})
	for level := range uint32(2) {
		var said []string
		for _, lsp := range l.lsps("pb", level+1, "") {
			for _, p := range lsp.GetPrefixes() {
				if p.GetPrefix() == "10.1.0.0/24" {
					said = append(said, fmt.Sprintf("%s P=%v", lsp.GetHostname(), p.GetP()))
				}
			}
		}
		if !slices.Equal(said, []string{"pa P=true"}) {
			l.t.Errorf("level %d: 10.1.0.0/24 is announced by %q", level+1, said)
		}
	}
}

// Without any IPv4: neither on links nor in prefixes nor as the proxy's address.
func TestISISIPv6Only(t *testing.T) {
	for name, multi := range map[string]bool{"single topology": false, "multi-topology": true} {
		t.Run(name, func(t *testing.T) {
			l := newISISLab(t)
			keys, router := "", ""
			if multi {
				keys, router = "  multi_topology: true\n", " topology ipv6-unicast\n"
			}
			o := isisOptions{keys: keys, router: router}
			frr := func(n int) string {
				return strings.ReplaceAll(o.frr(n, "eth1", "eth2"), " ip router isis 1\n", "")
			}
			const proxy = "2001:db8:ffff::11"
			conf := "node: pa\nenabled: true\nproxy:\n  ipv6: " + proxy + "\n  taps: [eth1]\n  accept_from: [\"2001:db8::/32\"]\n  senders:\n" +
				"    - {prefix: \"2001:db8:1::/48\", proxy: \"" + proxy + "\"}\n"
			l.build([]igpNode{
				{name: "r1", image: "frr", conf: frr(1), exec: []string{"ip addr add 2001:db8:ffff::1/128 dev lo"}},
				{name: "r2", image: "frr", conf: frr(2), exec: []string{"ip addr add 2001:db8:ffff::2/128 dev lo", "ip addr add 2001:db8:9:3::2/64 dev eth2 nodad"}},
				{name: "pa", image: "pncd", conf: o.pncd("0010", conf), exec: []string{"ip addr add " + proxy + "/128 dev lo"}},
				{name: "pb", image: "pncd", conf: o.pncd("0011", "node: pb\n"), exec: []string{"ip addr add 2001:db8:9:3::11/64 dev eth1 nodad", "ip route add " + proxy + "/128 via 2001:db8:9:3::2"}},
			}, [2]string{"pa:eth1", "r1:eth1"}, [2]string{"r1:eth2", "r2:eth1"}, [2]string{"r2:eth2", "pb:eth1"})
			l.resolves("2001:db8:1::2", proxy)
			l.eventually("the routers route to each other", func() string {
				if text := l.vtysh("r2", "show ipv6 route isis"); !strings.Contains(text, "2001:db8:ffff::1/128") {
					return text
				}
				return ""
			})
			topology := uint32(0)
			if multi {
				topology = 2
			}
			for _, lsp := range l.lsps("pb", 2, "pa") {
				for _, p := range lsp.GetPrefixes() {
					if p.GetTopology() != topology || !p.GetP() || !slices.Equal(p.GetSourceRouterIds(), []string{proxy}) {
						t.Errorf("the announcement is %v", p)
					}
				}
			}
		})
	}
}
