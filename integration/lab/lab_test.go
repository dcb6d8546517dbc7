package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("LAB_TEST_HOLD"); dir != "" {
		holdLab(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

const small = `
name: t-small
topology:
  defaults: {image: debian}
  kinds:
    linux: {env: {COLOUR: red}}
  nodes:
    b-side: {kind: linux, network-mode: "container:b"}
    a:
      kind: linux
      env: {SIZE: 7}
      binds: ["a.conf:/etc/pncd/a.conf:ro", "a.conf:/etc/new-folder/a.conf"]
      exec: ["ip addr add 10.1.0.1/24 dev eth1", "sh -c 'echo \"$COLOUR $SIZE\" >/run/said'"]
      cmd: sh -c 'echo started; sleep 600 & wait'
    b:
      kind: linux
      sysctls: {net.ipv4.ip_default_ttl: "77"}
      exec: ["ip addr add 10.1.0.2/24 dev eth1"]
    sw: {kind: bridge}
  links:
    - {endpoints: ["a:eth1", "sw:p1"], mtu: 4200}
    - endpoints: ["b:eth1", "sw:p2"]
`

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN for namespaces")
	}
}

func writeTopology(t *testing.T, text string) *Topology {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "t.clab.yml")
	for name, body := range map[string]string{path: text, filepath.Join(dir, "a.conf"): "bound\n"} {
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	topo, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func options(t *testing.T) Options {
	return Options{Unique: true, Dir: t.TempDir(), StateDir: t.TempDir()}
}

// assertGone fails when anything of the lab is left: namespaces, processes, the state file.
func assertGone(t *testing.T, lab, stateDir string) {
	t.Helper()
	entries, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "pncd-"+lab+"-") {
			t.Errorf("network namespace %s is left", e.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(stateDir, lab+".json")); err == nil {
		t.Errorf("the state file of %s is left", lab)
	}
	for _, p := range processesOf(lab) {
		t.Errorf("process is left: %s", p)
	}
}

// processesOf finds the processes of a lab: their environment names it.
func processesOf(lab string) []string {
	var found []string
	for _, pid := range allPIDs() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains(string(env), "LAB_NAME="+lab+"\x00") && !isZombie(pid) {
			cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			found = append(found, fmt.Sprintf("%d %q", pid, cmdline))
		}
	}
	return found
}

func holderOf(t *testing.T, stateDir, lab string) int {
	t.Helper()
	s, err := readState(filepath.Join(stateDir, lab+".json"))
	if err != nil || len(s.Holders) == 0 {
		t.Fatalf("state of %s: %v, %+v", lab, err, s)
	}
	return s.Holders[0].PID
}

func up(t *testing.T, topo *Topology, opt Options) *Lab {
	t.Helper()
	l, err := Up(testContext(t), topo, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
		assertGone(t, l.Name, opt.StateDir)
	})
	return l
}

