package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// holder keeps a node's mount and UTS namespaces alive; its end takes the private mounts along.
type holder struct {
	cmd   *exec.Cmd
	stdin interface{ Close() error }
	pid   int
	start uint64
	mntns string // as /proc/<pid>/ns/mnt links to
	// pin keeps the mount namespace until end is through: its inode number would be given to another at once,
	// and end would kill who is in that one.
	pin *os.File
}

// privateDirs are empty in every node, so that a program never reads the machine's own configuration.
var privateDirs = []string{"/etc/frr", "/etc/bird", "/etc/exabgp", "/etc/pncd"}

// holderScript makes the node's private view. $1 is the node's folder, $2 its /run, $3 its name; source,
// target and mode of each bind follow. When its standard input ends, as it does with the runner, it kills what
// is in the node: PR_SET_PDEATHSIG does not reach a daemon that has changed its user, as FRR's do.
const holderScript = `set -e
dir=$1 run=$2 name=$3; shift 3
hostname "$name"
umount -l -R /run/netns 2>/dev/null || true
umount -l -R /sys 2>/dev/null || true
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null || true
mount -t bpf -o mode=700 bpf /sys/fs/bpf 2>/dev/null || true # what is pinned goes with the node
mount -t tmpfs -o mode=755 etc "$dir/etc"
mkdir "$dir/etc/upper" "$dir/etc/work"
if ! mount -t overlay overlay -o "lowerdir=/etc,upperdir=$dir/etc/upper,workdir=$dir/etc/work" /etc 2>/dev/null; then
  cp -a /etc "$dir/etc/copy"
  mount --bind "$dir/etc/copy" /etc
fi
mount --bind "$run" /run
mkdir -p /run/frr /run/lock /run/pncd # as tmpfiles.d and RuntimeDirectory= do
if id frr >/dev/null 2>&1; then chown frr:frr /run/frr; fi
for d in ` + "PRIVATE" + `; do
  mkdir -p "$d"; mount -t tmpfs -o mode=755 etc "$d"
done
echo service integrated-vtysh-config >/etc/frr/vtysh.conf
while [ $# -ge 3 ]; do
  src=$1 dst=$2 opt=$3; shift 3
  if [ ! -e "$src" ]; then echo "bind source $src does not exist" >&2; exit 1; fi
  if [ ! -e "$dst" ]; then
    case "$dst" in
    /etc/*|/run/*) ;;
    *) echo "bind target $dst does not exist on this machine; use a path under /etc or /run" >&2; exit 1 ;;
    esac
    if [ -d "$src" ]; then mkdir -p "$dst"; else mkdir -p "$(dirname "$dst")"; : > "$dst"; fi
  fi
  mount --bind "$src" "$dst"
  if [ "$opt" = ro ]; then mount -o remount,bind,ro "$dst"; fi
done
ns=/proc/$$/ns/mnt
test -e "$ns"
test ! "$ns" -ef /proc/$PPID/ns/mnt
echo ready
set +e
cat >/dev/null
for round in 1 2 3; do # with what the shell itself has: the machine may be busy, and full of processes
  for p in /proc/[0-9]*; do
    pid=${p#/proc/}
    if [ "$p/ns/mnt" -ef "$ns" ] && [ "$pid" != $$ ]; then kill -9 "$pid" 2>/dev/null; fi
  done
done
`

// addNode makes what a node has beside its network namespace; for a bridge, the bridge in it.
func (l *Lab) addNode(def *Node) error {
	n := &node{def: def, netns: namespaceName(l.Name, def.Name)}
	if def.NetworkMode != "" {
		n.netns = namespaceName(l.Name, def.NetworkMode)
	}
	l.mu.Lock()
	l.nodes[def.Name] = n
	l.mu.Unlock()
	for _, path := range []string{l.RunDir(def.Name), filepath.Join(l.dir, def.Name, "etc")} {
		// A killed lab of the same name may have left sockets and pid files.
		if err := errors.Join(os.RemoveAll(path), os.MkdirAll(path, 0o755)); err != nil {
			return err
		}
	}
	h, err := l.startHolder(n)
	if err != nil {
		return err
	}
	l.mu.Lock()
	n.holder = h
	l.mu.Unlock()
	if err := l.state.addHolder(h); err != nil {
		return err
	}
	if def.Kind == kindBridge {
		return addBridge(n)
	}
	return nil
}

func (l *Lab) startHolder(n *node) (*holder, error) {
	script := strings.ReplaceAll(holderScript, "PRIVATE", strings.Join(privateDirs, " "))
	args := []string{
		"--net=" + filepath.Join(namespaceDir, n.netns), "--",
		"unshare", "--mount", "--uts", "--propagation", "private", "--",
		"sh", "-c", script, "sh", filepath.Join(l.dir, n.def.Name), l.RunDir(n.def.Name), n.def.Name,
	}
	for _, b := range n.def.Binds {
		mode := "rw"
		if b.ReadOnly {
			mode = "ro"
		}
		args = append(args, b.Source, b.Target, mode)
	}
	cmd := exec.Command("nsenter", args...)
	cmd.Env = l.environ(n, nil)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	if err := l.forks.start(cmd, nil); err != nil {
		return nil, fmt.Errorf("start the node's namespaces: %w", err)
	}
	line, rerr := bufio.NewReader(stdout).ReadString('\n')
	if strings.TrimSpace(line) != "ready" {
		_ = stdin.Close()
		werr := cmd.Wait()
		return nil, fmt.Errorf("make the node's private mounts: %w: %s", errors.Join(werr, rerr), strings.TrimSpace(stderr.String()))
	}
	h := &holder{cmd: cmd, stdin: stdin, pid: cmd.Process.Pid}
	if h.start, err = startTime(h.pid); err == nil {
		h.mntns, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", h.pid))
	}
	if err == nil {
		h.pin, err = os.Open(fmt.Sprintf("/proc/%d/ns/mnt", h.pid))
	}
	if err != nil {
		return nil, errors.Join(err, h.end())
	}
	return h, nil
}

