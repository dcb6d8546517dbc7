package integration

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/lab"
)

// igp is what the labs of a protocol differ in.
type igp struct {
	name    string
	daemons []string // of FRR
	routes  []string // FRR's commands that show what the protocol routes,
	own     []string // and those that the protocol's daemons answer
	state   []string // FRR's commands that show why a prefix is missing
	bird    []string // the same of BIRD
}

// igpLab is a lab of routers and of leaves, which are pncd. Of the leaves of most labs pa is a proxy, and pb learns.
type igpLab struct {
	*bgpLab
	igp     igp
	dir     string // of the bound files
	routers []string
	birds   []string // the routers that are BIRD
	leaves  []string
	conns   map[string]*grpc.ClientConn

	mu     sync.Mutex
	killed map[string][]*lab.Process // by node
}

// igpNode is a node of a lab of any shape.
type igpNode struct {
	name  string
	image string   // frr, bird: a router; pncd: a leaf; bridge; debian
	conf  string   // of the router or the leaf
	exec  []string // further commands

	forwards bool // a leaf that is a router, too: others have static routes through it
}

// igpProxy is pa's address.
const igpProxy = "10.255.0.11"

// labs numbers the labs of this process, which run beside each other.
var labs atomic.Uint32

// newIGPLab is a lab of nothing yet.
func newIGPLab(t *testing.T, protocol igp) *igpLab {
	t.Helper()
	needLab(t)
	needFRR(t, protocol.daemons...)
	t.Parallel() // see moreBesideEachOther
	return &igpLab{bgpLab: &bgpLab{t: t}, igp: protocol, dir: t.TempDir(), conns: map[string]*grpc.ClientConn{}, killed: map[string][]*lab.Process{}}
}