func mustExec(t *testing.T, l *Lab, node string, argv ...string) string {
	t.Helper()
	out, err := l.Exec(testContext(t), node, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestLabRealisesItsFileAndLeavesNothing(t *testing.T) {
	needRoot(t)
	l := up(t, writeTopology(t, small), options(t))

	mustExec(t, l, "a", "ping", "-c1", "-W5", "10.1.0.2")
	for _, c := range []struct {
		name, node string
		argv       []string
		want       string
	}{
		{"env of kind and node", "a", []string{"cat", "/run/said"}, "red 7"},
		{"a bind in an emptied folder", "a", []string{"cat", "/etc/pncd/a.conf"}, "bound"},
		{"a bind under a new folder", "a", []string{"cat", "/etc/new-folder/a.conf"}, "bound"},
		{"sysctl", "b", []string{"cat", "/proc/sys/net/ipv4/ip_default_ttl"}, "77"},
		{"sysctl not elsewhere", "a", []string{"cat", "/proc/sys/net/ipv4/ip_default_ttl"}, "64"},
		{"shared network namespace", "b-side", []string{"ip", "-br", "addr", "show", "eth1"}, "10.1.0.2/24"},
		{"host name", "b-side", []string{"hostname"}, "b-side"},
		{"MTU of the link", "sw", []string{"cat", "/sys/class/net/p1/mtu"}, "4200"},
		{"containerlab's default MTU", "b", []string{"cat", "/sys/class/net/eth1/mtu"}, "9500"},
		{"bridge port", "sw", []string{"ip", "-o", "link", "show", "master", "sw"}, "p2"},
	} {
		if out := mustExec(t, l, c.node, c.argv...); !strings.Contains(out, c.want) {
			t.Errorf("%s: %q does not hold %q", c.name, out, c.want)
		}
	}
	for _, c := range []struct{ name, path string }{
		{"a new folder under /etc", "/etc/new-folder"}, {"a file in /run", "/run/said"},
	} {
		if _, err := os.Stat(c.path); err == nil {
			t.Errorf("%s is seen outside of the node", c.name)
		}
	}
	if _, err := l.Exec(testContext(t), "a", "sh", "-c", "echo no >/etc/pncd/a.conf"); err == nil {
		t.Error("a read-only bind could be written to")
	}
	if ps := l.Programs("a"); len(ps) != 1 || !strings.Contains(ps[0].tail(), "started") {
		t.Errorf("the program of a is not there, or its output is not logged: %v", ps)
	}
}

func TestUpThatFailsHalfWayLeavesNothing(t *testing.T) {
	needRoot(t)
	for _, c := range []struct{ name, from, to, want string }{
		{"exec fails", "ip addr add 10.1.0.2/24 dev eth1", "ip addr add 10.1.0.2/24 dev nosuch", "node b: ip addr add"},
		{"bind source missing", "a.conf:/etc/new-folder/a.conf", "nosuch:/etc/new", "does not exist"},
		{"bind target outside of the private folders", "/etc/new-folder/a.conf", "/no-such-folder/a", "use a path under /etc or /run"},
		{"interface name taken", `"sw:p2"`, `"sw:p1x"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, c.from, c.to, 1)
			opt := options(t)
			topo := writeTopology(t, text)
			l, err := Up(testContext(t), topo, opt)
			if c.want == "" { // the control: the change is harmless and the lab comes up
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Down(); err != nil {
					t.Fatal(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not hold %q", err, c.want)
			}
			assertGone(t, fmt.Sprintf("t-small-%d", os.Getpid()), opt.StateDir)
		})
	}
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	needRoot(t)
	text := strings.Replace(small, `exec: ["ip addr add 10.1.0.2/24 dev eth1"]`, `exec: ["sleep 600"]`, 1)
	ctx, cancel := context.WithCancel(testContext(t))
	opt := options(t)
	said := filepath.Join(opt.StateDir, fmt.Sprintf("t-small-%d", os.Getpid()), "a", "said")
	go func() { // a is done: b sleeps
		for ctx.Err() == nil {
			if _, err := os.Stat(said); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, err := Up(ctx, writeTopology(t, text), opt)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v is not the context's", err)
	}
	assertGone(t, fmt.Sprintf("t-small-%d", os.Getpid()), opt.StateDir)
}

func TestPanicInRunTakesTheLabDown(t *testing.T) {
	needRoot(t)
	opt := options(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = Run(testContext(t), writeTopology(t, small), opt, func(context.Context, *Lab) error { panic("on purpose") })
	}()
	assertGone(t, fmt.Sprintf("t-small-%d", os.Getpid()), opt.StateDir)
}

func TestStopKillsWhatIgnoresItAndDownWhatWasForkedAway(t *testing.T) {
	needRoot(t)
	l := up(t, writeTopology(t, small), options(t))
	ctx := testContext(t)
	// setsid leaves the process group: only the namespace still tells whose it is.
	p, err := l.Start(ctx, "b", Proc{Name: "stray", Argv: []string{"sh", "-c", "setsid sleep 600 & exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.Wait(ctx); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("exit status: %v, want 3", err)
	}
	if _, err := l.Start(ctx, "nosuch", Proc{Argv: []string{"true"}}); err == nil {
		t.Error("a process started in a node that does not exist")
	}
}

func TestStartsBesideDownEndWithIt(t *testing.T) {
	needRoot(t)
	l := up(t, writeTopology(t, small), options(t))
	started := make(chan struct{}, 1)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				if _, err := l.Exec(testContext(t), "a", "true"); err != nil {
					if _, err := l.Start(testContext(t), "a", Proc{Argv: []string{"sleep", "600"}}); !errors.Is(err, errDown) {
						t.Errorf("start in a lab that is down: %v", err)
					}
					return
				}
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	<-started
	var downs sync.WaitGroup
	for range 2 {
		downs.Go(func() {
			if err := l.Down(); err != nil {
				t.Error(err)
			}
			assertGone(t, l.Name, l.opt.StateDir)
		})
	}
	downs.Wait()
	group.Wait()
}

func TestNamespacesOfOthersThatComeMeanwhileAreNoHindrance(t *testing.T) {
	needRoot(t)
	l := up(t, writeTopology(t, small), options(t))
	other := fmt.Sprintf("t-other-%d", os.Getpid())
	for _, argv := range [][]string{{"add", other}, {"exec", l.Namespace("b"), "true"}, {"del", other}} {
		if out, err := exec.Command("ip", append([]string{"netns"}, argv...)...).CombinedOutput(); err != nil {
			t.Errorf("ip netns %v: %v: %s", argv, err, out)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(mounts), " "+filepath.Join(namespaceDir, l.Namespace("b"))+" "); n != 1 {
		t.Errorf("the lab's namespace is mounted %d times; it could not be deleted", n)
	}
}

func TestNamespaceOfAnotherIsNeitherTakenNorDeleted(t *testing.T) {
	needRoot(t)
	opt := options(t)
	topo := writeTopology(t, small)
	name := namespaceName(fmt.Sprintf("t-small-%d", os.Getpid()), "a")
	if err := newNamespace(name); err != nil {
		t.Fatal(err)
	}
	l, err := Up(testContext(t), topo, opt)
	if err == nil {
		t.Error(l.Down(), "the lab took a namespace that was there")
	} else if !strings.Contains(err.Error(), name) {
		t.Errorf("error %v does not name the namespace", err)
	}
	if _, err := os.Stat(filepath.Join(namespaceDir, name)); err != nil {
		t.Errorf("the namespace of another was deleted: %v", err)
	}
	if err := deleteNamespaces([]string{name}); err != nil {
		t.Fatal(err)
	}
	assertGone(t, fmt.Sprintf("t-small-%d", os.Getpid()), opt.StateDir)
}

func TestRecoverRemovesStatesThatWereNotFinished(t *testing.T) {
	dir := t.TempDir()
	live := Ident{PID: os.Getpid()}
	var err error
	if live.Start, err = startTime(live.PID); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]State{
		"live.json": {Lab: "live", Owner: live}, "live.json.tmp": {},
		"dead.json": {Lab: "dead", Owner: Ident{PID: live.PID, Start: 1}}, "dead.json.tmp": {}, "unborn.json.tmp": {},
	} {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	if err := Recover(dir, log); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "live.json" || filepath.Base(left[1]) != "live.json.tmp" {
		t.Errorf("left: %v, %v; want what the live lab is writing", left, err)
	}
}

// holdLab is the test binary's other half: it brings a lab up and waits to be killed.
func holdLab(dir string) {
	topo, err := Load(filepath.Join(dir, "t.clab.yml"))
	if err == nil {
		_, err = Up(context.Background(), topo, Options{Dir: filepath.Join(dir, "lab"), StateDir: filepath.Join(dir, "state")})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("up")
	select {}
}

func TestNextStartRemovesWhatSIGKILLLeft(t *testing.T) {
	needRoot(t)
	topo := writeTopology(t, strings.Replace(small, "t-small", fmt.Sprintf("t-killed-%d", os.Getpid()), 1))
	dir := filepath.Dir(topo.File)
	state := filepath.Join(dir, "state")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "LAB_TEST_HOLD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 300)
	n, _ := out.Read(said)
	if got := strings.TrimSpace(string(said[:n])); got != "up" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the lab did not come up: %s", got)
	}
	if _, err := claim(state, topo.Name, topo.File, nil); err == nil {
		t.Error("a lab's name could be claimed while it is up")
	}
	// A daemon that has changed its user, or has left its session, is not reached by a parent's death signal.
	stray := exec.Command("nsenter", "-t", strconv.Itoa(holderOf(t, state, topo.Name)), "-m", "-n", "--",
		"sh", "-c", "setsid sh -c 'echo started; exec sleep 600' & wait")
	strayOut, err := stray.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stray.Env = append(os.Environ(), "LAB_NAME="+topo.Name)
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = strayOut.Read(make([]byte, 10))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = stray.Wait()
	ctx := testContext(t)
	for len(processesOf(topo.Name)) > 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("processes outlive the runner: %v", processesOf(topo.Name))
		case <-time.After(10 * time.Millisecond):
		}
	}

	left, err := Labs(state)
	if err != nil || len(left) != 1 || left[0].Owner.Alive() {
		t.Fatalf("the killed lab's state should be there: %+v, %v", left, err)
	}
	if left[0].File != topo.File {
		t.Errorf("the state names the topology file %q, want %q", left[0].File, topo.File)
	}
	// Another lab's start removes it.
	other := writeTopology(t, "name: t-other\ntopology: {nodes: {x: {kind: linux, image: debian}}}\n")
	opt := Options{Unique: true, Dir: t.TempDir(), StateDir: state}
	up(t, other, opt)
	assertGone(t, topo.Name, state)
}
