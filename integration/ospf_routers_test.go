package integration

import "testing"

// What the labs with leaves stand on: the routers alone agree.
func TestOSPFRoutersAlone(t *testing.T) {
	for name, c := range map[string]struct {
		lan  bool
		kind string
		v2   ospfAuth
	}{
		"point-to-point": {},
		"LAN":            {lan: true},
		"stub":           {kind: "stub"},
		"NSSA":           {kind: "nssa"},
		"MD5": {v2: ospfAuth{
			frr:  " ip ospf authentication message-digest\n ip ospf message-digest-key 1 md5 secret\n",
			bird: `authentication cryptographic; password "secret" { id 1; algorithm keyed md5; };`,
		}}, // FRR 8.4 and BIRD don't agree about the trailer of OSPFv3
	} {
		t.Run(name, func(t *testing.T) {
			l := newOSPFLab(t)
			area, kinds := "", map[string]string{}
			if c.kind != "" {
				area, kinds["0.0.0.1"] = "0.0.0.1", c.kind
			}
			link := func(name string) ospfLink { return ospfLink{name: name, area: area, lan: c.lan, v2: c.v2} }
			router := func(n int, links ...ospfLink) ospfRouter {
				return ospfRouter{n: n, links: links, kinds: kinds, area: area}
			}
			l.build([]igpNode{
				router(1, link("eth1")).node("frr", "10.9.2.1/24"),
				router(2, link("eth1"), link("eth2")).node("bird", "10.9.2.2/24", "10.9.3.2/24"),
				router(3, link("eth1")).node("frr", "10.9.3.3/24"),
			}, [2]string{"r1:eth1", "r2:eth1"}, [2]string{"r2:eth2", "r3:eth1"})
			for router, n := range map[string]int{"r1": 1, "r2": 2, "r3": 1} {
				l.adjacent(router, n)
			}
			l.reaches("r1", 2, 3)
			l.reaches("r2", 1, 3)
			l.reaches("r3", 1, 2)
		})
	}
}
