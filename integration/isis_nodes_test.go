package integration

import (
	"context"
	"fmt"
	"strings"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// isisNode is a node of a lab of any shape.
type isisNode struct {
	name  string
	image string   // frr: a router; pncd: a leaf; bridge; debian
	conf  string   // of the router or the leaf
	exec  []string // further commands
}

// build brings up a lab of these nodes; a link is two of node:interface.
func (l *isisLab) build(nodes []isisNode, links ...[2]string) {
	l.t.Helper()
	l.write("daemons", "isisd=yes\n")
	var b strings.Builder
	fmt.Fprintf(&b, "name: isis%d\ntopology:\n  nodes:\n", isisLabs.Add(1))
	for _, n := range nodes {
		if n.image == "bridge" {
			fmt.Fprintf(&b, "    %s: {kind: bridge}\n", n.name)
			continue
		}
		fmt.Fprintf(&b, "    %s:\n      kind: linux\n      image: %s\n", n.name, n.image)
		switch n.image {
		case "frr":
			l.routers = append(l.routers, n.name)
			l.write(n.name+".conf", n.conf)
			fmt.Fprintf(&b, "      binds: [\"%s.conf:/etc/frr/frr.conf\", \"daemons:/etc/frr/daemons\"]\n", n.name)
			n.exec = append([]string{"sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'"}, n.exec...)
		case "pncd":
			l.leaves = append(l.leaves, n.name)
			l.write(n.name+".yaml", n.conf)
			fmt.Fprintf(&b, "      binds: [\"%s.yaml:/etc/pncd/pncd.yaml\"]\n", n.name)
		}
		if len(n.exec) > 0 {
			fmt.Fprintf(&b, "      exec:\n        - %s\n", strings.Join(n.exec, "\n        - "))
		}
	}
	b.WriteString("  links:\n")
	for _, e := range links {
		fmt.Fprintf(&b, "    - endpoints: [%q, %q]\n", e[0], e[1])
	}
	l.up(b.String())
}

// isisProxyConf is the configuration of the proxy pa for these sender prefixes, less its isis section.
func isisProxyConf(senders ...string) string {
	var b strings.Builder
	b.WriteString("node: pa\nenabled: true\nproxy:\n  ipv4: " + isisProxy + "\n  taps: [eth1]\n  accept_from: [10.0.0.0/8]\n  senders:\n")
	for _, s := range senders {
		fmt.Fprintf(&b, "    - {prefix: %q, proxy: %s}\n", s, isisProxy)
	}
	return b.String()
}

// isis reads a leaf's system.
func (l *isisLab) isis(node string) *pncv1.GetIsisResponse {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	st, err := pncv1.NewIsisServiceClient(l.dial(node)).GetIsis(ctx, &pncv1.GetIsisRequest{})
	if err != nil {
		l.t.Fatalf("%s: %v", node, err)
	}
	return st
}

// lsps lists the LSPs that a leaf has, with what they hold.
func (l *isisLab) lsps(node string, level uint32, system string) []*pncv1.IsisLsp {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	r, err := pncv1.NewIsisServiceClient(l.dial(node)).ListLsps(ctx, &pncv1.ListLspsRequest{Level: level, System: system, Detail: true})
	if err != nil {
		l.t.Fatalf("%s: %v", node, err)
	}
	return r.GetLsps()
}

// notDesignated fails when a leaf is a LAN's designated system at some level, or nobody is at one of them.
func (l *isisLab) notDesignated(node string, levels ...uint32) string {
	l.t.Helper()
	st := l.isis(node)
	for _, level := range levels {
		switch d := st.GetCircuits()[0].GetDesignated()[level]; {
		case d == "":
			return fmt.Sprintf("nobody is designated at level %d: %s", level, st.GetCircuits()[0].GetDetail())
		case strings.HasPrefix(d, st.GetSystemId()):
			l.t.Fatalf("%s is the designated system of level %d", node, level)
		}
	}
	return ""
}
