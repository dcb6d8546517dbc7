package integration

import (
	"fmt"
	"strings"
	"testing"
)

// Areas 0.0.0.1, of pa and pc, and 0.0.0.0, of BIRD r2 and pb, meet at FRR r1. A mark stays in its area, unless pc, which has a
// link to r1 in each, is told to help.
func TestOSPFMarksStayInTheirArea(t *testing.T) {
	l := newOSPFLab(t)
	kinds := map[string]string{"0.0.0.1": "stub"}
	in := func(name, area string) ospfLink { return ospfLink{name: name, area: area} }
	pa := ospfLeaf{name: "pa", n: 10, links: []ospfLink{in("eth1", "0.0.0.1")}, kinds: kinds}
	pb := ospfLeaf{name: "pb", n: 11, links: []ospfLink{in("eth1", "")}}
	pc := ospfLeaf{name: "pc", n: 12, links: []ospfLink{in("eth1", "0.0.0.1"), in("eth2", "")}, kinds: kinds}
	r1 := ospfRouter{n: 1, links: []ospfLink{in("eth1", "0.0.0.1"), in("eth2", ""), in("eth3", "0.0.0.1"), in("eth4", "")}, kinds: kinds}
	r2 := ospfRouter{n: 2, links: []ospfLink{in("eth1", ""), in("eth2", "")}}.node("bird", "10.9.2.2/24", "10.9.3.2/24")
	r2.exec = append(r2.exec, "ip addr add 2001:db8:9:3::2/64 dev eth2 nodad")
	c := pc.learner(5, 1)
	c.exec = append(c.exec, "ip addr add 10.9.6.12/24 dev eth2")
	one := r1.node("frr", "10.9.1.1/24", "10.9.2.1/24", "10.9.5.1/24", "10.9.6.1/24")
	one.exec = append(one.exec, "ip addr add 2001:db8:9:5::1/64 dev eth3 nodad")
	l.build([]igpNode{one, r2, pa.proxy(ospfTwoSenders...), pb.learner(3, 2), c},
		[2]string{"pa:eth1", "r1:eth1"}, [2]string{"r1:eth2", "r2:eth1"}, [2]string{"r2:eth2", "pb:eth1"},
		[2]string{"r1:eth3", "pc:eth1"}, [2]string{"r1:eth4", "pc:eth2"})
	for _, s := range [][2]string{{"10.1.0.2", igpProxy}, {"2001:db8:1::2", ospfProxy6}} {
		l.answersAt("pc", s[0], s[1])
	}
	l.eventually("pb has the whole backbone", func() string {
		for _, r := range l.ospf("pb") {
			if a := r.GetAreas(); len(a) != 1 || a[0].GetReachable() < 2 {
				return fmt.Sprint(r)
			}
		}
		return ""
	})
	l.adjacent("r1", 4)
	l.reaches("r2", 1)
	l.resolves("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
	l.resolves("2001:db8:1::2", "RESOLVE_REASON_NO_ROUTE")
	for _, node := range []string{"r2", "pb"} {
		if all := l.lsas(node, pa.id()); len(all) > 0 {
			t.Errorf("%s has LSAs of the other area: %v", node, all)
		}
	}

	pc.v2, pc.v3 = "  reoriginate: true\n", "  reoriginate: true\n"
	l.kill("pc", "pncd")
	l.write("pc.yaml", pc.conf("node: pc\n"))
	l.startAgain("pc")
	l.bothFamilies()
	l.marks(pc.id(), 1, "r2", "pb")
	l.changeSenders()
	l.onlyAnnounces(pc)
	if err := l.Programs("pa")[0].Stop(); err != nil {
		t.Errorf("pncd's end: %v", err)
	}
	l.resolves("10.7.0.2", "RESOLVE_REASON_NO_ROUTE")
	l.resolves("2001:db8:7::2", "RESOLVE_REASON_NO_ROUTE")
	l.marks(pc.id(), 0, "r2", "pb")
}

// adjacent waits until a router has so many neighbours that it is full with, in each version.
func (l *ospfLab) adjacent(router string, want int) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("%s is full with %d neighbours in each version", router, want), func() string {
		for _, v := range [][2]string{{"show ip ospf neighbor", "show ospf neighbors ospf4"}, {"show ipv6 ospf6 neighbor", "show ospf neighbors ospf6"}} {
			text := l.said(router, v[:1], v[1:])
			if n := strings.Count(text, "Full"); n != want {
				return text
			}
		}
		return ""
	})
}
