package integration

import (
	"fmt"
	"strings"
	"testing"
)

// ospfLab is a lab of OSPFv2 for IPv4 and OSPFv3 for IPv6, both on each link.
type ospfLab struct{ *igpLab }

// newOSPFLab is a lab of nothing yet.
func newOSPFLab(t *testing.T) *ospfLab {
	t.Helper()
	needPrograms(t, "bird")
	return &ospfLab{newIGPLab(t, igp{
		name: "ospf", daemons: []string{"ospfd", "ospf6d"},
		routes: []string{"show ip route ospf", "show ipv6 route ospf6"}, own: []string{"show ip ospf route", "show ipv6 ospf6 route"},
		state: []string{"show ip ospf neighbor", "show ip ospf database", "show ipv6 ospf6 neighbor", "show ipv6 ospf6 database"},
		bird:  []string{"show ospf neighbors ospf4", "show ospf lsadb ospf4", "show ospf neighbors ospf6", "show ospf lsadb ospf6"},
	})}
}

// ospfAuth are the lines that authenticate an interface of one version, for each program.
type ospfAuth struct {
	pncd string // an item of the link's keys
	frr  string // of the interface
	keys string // FRR's keychains, outside of interfaces
	bird string // of the interface
}

// ospfLink is an interface of a router or a leaf.
type ospfLink struct {
	name  string
	area  string // 0.0.0.0 when empty
	lan   bool   // broadcast, else point-to-point
	stub  bool   // a loopback: no hellos
	v2    ospfAuth
	v3    ospfAuth
	extra string // further lines of FRR's or pncd's interface
}

func (i ospfLink) areaID() string {
	if i.area == "" {
		return "0.0.0.0"
	}
	return i.area
}

// ospfRouter is a router. Its router ID and its loopback's addresses end in n.
type ospfRouter struct {
	n     int
	links []ospfLink
	kinds map[string]string // of areas that are stub or nssa
	area  string            // of the loopback; 0.0.0.0 when empty
	extra string            // further lines of both of FRR's routers
}

func (r ospfRouter) loopback() ospfLink { return ospfLink{name: "lo", area: r.area, stub: true} }

// frr is the configuration for FRR. What reads Opaque LSAs in ospfd is on, so that one that it can't stand shows.
func (r ospfRouter) frr() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hostname r%d\n", r.n)
	for _, i := range append(r.links, r.loopback()) {
		b.WriteString(i.v2.keys + i.v3.keys)
		fmt.Fprintf(&b, "interface %s\n ip ospf area %s\n ipv6 ospf6 area %s\n", i.name, i.areaID(), i.areaID())
		if i.stub {
			continue
		}
		kind := "point-to-point"
		if i.lan {
			kind = "broadcast"
		}
		for _, v := range []string{"ip ospf", "ipv6 ospf6"} {
			fmt.Fprintf(&b, " %s network %s\n %s hello-interval 1\n %s dead-interval 4\n %s retransmit-interval 2\n", v, kind, v, v, v)
		}
		b.WriteString(i.v2.frr + i.v3.frr + i.extra)
	}
	timers := " timers throttle spf 10 50 100\n timers lsa min-arrival 100\n" + r.extra
	fmt.Fprintf(&b, "router ospf\n ospf router-id 10.255.0.%d\n%s timers throttle lsa all 50\n capability opaque\n mpls-te on\n mpls-te router-address 10.255.0.%d\n router-info area\n", r.n, timers, r.n)
	fmt.Fprintf(&b, " segment-routing on\n segment-routing global-block 16000 23999\n segment-routing node-msd 8\n segment-routing prefix 10.255.0.%d/32 index %d\n", r.n, r.n)
	for area, kind := range r.kinds {
		fmt.Fprintf(&b, " area %s %s\n", area, kind)
	}
	fmt.Fprintf(&b, "router ospf6\n ospf6 router-id 10.255.0.%d\n%s", r.n, timers)
	for area, kind := range r.kinds {
		fmt.Fprintf(&b, " area %s %s\n", area, kind)
	}
	return b.String()
}

// bird is the configuration for BIRD.
func (r ospfRouter) bird() string {
	var b strings.Builder
	fmt.Fprintf(&b, "log stderr all;\nrouter id 10.255.0.%d;\nprotocol device { scan time 1; }\nprotocol kernel { ipv4 { export all; }; }\nprotocol kernel { ipv6 { export all; }; }\n", r.n)
	for v, channel := range map[string]string{"v2 ospf4": "ipv4", "v3 ospf6": "ipv6"} {
		fmt.Fprintf(&b, "protocol ospf %s {\n  %s { import all; export none; };\n", v, channel)
		areas := map[string]string{}
		for _, i := range append(r.links, r.loopback()) {
			kind, auth := "ptp", i.v2.bird
			if i.lan {
				kind = "broadcast"
			}
			if channel == "ipv6" {
				auth = i.v3.bird
			}
			if i.stub { // of a loopback, BIRD announces the IPv4 address only
				areas[i.areaID()] += map[string]string{"ipv4": "    interface \"lo\" { stub; };\n", "ipv6": fmt.Sprintf("    stubnet 2001:db8:ffff::%d/128;\n", r.n)}[channel]
				continue
			}
			areas[i.areaID()] += fmt.Sprintf("    interface %q { type %s; hello 1; dead 4; retransmit 2; %s };\n", i.name, kind, auth)
		}
		for area, text := range areas {
			if k := r.kinds[area]; k != "" {
				text = "    " + k + ";\n" + text
			}
			fmt.Fprintf(&b, "  area %s {\n%s  };\n", area, text)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// node is the router as a node of the lab, with these addresses on its links, as eth1 10.9.1.1/24.
func (r ospfRouter) node(image string, addresses ...string) igpNode {
	n := igpNode{name: fmt.Sprintf("r%d", r.n), image: image, conf: r.frr()}
	if image == "bird" {
		n.conf = r.bird()
	}
	n.exec = []string{fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", r.n), fmt.Sprintf("ip addr add 2001:db8:ffff::%d/128 dev lo", r.n)}
	for i, a := range addresses {
		n.exec = append(n.exec, fmt.Sprintf("ip addr add %s dev %s", a, r.links[i].name))
	}
	return n
}

// reaches waits until a router routes to the loopbacks of others, in each version.
func (l *ospfLab) reaches(router string, others ...int) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("%s routes to %v", router, others), func() string {
		text, err := l.routes(l.ctx, router)
		if err != nil {
			return err.Error()
		}
		for _, n := range others {
			if !strings.Contains(text, fmt.Sprintf("10.255.0.%d ", n)) || !strings.Contains(text, fmt.Sprintf("2001:db8:ffff::%d ", n)) {
				return text
			}
		}
		return ""
	})
}
