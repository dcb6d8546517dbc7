package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// ospfProxy6 is pa's IPv6 address: OSPFv3 carries no other.
const ospfProxy6 = "2001:db8:ffff::11"

// ospfLeaf is pncd. Its router ID ends in n.
type ospfLeaf struct {
	name   string
	n      int
	links  []ospfLink
	kinds  map[string]string // of areas that are stub or nssa
	v2, v3 string            // further lines of the sections
}

func (f ospfLeaf) id() string { return fmt.Sprintf("10.254.0.%d", f.n) }

// conf is the configuration, with the sections before.
func (f ospfLeaf) conf(before string) string {
	var b strings.Builder
	b.WriteString(before)
	for _, v3 := range []bool{false, true} {
		section, more := "ospfv2", f.v2
		if v3 {
			section, more = "ospfv3", f.v3
		}
		fmt.Fprintf(&b, "%s:\n  router_id: %s\n  timers: {min_ls_interval: 1s, ack_delay: 200ms, spf: 100ms, spf_second: 50ms}\n%s", section, f.id(), more)
		if len(f.kinds) > 0 {
			b.WriteString("  areas:\n")
			for area, kind := range f.kinds {
				fmt.Fprintf(&b, "    - {id: %s, type: %s}\n", area, kind)
			}
		}
		b.WriteString("  links:\n")
		for _, i := range f.links {
			kind, auth := "point-to-point", i.v2.pncd
			if i.lan {
				kind = "broadcast"
			}
			if v3 {
				auth = i.v3.pncd
			}
			fmt.Fprintf(&b, "    - interface: %s\n      area: %s\n      type: %s\n      hello: 1s\n      dead: 4s\n      retransmit: 2s\n", i.name, i.areaID(), kind)
			if auth != "" {
				fmt.Fprintf(&b, "      keys: [%s]\n", auth)
			}
			b.WriteString(i.extra)
		}
	}
	return b.String()
}

// ospfSenders are the sections of the proxy pa with these sender prefixes.
func ospfSenders(senders ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node: pa\nenabled: true\nproxy:\n  ipv4: %s\n  ipv6: %q\n  taps: [eth1]\n  accept_from: [10.0.0.0/8, \"2001:db8::/32\"]\n  senders:\n", igpProxy, ospfProxy6)
	for _, s := range senders {
		proxy := igpProxy
		if strings.Contains(s, ":") {
			proxy = ospfProxy6
		}
		fmt.Fprintf(&b, "    - {prefix: %q, proxy: %q}\n", s, proxy)
	}
	return b.String()
}

// proxy is the leaf as pa, on the link to r1 with 10.9.1.10/24.
func (f ospfLeaf) proxy(senders ...string) igpNode {
	return igpNode{name: f.name, image: "pncd", conf: f.conf(ospfSenders(senders...)), exec: []string{
		"ip addr add 10.9.1.10/24 dev eth1", "ip addr add " + igpProxy + "/32 dev lo", "ip addr add " + ospfProxy6 + "/128 dev lo",
	}}
}

// learner is the leaf as pb, on a link where its addresses end in 11, with the router that leads to pa.
func (f ospfLeaf) learner(link, router int) igpNode {
	return igpNode{name: f.name, image: "pncd", conf: f.conf("node: " + f.name + "\n"), exec: []string{
		fmt.Sprintf("ip addr add 10.9.%d.%d/24 dev eth1", link, f.n), fmt.Sprintf("ip addr add 2001:db8:9:%d::%d/64 dev eth1 nodad", link, f.n),
		fmt.Sprintf("ip route add %s/32 via 10.9.%d.%d", igpProxy, link, router), fmt.Sprintf("ip route add %s/128 via 2001:db8:9:%d::%d", ospfProxy6, link, router),
	}}
}

