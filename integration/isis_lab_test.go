package integration

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/lab"
)

// isisLab is pncd pa - FRR r1 - FRR r2 - pncd pb on point-to-point links, or all on one LAN. pa is a proxy for
// 10.1.0.0/24 and 2001:db8:1::/48.
type isisLab struct {
	*bgpLab
	dir     string // of the bound files
	routers []string
	leaves  []string
	conns   map[string]*grpc.ClientConn
}

// isisOptions say what is different from a lab of level 2 without authentication.
type isisOptions struct {
	lan     bool
	level   string // level-2 when empty
	circuit string // further lines of FRR's interfaces
	router  string // further lines of FRR's router
	keys    string // further lines of pncd's isis section
	hellos  string // further lines of pncd's circuit
}

const isisProxy = "10.255.0.11"

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
	text := fmt.Sprintf("interface %s\n ip router isis 1\n ipv6 router isis 1\n isis hello-interval 1\n isis circuit-type %s\n", name, o.frrLevel())
	if !o.lan {
		text += " isis network point-to-point\n"
	}
	return text + o.circuit
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

// isisLabs numbers the labs of this process, which run beside each other.
var isisLabs atomic.Uint32

// newISISLab is a lab of nothing yet.
func newISISLab(t *testing.T) *isisLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN for namespaces")
	}
	if _, err := os.Stat("/usr/lib/frr/isisd"); err != nil {
		t.Skip("frr is not installed")
	}
	t.Parallel() // a lab mostly waits, for hellos and for what a purge leaves
	return &isisLab{bgpLab: &bgpLab{t: t}, dir: t.TempDir(), conns: map[string]*grpc.ClientConn{}}
}

// write makes a file that a node binds, or changes it in place.
func (l *isisLab) write(file, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, file), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func upISIS(t *testing.T, o isisOptions) *isisLab {
	t.Helper()
	l := newISISLab(t)
	router := func(n int, interfaces []string, addresses ...string) isisNode {
		return isisNode{name: fmt.Sprintf("r%d", n), image: "frr", conf: o.frr(n, interfaces...), exec: append([]string{fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", n)}, addresses...)}
	}
	pa := isisNode{name: "pa", image: "pncd", conf: o.pncd("0010", isisProxyConf("10.1.0.0/24", "2001:db8:1::/48"))}
	pb := isisNode{name: "pb", image: "pncd", conf: o.pncd("0011", "node: pb\n")}
	if o.lan {
		pa.exec = []string{"ip addr add 10.9.0.10/24 dev eth1", "ip addr add " + isisProxy + "/32 dev lo"}
		pb.exec = []string{"ip addr add 10.9.0.11/24 dev eth1", "ip route add " + isisProxy + "/32 via 10.9.0.1"}
		l.build([]isisNode{{name: "sw", image: "bridge"}, router(1, []string{"eth1"}, "ip addr add 10.9.0.1/24 dev eth1"), pa, pb},
			[2]string{"r1:eth1", "sw:p1"}, [2]string{"pa:eth1", "sw:p2"}, [2]string{"pb:eth1", "sw:p3"})
		return l
	}
	pa.exec = []string{"ip addr add 10.9.1.10/24 dev eth1", "ip addr add " + isisProxy + "/32 dev lo"}
	pb.exec = []string{"ip addr add 10.9.3.11/24 dev eth1", "ip route add " + isisProxy + "/32 via 10.9.3.2"}
	both := []string{"eth1", "eth2"}
	l.build([]isisNode{
		router(1, both, "ip addr add 10.9.1.1/24 dev eth1", "ip addr add 10.9.2.1/24 dev eth2"),
		router(2, both, "ip addr add 10.9.2.2/24 dev eth1", "ip addr add 10.9.3.2/24 dev eth2"),
		pa, pb,
	}, [2]string{"pa:eth1", "r1:eth1"}, [2]string{"r1:eth2", "r2:eth1"}, [2]string{"r2:eth2", "pb:eth1"})
	return l
}

// up brings the topology up and begins to watch the routers' tables.
func (l *isisLab) up(topo string) {
	t := l.t
	t.Helper()
	parsed, err := lab.Parse(filepath.Join(l.dir, "isis.clab.yml"), []byte(topo))
	if err != nil {
		t.Fatalf("%v\n%s", err, topo)
	}
	program := pncdBinary(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	up, err := lab.Up(ctx, parsed, lab.Options{Unique: true, Dir: t.TempDir(), Programs: map[string]string{"pncd": program}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := up.Down(); err != nil {
			t.Errorf("the lab wasn't taken down: %v", err)
		}
	})
	l.bgpLab = &bgpLab{Lab: up, t: t, ctx: ctx}
	l.watchRoutes()
}

// dial gives the connection to the pncd of a leaf.
func (l *isisLab) dial(node string) *grpc.ClientConn {
	l.t.Helper()
	if c := l.conns[node]; c != nil {
		return c
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(l.RunDir(node), "pncd", "pncd.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	l.conns[node] = conn
	return conn
}

// resolves waits until pb gives an answer for a sender: a proxy, or a reason without one. No router may route
// through a leaf then.
func (l *isisLab) resolves(sender, want string) {
	l.t.Helper()
	l.answers(sender, want)
	l.noTransit()
}

func (l *isisLab) answers(sender, want string) {
	l.t.Helper()
	c := pncv1.NewCapabilityServiceClient(l.dial("pb"))
	l.eventually("pb resolves "+sender+" to "+want, func() string {
		ctx, cancel := context.WithTimeout(l.ctx, time.Second)
		defer cancel()
		r, err := c.Resolve(ctx, &pncv1.ResolveRequest{Sender: netip.MustParseAddr(sender).String()})
		if err != nil {
			return err.Error()
		}
		if r.GetProxy() == want && want != "" || r.GetReason().String() == want {
			return ""
		}
		var seen []byte
		if n := len(l.routers); n > 0 {
			seen, _ = l.Exec(l.ctx, l.routers[n-1], "vtysh", "-c", "show isis neighbor", "-c", "show isis database")
		}
		return fmt.Sprintf("%s %s; the router beside pb: %s", r.GetReason(), r.GetProxy(), seen)
	})
}

// kill ends a program of a node as kill -9 does.
func (l *isisLab) kill(node, program string) {
	l.t.Helper()
	for _, p := range l.Programs(node) {
		if strings.Contains(p.Name(), program) {
			p.Kill()
			return
		}
	}
	l.t.Fatalf("%s runs no %s", node, program)
}

// reload gives a leaf another configuration.
func (l *isisLab) reload(node, conf string) {
	l.t.Helper()
	l.write(node+".yaml", conf)
	if err := l.Programs(node)[0].Signal(syscall.SIGHUP); err != nil {
		l.t.Fatal(err)
	}
}

// editLeaf changes pa's configuration, and reloads it.
func (l *isisLab) editLeaf(edit func(string) string) {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "pa.yaml"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.reload("pa", edit(string(text)))
}

// changeSender gives pa 10.7.0.0/24 in place of 10.1.0.0/24, by a reload.
func (l *isisLab) changeSender() {
	l.t.Helper()
	l.editLeaf(func(s string) string { return strings.Replace(s, "10.1.0.0/24", "10.7.0.0/24", 1) })
}
