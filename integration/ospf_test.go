package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/integration/lab"
)

// What the links to the routers take in the lab with keys: FRR has no HMAC-SHA for OSPFv2, and computes the trailer
// of OSPFv3 unlike the RFC.
var (
	ospfFRRKeys = [2]ospfAuth{
		{
			pncd: "{id: 1, algorithm: md5, password: secret}",
			frr:  " ip ospf authentication message-digest\n ip ospf message-digest-key 1 md5 secret\n",
		},
		{
			pncd: "{id: 1, algorithm: hmac-sha-256, password: secret6, swap_protocol_id: true}",
			keys: "key chain k6\n key 1\n  key-string secret6\n  cryptographic-algorithm hmac-sha-256\n exit\nexit\n",
			frr:  " ipv6 ospf6 authentication keychain k6\n",
		},
	}
	ospfBIRDKeys = [2]ospfAuth{
		{
			pncd: "{id: 2, algorithm: hmac-sha-256, password: hidden}",
			bird: `authentication cryptographic; password "hidden" { id 2; algorithm hmac sha256; };`,
		},
		{
			pncd: "{id: 2, algorithm: hmac-sha-512, password: hidden6}",
			bird: `authentication cryptographic; password "hidden6" { id 2; algorithm hmac sha512; };`,
		},
	}
)

func TestOSPFFlagThroughThreeRouters(t *testing.T) {
	for name, o := range map[string]ospfChain{
		"point-to-point": {},
		"broadcast":      {lan: true},
		"stub area":      {kind: "stub"},
		"NSSA":           {kind: "nssa"},
		"TLV flags":      {v2: "  carrier: tlv-flags\n"},
		"keys":           {left: ospfFRRKeys, right: ospfBIRDKeys, routers: []string{"frr", "frr", "bird"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := upOSPF(t, o)
			l.bothFamilies()
			l.resolves("10.99.0.1", "RESOLVE_REASON_NO_ROUTE")
			l.changeSenders()
			pa, pb := o.leaves()
			l.onlyAnnounces(pa)
			l.onlyAnnounces(pb)
		})
	}
}

