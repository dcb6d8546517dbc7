package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// isisLab is pncd pa - FRR r1 - FRR r2 - pncd pb on point-to-point links, or all on one LAN. pa is a proxy for
// 10.1.0.0/24 and 2001:db8:1::/48.
type isisLab struct{ *igpLab }

// isisOptions say what is different from a lab of level 2 without authentication.
type isisOptions struct {
	lan     bool
	level   string // level-2 when empty
	circuit string // further lines of FRR's interfaces
	router  string // further lines of FRR's router
	keys    string // further lines of pncd's isis section
	hellos  string // further lines of pncd's circuit
}

// frr is the configuration of router n, with its interfaces.
func (o isisOptions) frr(n int, interfaces ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "hostname r%d\n", n)
	for _, i := range interfaces {
		b.WriteString(o.frrInterface(i))
	}
	fmt.Fprintf(&b, "interface lo\n ip router isis 1\n ipv6 router isis 1\nrouter isis 1\n net 49.0001.0000.0000.000%d.00\n is-type %s\n lsp-gen-interval 1\n spf-interval 1\n%s",
		n, o.frrLevel(), o.router)
	return b.String()
}

// frrInterface are the lines of an interface.
func (o isisOptions) frrInterface(name string) string {
	return fmt.Sprintf("interface %s\n %s\n", name, strings.Join(o.frrLines(), "\n "))
}

// frrLines are those of an interface within it.
func (o isisOptions) frrLines() []string {
	lines := []string{"ip router isis 1", "ipv6 router isis 1", "isis hello-interval 1", "isis circuit-type " + o.frrLevel()}
	if !o.lan {
		lines = append(lines, "isis network point-to-point")
	}
	for line := range strings.Lines(o.circuit) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func (o isisOptions) pncdLevel() string {
	if o.level == "" {
		return "level-2"
	}
	return o.level
}

func (o isisOptions) frrLevel() string {
	if l := o.pncdLevel(); l != "level-1-2" {
		return l + map[string]string{"level-1": "", "level-2": "-only"}[l]
	}
	return "level-1-2"
}

// pncd is the configuration of the leaf with a system ID, and further sections.
func (o isisOptions) pncd(system, more string) string {
	typ := "point-to-point"
	if o.lan {
		typ = "broadcast"
	}
	return fmt.Sprintf(`%s
isis:
  net: 49.0001.0000.0000.%s.00
  level: %s
  timers: {generation: 200ms, spf: 100ms, psnp: 200ms}
%s  circuits:
    - interface: eth1
      type: %s
      hello: 1s
%s`, more, system, o.pncdLevel(), o.keys, typ, o.hellos)
}

// newISISLab is a lab of nothing yet.
func newISISLab(t *testing.T) *isisLab {
	t.Helper()
	return &isisLab{newIGPLab(t, igp{
		name: "isis", daemons: []string{"isisd"},
		routes: []string{"show ip route isis", "show ipv6 route isis"}, state: []string{"show isis neighbor", "show isis database"},
	})}
}

func upISIS(t *testing.T, o isisOptions) *isisLab {
	t.Helper()
	l := newISISLab(t)
	router := func(n int, interfaces []string, addresses ...string) igpNode {
		return igpNode{name: fmt.Sprintf("r%d", n), image: "frr", conf: o.frr(n, interfaces...), exec: append([]string{fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", n)}, addresses...)}
	}
	pa := igpNode{name: "pa", image: "pncd", conf: o.pncd("0010", igpProxyConf("10.1.0.0/24", "2001:db8:1::/48"))}
	pb := igpNode{name: "pb", image: "pncd", conf: o.pncd("0011", "node: pb\n")}
	if o.lan {
		pa.exec = []string{"ip addr add 10.9.0.10/24 dev eth1", "ip addr add " + igpProxy + "/32 dev lo"}
		pb.exec = []string{"ip addr add 10.9.0.11/24 dev eth1", "ip route add " + igpProxy + "/32 via 10.9.0.1"}
		l.build([]igpNode{{name: "sw", image: "bridge"}, router(1, []string{"eth1"}, "ip addr add 10.9.0.1/24 dev eth1"), pa, pb},
			[2]string{"r1:eth1", "sw:p1"}, [2]string{"pa:eth1", "sw:p2"}, [2]string{"pb:eth1", "sw:p3"})
		return l
	}
	pa.exec = []string{"ip addr add 10.9.1.10/24 dev eth1", "ip addr add " + igpProxy + "/32 dev lo"}
	pb.exec = []string{"ip addr add 10.9.3.11/24 dev eth1", "ip route add " + igpProxy + "/32 via 10.9.3.2"}
	both := []string{"eth1", "eth2"}
	l.build([]igpNode{
		router(1, both, "ip addr add 10.9.1.1/24 dev eth1", "ip addr add 10.9.2.1/24 dev eth2"),
		router(2, both, "ip addr add 10.9.2.2/24 dev eth1", "ip addr add 10.9.3.2/24 dev eth2"),
		pa, pb,
	}, [2]string{"pa:eth1", "r1:eth1"}, [2]string{"r1:eth2", "r2:eth1"}, [2]string{"r2:eth2", "pb:eth1"})
	return l
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
