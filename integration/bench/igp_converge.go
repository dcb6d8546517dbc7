package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/lab"
)

const convergeTopology = `name: converge
topology:
  nodes:
    r1:
      kind: linux
      image: frr
      binds: ["r1.conf:/etc/frr/frr.conf", "daemons:/etc/frr/daemons"]
      exec:
        - sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
        - ip addr add 10.9.1.1/24 dev eth1
        - ip addr add 10.9.2.1/24 dev eth2
    r2:
      kind: linux
      image: frr
      binds: ["r2.conf:/etc/frr/frr.conf", "daemons:/etc/frr/daemons"]
      exec:
        - sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
        - ip addr add 10.9.2.2/24 dev eth1
        - ip addr add 10.9.3.2/24 dev eth2
    pa:
      kind: linux
      image: pncd
      binds: ["pa.yaml:/etc/pncd/pncd.yaml"]
      exec:
        - ip addr add 10.9.1.10/24 dev eth1
        - ip addr add 10.255.0.11/32 dev lo
        - ip route add 10.9.3.0/24 via 10.9.1.1
    pb:
      kind: linux
      image: pncd
      binds: ["pb.yaml:/etc/pncd/pncd.yaml"]
      exec:
        - ip addr add 10.9.3.11/24 dev eth1
        - ip route add 10.9.1.0/24 via 10.9.3.2
        - ip route add 10.255.0.11/32 via 10.9.3.2
  links:
    - endpoints: ["pa:eth1", "r1:eth1"]
    - endpoints: ["r1:eth2", "r2:eth1"]
    - endpoints: ["r2:eth2", "pb:eth1"]
`

// ISISConverge measures convergence through two IS-IS routers.
func ISISConverge() ([]Result, error) {
	return convergence(converge{
		name: "isis-converge", daemon: "isisd", note: "; of that 50 ms are the initial wait",
		leaf: func(n int) string {
			return fmt.Sprintf("isis:\n  net: 49.0001.0000.0000.00%d.00\n  circuits:\n    - {interface: eth1, hello: 1s}\n", n)
		},
		link: " ip router isis 1\n isis hello-interval 1\n isis circuit-type level-2-only\n isis network point-to-point\n",
		router: func(n int) string {
			return fmt.Sprintf("router isis 1\n net 49.0001.0000.0000.000%d.00\n is-type level-2-only\n lsp-gen-interval 1\n spf-interval 1\n", n)
		},
	})
}

// OSPFConverge measures convergence through two OSPFv2 routers.
func OSPFConverge() ([]Result, error) {
	return convergence(converge{
		name: "ospf-converge", daemon: "ospfd",
		leaf: func(n int) string {
			return fmt.Sprintf("ospfv2:\n  router_id: 10.255.0.%d\n  links:\n    - {interface: eth1, hello: 1s, dead: 4s}\n", n)
		},
		link: " ip ospf area 0\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n ip ospf network point-to-point\n",
		router: func(n int) string {
			return fmt.Sprintf("router ospf\n ospf router-id 10.255.0.%d\n timers throttle spf 0 50 1000\n capability opaque\n", n)
		},
	})
}

// convergence measures how long it takes from the reload that marks a prefix at one pncd until another one
// resolves it, through two FRR routers. Baseline: the time of a ping over the same path.
func convergence(c converge) ([]Result, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New(c.name + ": needs root for namespaces")
	}
	if _, err := os.Stat("/usr/lib/frr/" + c.daemon); err != nil {
		return nil, fmt.Errorf("%s: FRR is not installed: %w", c.name, err)
	}
	dir, err := os.MkdirTemp("", c.name)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c.dir = dir
	if err := c.write(); err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "pncd")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "pncd/cmd/pncd").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: build pncd: %w\n%s", c.name, err, out)
	}
	topology, err := lab.Parse(filepath.Join(dir, "converge.clab.yml"), []byte(convergeTopology))
	if err != nil {
		return nil, err
	}
	if c.lab, err = lab.Up(ctx, topology, lab.Options{Unique: true, Dir: dir, Programs: map[string]string{"pncd": program}}); err != nil {
		return nil, err
	}
	results, err := c.measure(ctx)
	return results, errors.Join(err, c.lab.Down())
}

// converge is one protocol.
type converge struct {
	name, daemon string
	note         string
	leaf         func(n int) string // pncd's section, of number 10 or 11
	link         string             // an interface of FRR
	router       func(n int) string // FRR's section, of number 1 or 2

	dir string
	lab *lab.Lab
}

func (c *converge) write() error {
	router := func(n int) string {
		text := fmt.Sprintf("hostname r%d\n", n)
		for _, i := range []string{"eth1", "eth2"} {
			text += "interface " + i + "\n" + c.link
		}
		return text + c.router(n)
	}
	var errs []error
	for file, text := range map[string]string{
		"pa.yaml": "node: pa\n" + convergeSenders(0) + c.leaf(10), "pb.yaml": "node: pb\n" + c.leaf(11),
		"r1.conf": router(1), "r2.conf": router(2), "daemons": c.daemon + "=yes\n",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(c.dir, file), []byte(text), 0o644))
	}
	return errors.Join(errs...)
}

// convergeSenders is the proxy's part with sender prefix 10.1.n.0/24.
func convergeSenders(n int) string {
	return fmt.Sprintf("enabled: true\nproxy:\n  ipv4: 10.255.0.11\n  taps: [eth1]\n  accept_from: [10.0.0.0/8]\n  senders: [{prefix: 10.1.%d.0/24, proxy: 10.255.0.11}]\n", n)
}

func (c *converge) measure(ctx context.Context) ([]Result, error) {
	conn, err := grpc.NewClient("unix://"+filepath.Join(c.lab.RunDir("pb"), "pncd", "pncd.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client := pncv1.NewCapabilityServiceClient(conn)
	resolved := func(n int) error {
		for {
			r, err := client.Resolve(ctx, &pncv1.ResolveRequest{Sender: fmt.Sprintf("10.1.%d.2", n)})
			if err == nil && r.GetProxy() != "" {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s: 10.1.%d.2 is not resolved: %w", c.name, n, ctx.Err())
			case <-time.After(time.Millisecond):
			}
		}
	}
	if err := resolved(0); err != nil {
		return nil, err
	}
	const rounds = 7
	var times []float64
	path := filepath.Join(c.dir, "pa.yaml")
	for n := 1; n <= rounds; n++ {
		// Quiet, so that no round waits for the back-off of the one before.
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(11 * time.Second):
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		next := regexp.MustCompile(`10\.1\.\d+\.0/24`).ReplaceAll(text, fmt.Appendf(nil, "10.1.%d.0/24", n))
		if err := os.WriteFile(path, next, 0o644); err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := c.lab.Programs("pa")[0].Signal(syscall.SIGHUP); err != nil {
			return nil, err
		}
		if err := resolved(n); err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(begin).Microseconds())/1000)
	}
	out, err := c.lab.Exec(ctx, "pb", "ping", "-q", "-c", "50", "-i", "0.02", "10.9.1.10")
	if err != nil {
		return nil, fmt.Errorf("%s: ping: %w\n%s", c.name, err, out)
	}
	m := regexp.MustCompile(`= [\d.]+/([\d.]+)/`).FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("%s: ping says %s", c.name, out)
	}
	ping, err := strconv.ParseFloat(string(m[1]), 64)
	return []Result{{Name: c.name, Value: median(times), Unit: "ms", Baseline: ping,
		Note: "from the reload with a new sender prefix until the other end resolves it, through two FRR routers" + c.note + "; baseline: a ping over the path"}}, err
}