// write makes a file that a node binds, or changes it in place.
func (l *igpLab) write(file, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, file), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// build brings up a lab of these nodes; a link is two of node:interface.
func (l *igpLab) build(nodes []igpNode, links ...[2]string) {
	l.t.Helper()
	l.write("daemons", strings.Join(l.igp.daemons, "=yes\n")+"=yes\n")
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s%d\ntopology:\n  nodes:\n", l.igp.name, labs.Add(1))
	for _, n := range nodes {
		if n.image == "bridge" {
			fmt.Fprintf(&b, "    %s: {kind: bridge}\n", n.name)
			continue
		}
		fmt.Fprintf(&b, "    %s:\n      kind: linux\n      image: %s\n", n.name, n.image)
		const forwards = "sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'"
		switch n.image {
		case "frr":
			l.routers = append(l.routers, n.name)
			l.write(n.name+".conf", n.conf)
			fmt.Fprintf(&b, "      binds: [\"%s.conf:/etc/frr/frr.conf\", \"daemons:/etc/frr/daemons\"]\n", n.name)
			n.exec = append([]string{forwards}, n.exec...)
		case "bird":
			l.routers, l.birds = append(l.routers, n.name), append(l.birds, n.name)
			l.write(n.name+".conf", n.conf)
			fmt.Fprintf(&b, "      binds: [\"%s.conf:/etc/bird/bird.conf\"]\n", n.name)
			n.exec = append([]string{forwards}, n.exec...)
		case "pncd":
			if n.forwards {
				n.exec = append([]string{forwards}, n.exec...)
			} else {
				l.leaves = append(l.leaves, n.name)
			}
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

// up brings the topology up and begins to watch the routers.
func (l *igpLab) up(topo string) {
	t := l.t
	t.Helper()
	parsed, err := lab.Parse(filepath.Join(l.dir, "igp.clab.yml"), []byte(topo))
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
	t.Cleanup(l.routersLive)
	l.watchRoutes()
}

// routersLive fails the test when a router's program has ended by itself: nothing that a leaf sends may bring that about.
func (l *igpLab) routersLive() {
	for _, r := range l.routers {
		for _, p := range l.Programs(r) {
			if ended(p) && !slices.Contains(l.killed[r], p) {
				text, _ := os.ReadFile(p.Log())
				l.t.Errorf("%s: %s has ended:\n%s", r, p.Name(), text[max(0, len(text)-3000):])
			}
		}
	}
}

// dial gives the connection to the pncd of a leaf.
func (l *igpLab) dial(node string) *grpc.ClientConn {
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

// birdc gives a command to BIRD in a node.
func (l *igpLab) birdc(node string, command ...string) string {
	l.t.Helper()
	return l.run(node, append([]string{"birdc", "-s", "/run/bird.ctl"}, command...)...)
}

// said is what a router says to FRR's or BIRD's commands.
func (l *igpLab) said(router string, frr, bird []string) string {
	l.t.Helper()
	if !slices.Contains(l.birds, router) {
		return l.vtysh(router, frr...)
	}
	var b strings.Builder
	for _, c := range bird {
		b.WriteString(l.birdc(router, strings.Fields(c)...))
	}
	return b.String()
}

// resolves waits until pb gives an answer for a sender: a proxy, or a reason without one. No router may route
// through a leaf then.
func (l *igpLab) resolves(sender, want string) {
	l.t.Helper()
	l.answers(sender, want)
	l.noTransit()
}

func (l *igpLab) answers(sender, want string) {
	l.t.Helper()
	l.answersAt("pb", sender, want)
}

func (l *igpLab) answersAt(leaf, sender, want string) {
	l.t.Helper()
	c := pncv1.NewCapabilityServiceClient(l.dial(leaf))
	l.eventually(leaf+" resolves "+sender+" to "+want, func() string {
		ctx, cancel := context.WithTimeout(l.ctx, time.Second)
		defer cancel()
		r, err := c.Resolve(ctx, &pncv1.ResolveRequest{Sender: netip.MustParseAddr(sender).String()})
		if err != nil {
			return err.Error()
		}
		if r.GetProxy() == want && want != "" || r.GetReason().String() == want {
			return ""
		}
		seen := ""
		if n := len(l.routers); n > 0 {
			seen = l.said(l.routers[n-1], l.igp.state, l.igp.bird)
		}
		return fmt.Sprintf("%s %s; the last router: %s", r.GetReason(), r.GetProxy(), seen)
	})
}

// kill ends a program of a node as kill -9 does.
func (l *igpLab) kill(node, program string) {
	l.t.Helper()
	for _, p := range l.Programs(node) {
		if strings.Contains(p.Name(), program) {
			l.mu.Lock()
			l.killed[node] = append(l.killed[node], p)
			l.mu.Unlock()
			p.Kill()
			return
		}
	}
	l.t.Fatalf("%s runs no %s", node, program)
}

// hasKilled says whether a program of a node was killed: its daemons may not answer.
func (l *igpLab) hasKilled(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.killed[node]) > 0
}

// reload gives a leaf another configuration.
func (l *igpLab) reload(node, conf string) {
	l.t.Helper()
	l.write(node+".yaml", conf)
	if err := l.Programs(node)[0].Signal(syscall.SIGHUP); err != nil {
		l.t.Fatal(err)
	}
}

// editLeaf changes pa's configuration, and reloads it.
func (l *igpLab) editLeaf(edit func(string) string) {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "pa.yaml"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.reload("pa", edit(string(text)))
}

// changeSender gives pa 10.7.0.0/24 in place of 10.1.0.0/24, by a reload.
func (l *igpLab) changeSender() {
	l.t.Helper()
	l.editLeaf(func(s string) string { return strings.Replace(s, "10.1.0.0/24", "10.7.0.0/24", 1) })
}

// startAgain starts a leaf's pncd, which was killed or stopped, anew.
func (l *igpLab) startAgain(node string) *lab.Process {
	l.t.Helper()
	p, err := l.Start(l.ctx, node, lab.Proc{Name: "again", Argv: []string{pncdBinary(l.t), "--config", "/etc/pncd/pncd.yaml"}})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// igpProxyConf is the configuration of the proxy pa for these sender prefixes, less its section of the protocol.
func igpProxyConf(senders ...string) string {
	var b strings.Builder
	b.WriteString("node: pa\nenabled: true\nproxy:\n  ipv4: " + igpProxy + "\n  taps: [eth1]\n  accept_from: [10.0.0.0/8]\n  senders:\n")
	for _, s := range senders {
		fmt.Fprintf(&b, "    - {prefix: %q, proxy: %s}\n", s, igpProxy)
	}
	return b.String()
}