// end kills the holder, then everything else in the node's mount namespace. The holder goes first: its script
// must not run while its own children are being killed.
func (h *holder) end() error {
	_ = h.cmd.Process.Kill()
	_ = h.stdin.Close()
	_ = h.cmd.Wait() // killed: its status says nothing
	if h.pin == nil {
		return nil // it died before anything could be started in its namespace
	}
	defer h.pin.Close()
	return killInMountNamespace(h.mntns)
}

// killInMountNamespace ends the processes whose mount namespace is mntns. Only programs that the lab started,
// and their children, are in it.
func killInMountNamespace(mntns string) error {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return fmt.Errorf("read the own mount namespace: %w", err)
	}
	if mntns == "" || mntns == own {
		return nil // the node has none of its own yet
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		left := inMountNamespace(mntns)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of a node don't end", left)
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func inMountNamespace(mntns string) []int {
	var pids []int
	for _, pid := range allPIDs() {
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err == nil && ns == mntns && !isZombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// newNamespace makes a named network namespace with its loopback up.
func newNamespace(name string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := netns.Get()
	if err != nil {
		return fmt.Errorf("open the own network namespace: %w", err)
	}
	defer func() { _ = before.Close() }()
	ns, err := netns.NewNamed(name)
	if serr := netns.Set(before); serr != nil {
		// The thread is in the wrong namespace: it must not serve other goroutines.
		runtime.LockOSThread()
		return fmt.Errorf("return to the own network namespace: %w", serr)
	}
	if err != nil {
		return fmt.Errorf("make network namespace %s: %w", name, err)
	}
	defer func() { _ = ns.Close() }()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("netlink in %s: %w", name, err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo up in %s: %w", name, err)
	}
	return nil
}

// namespaceDir is where named network namespaces are (ip-netns(8)).
const namespaceDir = "/run/netns"

// shareNamespaceDir makes namespaceDir a shared mount point, as the first `ip netns add` does (ip-netns(8)).
// One that did so later, while a lab is up, would mount the folder over itself: the names below would then be
// mounted twice, and could not be deleted. The mount stays, as that of `ip netns`. The caller has the lock.
func shareNamespaceDir() error {
	if err := os.MkdirAll(namespaceDir, 0o755); err != nil {
		return fmt.Errorf("make the folder of network namespaces: %w", err)
	}
	err := syscall.Mount("", namespaceDir, "none", syscall.MS_SHARED|syscall.MS_REC, "")
	if errors.Is(err, syscall.EINVAL) { // no mount point yet
		if err = syscall.Mount(namespaceDir, namespaceDir, "none", syscall.MS_BIND|syscall.MS_REC, ""); err == nil {
			err = syscall.Mount("", namespaceDir, "none", syscall.MS_SHARED|syscall.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("make %s a shared mount point: %w", namespaceDir, err)
	}
	return nil
}

// deleteNamespaces removes named network namespaces; one that does not exist is no error.
func deleteNamespaces(names []string) error {
	var errs []error
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(namespaceDir, name)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := netns.DeleteNamed(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			// A file that is no mount point is what an interrupted creation leaves.
			if !errors.Is(err, syscall.EINVAL) {
				errs = append(errs, fmt.Errorf("delete network namespace %s: %w", name, err))
				continue
			}
			if err := os.Remove(filepath.Join(namespaceDir, name)); err != nil {
				errs = append(errs, fmt.Errorf("delete network namespace %s: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// environ is the environment of a node's programs.
func (l *Lab) environ(n *node, more []string) []string {
	env := []string{"PATH=" + searchPath, "HOME=/root", "LANG=C.UTF-8", "LAB_NODE=" + n.def.Name, "LAB_NAME=" + l.Name}
	env = append(env, l.opt.Env...)
	keys := make([]string, 0, len(n.def.Env))
	for k := range n.def.Env {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		env = append(env, k+"="+n.def.Env[k])
	}
	return append(env, more...)
}

func (l *Lab) sysctls(ctx context.Context, def *Node) error {
	keys := make([]string, 0, len(def.Sysctls))
	for k := range def.Sysctls {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		// As sysctl(8): dots part the path; a slash stands for a dot in an interface's name.
		path := "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(k)
		if _, err := l.Exec(ctx, def.Name, "sh", "-c", `printf %s "$2" >"$1"`, "sh", path, def.Sysctls[k]); err != nil {
			return fmt.Errorf("sysctls: %s: %w", k, err)
		}
	}
	return nil
}