// changeSenders gives pa other prefixes, by a reload, and holds how long that takes to arrive at pb.
func (l *ospfLab) changeSenders() {
	l.t.Helper()
	begin := time.Now()
	l.editLeaf(func(s string) string {
		return strings.NewReplacer("10.1.0.0/24", "10.7.0.0/24", "2001:db8:1::/48", "2001:db8:7::/48").Replace(s)
	})
	for _, c := range [][2]string{{"10.7.0.2", igpProxy}, {"2001:db8:7::2", ospfProxy6}} {
		l.answers(c[0], c[1])
		took := time.Since(begin)
		l.t.Logf("figure: %s resolves behind %d routers %s after the change", c[0], len(l.routers), took.Round(time.Millisecond))
		if took > 2*time.Second {
			l.t.Errorf("%s took %s through %d routers, at most 2 s are allowed", c[0], took, len(l.routers))
		}
	}
	l.resolves("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
	l.resolves("2001:db8:1::2", "RESOLVE_REASON_NO_ROUTE")
}

// onlyAnnounces holds that in no database there is anything else of a leaf than a router LSA, of OSPFv3 the link LSA,
// and marks of area scope.
func (l *ospfLab) onlyAnnounces(leaf ospfLeaf) {
	l.t.Helper()
	plain := []string{"Router Link States", "Rtr", "Lnk", "0001", "2001", "0008", "router", "link"}
	for _, node := range slices.Concat(l.routers, l.leaves) {
		for _, a := range l.lsas(node, leaf.id()) {
			if !a.isMark() && !slices.Contains(plain, a.typ) {
				l.t.Errorf("%s has of %s %+v", node, leaf.name, a)
			}
		}
	}
}

// A LAN with FRR r1, which is designated, BIRD r2, its backup, and the leaves pa and pb, which are neither.
func TestOSPFOnALANOfFourSystems(t *testing.T) {
	l := newOSPFLab(t)
	lan := []ospfLink{{name: "eth1", lan: true}}
	first := []ospfLink{{name: "eth1", lan: true, extra: " ip ospf priority 100\n ipv6 ospf6 priority 100\n"}}
	pa, pb := ospfLeaf{name: "pa", n: 10, links: lan}, ospfLeaf{name: "pb", n: 11, links: lan}
	r2 := ospfRouter{n: 2, links: lan}.node("bird", "10.9.1.2/24")
	r2.exec = append(r2.exec, "ip addr add 2001:db8:9:1::2/64 dev eth1 nodad")
	l.build([]igpNode{
		{name: "sw", image: "bridge"}, ospfRouter{n: 1, links: first}.node("frr", "10.9.1.1/24"), r2,
		pa.proxy(ospfTwoSenders...), pb.learner(1, 2),
	}, [2]string{"r1:eth1", "sw:p1"}, [2]string{"r2:eth1", "sw:p2"}, [2]string{"pa:eth1", "sw:p3"}, [2]string{"pb:eth1", "sw:p4"})
	l.bothFamilies()
	designated := func(v2, v3 string) {
		t.Helper()
		l.eventually(v3+" is designated", func() string {
			for _, leaf := range l.leaves {
				for i, want := range []string{v2, v3} {
					link := l.ospf(leaf)[i].GetLinks()[0]
					if link.GetDesignated() != want || link.GetState() != "dr-other" {
						return fmt.Sprint(leaf, link)
					}
				}
			}
			return ""
		})
	}
	designated("10.9.1.1", "10.255.0.1")
	// With each other the leaves have no adjacency: neither of them is designated (RFC 2328 section 10.4).
	for _, r := range l.ospf("pa") {
		states := map[string]string{}
		for _, n := range r.GetLinks()[0].GetNeighbors() {
			states[n.GetRouterId()] = n.GetState()
		}
		if states[pb.id()] != "two-way" || states["10.255.0.1"] != "full" {
			t.Errorf("OSPFv%d: the neighbours are %v", r.GetVersion(), states)
		}
	}
	l.changeSenders()

	l.kill("r1", "ospfd")
	l.kill("r1", "ospf6d")
	designated("10.9.1.2", "10.255.0.2")
	l.editLeaf(func(s string) string {
		return strings.NewReplacer("10.7.0.0/24", "10.1.0.0/24", "2001:db8:7::/48", "2001:db8:1::/48").Replace(s)
	})
	l.bothFamilies()
}

func TestOSPFWrongKeyStaysDown(t *testing.T) {
	wrong := ospfFRRKeys
	for i := range wrong {
		wrong[i].pncd = strings.ReplaceAll(wrong[i].pncd, "secret", "public")
	}
	l := upOSPF(t, ospfChain{left: wrong, routers: []string{"frr", "bird"}})
	l.reaches("r1", 2)
	l.eventually("pa refuses the router's hellos", func() string {
		for _, r := range l.ospf("pa") {
			if n := r.GetLinks()[0].GetNeighbors(); len(n) != 0 {
				t.Fatalf("an adjacency with the wrong key: %v", n)
			}
			if r.GetDropped()["authentication"] < 5 {
				return fmt.Sprint(r.GetDropped())
			}
		}
		return ""
	})
	for _, c := range []string{"show ip ospf neighbor", "show ipv6 ospf6 neighbor"} {
		if text := l.vtysh("r1", c); strings.Contains(text, "10.254.0.10") {
			t.Errorf("an adjacency with the wrong key:\n%s", text)
		}
	}
}

func TestOSPFProxyBehindADeadRouterIsNotBelieved(t *testing.T) {
	l := upOSPF(t, ospfChain{routers: []string{"frr", "bird"}})
	l.bothFamilies()
	l.kill("r1", "ospfd") // its LSAs and pa's stay in r2's database for an hour
	l.kill("r1", "ospf6d")
	l.eventually("r2 has lost the adjacencies", func() string {
		if text := l.birdc("r2", "show", "ospf", "neighbors", "ospf4") + l.birdc("r2", "show", "ospf", "neighbors", "ospf6"); strings.Contains(text, "10.255.0.1") {
			return text
		}
		return ""
	})
	lost := time.Now()
	l.answers("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
	l.answers("2001:db8:1::2", "RESOLVE_REASON_NO_ROUTE")
	took := time.Since(lost)
	t.Logf("figure: the learner dropped the routes %s after r2 had lost the adjacencies", took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("the learner dropped the routes only after %s", took)
	}
	l.noTransit()
	pa, _ := ospfChain{}.leaves()
	l.marks(pa.id(), 1, "r2", "pb") // else the test shows nothing
}

func TestOSPFPacketsAreDecodedWithoutAMark(t *testing.T) {
	needPrograms(t, "tshark")
	for name, o := range map[string]ospfChain{
		"plain": {routers: []string{"frr"}},
		"keys":  {left: ospfBIRDKeys, routers: []string{"bird"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := upOSPF(t, o)
			l.bothFamilies()
			l.kill("pa", "pncd") // for the whole exchange to be in the capture
			file := filepath.Join(t.TempDir(), "pa.pcap")
			p, err := l.Start(l.ctx, "pa", lab.Proc{Argv: []string{"tshark", "-q", "-i", "eth1", "-F", "pcap", "-w", file}})
			if err != nil {
				t.Fatal(err)
			}
			mac := strings.TrimSpace(l.run("pa", "cat", "/sys/class/net/eth1/address"))
			l.eventually("the capture runs", func() string {
				if decode(t, file, "ospf", "ospf.msg") == "" {
					return "no packets of the router"
				}
				return ""
			})
			pncd := l.startAgain("pa")
			l.full("pa")
			l.bothFamilies()
			if err := pncd.Stop(); err != nil { // flushes
				t.Errorf("pncd's end: %v", err)
			}
			l.eventually("every type of packet of pa is in the capture", func() string {
				for _, version := range []string{"2", "3"} {
					seen := decode(t, file, "eth.src=="+mac+" && ospf.version=="+version, "ospf.msg")
					for _, typ := range []string{"1", "2", "3", "4", "5"} {
						if !strings.Contains("\n"+seen, "\n"+typ+"\n") {
							return "OSPFv" + version + ": none of type " + typ
						}
					}
				}
				return ""
			})
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			const worse = "(_ws.malformed || _ws.expert.severity >= 6291456)" // warnings and errors
			for line := range strings.Lines(decode(t, file, "eth.src=="+mac+" && ospf && "+worse, "_ws.expert.message")) {
				// Before 4.2 tshark doesn't know the Extended LSAs of RFC 8362: 41 is E-Intra-Area-Prefix.
				if strings.TrimSpace(strings.ReplaceAll(line, "Unknown LSA Type 41", "")) != "" {
					t.Errorf("tshark says: %s", line)
				}
			}
		})
	}
}
