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

// ISISConverge measures how long it takes from the reload that marks a prefix at one pncd until another one
// resolves it, through two FRR routers. Baseline: the time of a ping over the same path.
func ISISConverge() ([]Result, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("isis-converge: needs root for namespaces")
	}
	if _, err := os.Stat("/usr/lib/frr/isisd"); err != nil {
		return nil, fmt.Errorf("isis-converge: FRR is not installed: %w", err)
	}
	dir, err := os.MkdirTemp("", "isis-converge")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c := &converge{dir: dir}
	if err := c.write(); err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "pncd")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "pncd/cmd/pncd").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("isis-converge: build pncd: %w\n%s", err, out)
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

type converge struct {
	dir string
	lab *lab.Lab
}

func (c *converge) write() error {
	leaf := func(node, system, more string) string {
		return fmt.Sprintf("node: %s\n%sisis:\n  net: 49.0001.0000.0000.%s.00\n  circuits:\n    - {interface: eth1, hello: 1s}\n", node, more, system)
	}
	router := func(n int) string {
		text := fmt.Sprintf("hostname r%d\n", n)
		for _, i := range []string{"eth1", "eth2"} {
			text += "interface " + i + "\n ip router isis 1\n isis hello-interval 1\n isis circuit-type level-2-only\n isis network point-to-point\n"
		}
		return text + fmt.Sprintf("router isis 1\n net 49.0001.0000.0000.000%d.00\n is-type level-2-only\n lsp-gen-interval 1\n spf-interval 1\n", n)
	}
	var errs []error
	for file, text := range map[string]string{
		"pa.yaml": leaf("pa", "0010", convergeSenders(0)), "pb.yaml": leaf("pb", "0011", ""),
		"r1.conf": router(1), "r2.conf": router(2), "daemons": "isisd=yes\n",
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
				return fmt.Errorf("isis-converge: 10.1.%d.2 is not resolved: %w", n, ctx.Err())
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
		return nil, fmt.Errorf("isis-converge: ping: %w\n%s", err, out)
	}
	m := regexp.MustCompile(`= [\d.]+/([\d.]+)/`).FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("isis-converge: ping says %s", out)
	}
	ping, err := strconv.ParseFloat(string(m[1]), 64)
	return []Result{{Name: "isis-converge", Value: median(times), Unit: "ms", Baseline: ping,
		Note: "from the reload with a new sender prefix until the other end resolves it, through two FRR routers; of that 50 ms are the initial wait; baseline: a ping over the path"}}, err
}