// ospfChain says what is different from a chain of point-to-point links in the backbone, without authentication.
type ospfChain struct {
	lan     bool
	kind    string      // of the one area that everything is in
	left    [2]ospfAuth // of the link to r1, of each version
	right   [2]ospfAuth // of that to the last router
	v2      string      // further lines of the leaves' ospfv2
	senders []string    // of pa; one of each family when nil
	routers []string    // their programs; FRR, BIRD, FRR when nil
	extra   string      // further lines of FRR's routers
}

var ospfTwoSenders = []string{"10.1.0.0/24", "2001:db8:1::/48"}

// leaves are pa and pb of the chain.
func (o ospfChain) leaves() (pa, pb ospfLeaf) {
	pa = ospfLeaf{name: "pa", n: 10, links: []ospfLink{o.link("eth1", o.left)}, kinds: o.kinds(), v2: o.v2}
	pb = ospfLeaf{name: "pb", n: 11, links: []ospfLink{o.link("eth1", o.right)}, kinds: o.kinds(), v2: o.v2}
	return pa, pb
}

func (o ospfChain) link(name string, auth [2]ospfAuth) ospfLink {
	area := ""
	if o.kind != "" {
		area = "0.0.0.1"
	}
	return ospfLink{name: name, area: area, lan: o.lan, v2: auth[0], v3: auth[1]}
}

func (o ospfChain) kinds() map[string]string {
	if o.kind == "" {
		return nil
	}
	return map[string]string{"0.0.0.1": o.kind}
}

// upOSPF is pncd pa - r1 - r2 ... - pncd pb: FRR, BIRD and FRR between the leaves unless the options say otherwise.
func upOSPF(t *testing.T, o ospfChain) *ospfLab {
	t.Helper()
	l := newOSPFLab(t)
	if o.routers == nil {
		o.routers = []string{"frr", "bird", "frr"}
	}
	if o.senders == nil {
		o.senders = ospfTwoSenders
	}
	pa, pb := o.leaves()
	nodes, last := []igpNode{pa.proxy(o.senders...)}, len(o.routers)
	links := [][2]string{{"pa:eth1", "r1:eth1"}}
	for i, image := range o.routers {
		var left, right [2]ospfAuth // between routers there is none
		n := i + 1
		if n == 1 {
			left = o.left
		}
		if n == last {
			right = o.right
		}
		r := ospfRouter{n: n, links: []ospfLink{o.link("eth1", left), o.link("eth2", right)}, kinds: o.kinds(), area: o.link("", left).area, extra: o.extra}
		node := r.node(image, fmt.Sprintf("10.9.%d.%d/24", n, n), fmt.Sprintf("10.9.%d.%d/24", n+1, n))
		next := fmt.Sprintf("r%d:eth1", n+1)
		if n == last {
			node.exec = append(node.exec, fmt.Sprintf("ip addr add 2001:db8:9:%d::%d/64 dev eth2 nodad", n+1, n))
			next = "pb:eth1"
		}
		nodes, links = append(nodes, node), append(links, [2]string{fmt.Sprintf("r%d:eth2", n), next})
	}
	l.build(append(nodes, pb.learner(last+1, last)), links...)
	return l
}

// ospf reads a leaf's routers: that of OSPFv2, and that of OSPFv3.
func (l *ospfLab) ospf(node string) []*pncv1.OspfRouter {
	l.t.Helper()
	routers, err := l.ospfNow(node)
	if err != nil {
		l.t.Fatalf("%s: %v", node, err)
	}
	return routers
}

// ospfNow is the same of a leaf that may not be there yet.
func (l *ospfLab) ospfNow(node string) ([]*pncv1.OspfRouter, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	st, err := pncv1.NewOspfServiceClient(l.dial(node)).GetOspf(ctx, &pncv1.GetOspfRequest{})
	if err == nil && len(st.GetRouters()) != 2 {
		err = fmt.Errorf("%d routers", len(st.GetRouters()))
	}
	return st.GetRouters(), err
}

// bothFamilies waits until pb resolves the senders in both families.
func (l *ospfLab) bothFamilies() {
	l.t.Helper()
	l.resolves("10.1.0.2", igpProxy)
	l.resolves("2001:db8:1::2", ospfProxy6)
}
