package integration

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/integration/lab"
)

// A node of a BGP lab may run this test binary as a speaker.
func init() { speakertest.Serve() }

// bgpLab is a lab on one segment: node n has the addresses 10.200.0.n and 2001:db8:200::n.
type bgpLab struct {
	*lab.Lab
	t   *testing.T
	ctx context.Context
	v6  bool

	speakers map[string]*lab.Process // the last one that was started in each node
}

// bgpNode is a node of a bgpLab.
type bgpNode struct {
	name  string
	n     int
	image string            // frr, bird, exabgp; empty for a host
	files map[string]string // target to text
	extra []string          // further exec lines
}

// upBGP brings up a lab with the nodes on one segment, and further links.
func upBGP(t *testing.T, name string, v6 bool, nodes []bgpNode, links ...string) *bgpLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN for namespaces")
	}
	t.Parallel() // see moreBesideEachOther
	name = fmt.Sprintf("%s-%d", name, labs.Add(1))
	dir := t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ntopology:\n  nodes:\n    sw: {kind: bridge}\n", name)
	for _, n := range nodes {
		image := n.image
		if image == "" {
			image = "debian"
		}
		fmt.Fprintf(&b, "    %s:\n      kind: linux\n      image: %s\n      exec:\n", n.name, image)
		for _, x := range append([]string{
			fmt.Sprintf("ip addr add 10.200.0.%d/24 dev eth1", n.n),
			fmt.Sprintf("ip addr add 2001:db8:200::%d/64 dev eth1 nodad", n.n),
		}, n.extra...) {
			fmt.Fprintf(&b, "        - %q\n", x)
		}
		if len(n.files) > 0 {
			fmt.Fprintf(&b, "      binds:\n")
		}
		for target, text := range n.files {
			file := n.name + "-" + filepath.Base(target)
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "        - %q\n", file+":"+target)
		}
	}
	fmt.Fprintf(&b, "  links:\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "    - endpoints: [%q, %q]\n", n.name+":eth1", "sw:p"+strconv.Itoa(n.n))
	}
	for _, l := range links {
		fmt.Fprintf(&b, "    - endpoints: [%s]\n", l)
	}
	topo, err := lab.Parse(filepath.Join(dir, name+".clab.yml"), []byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	l, err := lab.Up(ctx, topo, lab.Options{Unique: true, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Errorf("the lab wasn't taken down: %v", err)
		}
	})
	return &bgpLab{Lab: l, t: t, ctx: ctx, v6: v6, speakers: map[string]*lab.Process{}}
}

// at is the address of node n in the lab's family.
func (l *bgpLab) at(n int) netip.Addr { return labAddr(l.v6, n) }

func labAddr(v6 bool, n int) netip.Addr {
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8:200::%d", n))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.200.0.%d", n))
}

// speaker starts a speaker in a node.
func (l *bgpLab) speaker(node string, cfg bgp.Config) *speakertest.Process {
	l.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	return speakertest.Start(l.t, cfg, func(env string, stdin, stdout *os.File, stderr io.Writer) (func(), error) {
		// The lab collects standard error in its log; the shell hands it over to us as well.
		log := filepath.Join(l.t.TempDir(), node+".log")
		p, err := l.Start(l.ctx, node, lab.Proc{
			Name: "speaker", Argv: []string{"sh", "-c", `exec "$0" 2>"$1"`, exe, log}, Env: []string{env}, Stdin: stdin, Stdout: stdout,
		})
		if err != nil {
			return nil, err
		}
		l.speakers[node] = p
		return func() {
			ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
			defer cancel()
			if p.Wait(ctx) != nil {
				p.Kill()
			}
			if text, err := os.ReadFile(log); err == nil {
				stderr.Write(text)
			}
		}, nil
	})
}

// config is a configuration for the speaker in node n of AS 65000.
func (l *bgpLab) config(n int, neighbors ...bgp.NeighborConfig) bgp.Config {
	family := bgp.IPv4Unicast
	if l.v6 {
		family = bgp.IPv6Unicast
	}
	cfg := bgp.Config{RouterID: netip.MustParseAddr(fmt.Sprintf("10.200.0.%d", n)), AS: 65000}
	for _, nb := range neighbors {
		if nb.PeerAS == 0 {
			nb.PeerAS = 65000
		}
		nb.Families, nb.ConnectRetry = []bgp.Family{family}, time.Second
		cfg.Neighbors = append(cfg.Neighbors, nb)
	}
	return cfg
}

// run runs a command in a node, and fails the test when it fails.
func (l *bgpLab) run(node string, argv ...string) string {
	l.t.Helper()
	out, err := l.Exec(l.ctx, node, argv...)
	if err != nil {
		l.t.Fatalf("%s: %v: %v\n%s", node, argv, err, out)
	}
	return string(out)
}

// vtysh gives commands to FRR in a node.
func (l *bgpLab) vtysh(node string, commands ...string) string {
	l.t.Helper()
	argv := []string{"vtysh"}
	for _, c := range commands {
		argv = append(argv, "-c", c)
	}
	return l.run(node, argv...)
}

// eventually waits until the function finds nothing wrong any more.
func (l *bgpLab) eventually(what string, wrong func() string) {
	l.t.Helper()
	var last string
	for end := time.Now().Add(speakertest.Deadline); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if last = wrong(); last == "" {
			return
		}
	}
	l.t.Fatalf("waited in vain for: %s: %s", what, last)
}

func needPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("%s is not installed", n)
		}
	}
}

func needFRR(t *testing.T, daemons ...string) {
	t.Helper()
	for _, d := range daemons {
		if _, err := os.Stat("/usr/lib/frr/" + d); err != nil {
			t.Skip("frr is not installed")
		}
	}
}

// frrNHC gives the line that makes FRR 10.4 and newer pass NHC on; older ones do by themselves, and
// don't know the line. It belongs to the session, not to an address family.
func frrNHC(t *testing.T, neighbor string) string {
	t.Helper()
	out, err := exec.Command("/usr/lib/frr/bgpd", "--version").CombinedOutput()
	m := regexp.MustCompile(`version (\d+)\.(\d+)`).FindStringSubmatch(string(out))
	if err != nil || m == nil {
		t.Fatalf("version of FRR: %v: %s", err, out)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if major < 10 || major == 10 && minor < 4 {
		return ""
	}
	return " neighbor " + neighbor + " send-nexthop-characteristics\n"
}
