package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// Options of a lab; the zero value works.
type Options struct {
	// Unique adds the process's pid to the lab's name, so that labs of parallel tests don't meet.
	Unique bool
	// Dir holds the logs; a new folder under the system's temporary one when empty.
	Dir string
	// RemoveDir removes Dir at Down when it was made by Up.
	RemoveDir bool
	// Temporary are folders of the caller's that Down removes, or the next start when this process is killed.
	Temporary []string
	// Programs maps a program's name, as an image stands for it, to its path: {"pncd": "bin/pncd"}.
	Programs map[string]string
	// Env is added to the environment of every program and command, as KEY=value.
	Env []string
	// StateDir holds the state files, and the nodes' /run meanwhile; DefaultStateDir when empty.
	StateDir string
	// Log gets a line for each step; none when nil.
	Log logrus.FieldLogger
	// NoPrograms leaves the nodes' own programs out; a caller starts what it wants with Start.
	NoPrograms bool
}

// Lab is a topology that is up. Its methods may be called from several goroutines.
type Lab struct {
	Name string // the topology's name, with the pid when it is to be unique
	// Topology as it was given to Up.
	Topology *Topology

	opt   Options
	dir   string
	log   logrus.FieldLogger
	forks *forker
	state *stateFile

	downOnce sync.Once
	downErr  error

	mu        sync.Mutex
	nodes     map[string]*node
	procs     []*Process
	programs  map[string][]*Process
	listeners []*readiness
	down      bool
	madeDir   bool
}

// node is a node that is realised.
type node struct {
	def    *Node
	netns  string // name under /run/netns
	holder *holder
}

// ErrNotRoot is returned when namespaces can't be made.
var ErrNotRoot = errors.New("a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) for namespaces")

// Up realises a topology and starts its programs. When it fails, or ctx ends meanwhile, it takes
// down what it had built and returns the reason. It first removes what dead labs left.
func Up(ctx context.Context, topo *Topology, opt Options) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, ErrNotRoot
	}
	l := &Lab{
		Name: topo.Name, Topology: topo, opt: opt, log: opt.Log,
		nodes: map[string]*node{}, programs: map[string][]*Process{},
	}
	if l.log == nil {
		quiet := logrus.New()
		quiet.SetLevel(logrus.PanicLevel)
		l.log = quiet
	}
	if opt.Unique {
		l.Name = fmt.Sprintf("%s-%d", topo.Name, os.Getpid())
	}
	if err := Recover(opt.StateDir, l.log); err != nil {
		l.log.WithError(err).Warn("what a dead lab left could not be removed")
	}
	var err error
	if l.state, err = claim(opt.StateDir, l.Name, topo.File, namespaceNames(l.Name, topo)); err != nil {
		return nil, err
	}
	l.forks = newForker()
	if err := l.build(ctx); err != nil {
		err = fmt.Errorf("lab %s: %w", l.Name, err)
		if derr := l.Down(); derr != nil {
			err = errors.Join(err, derr)
		}
		return nil, err
	}
	return l, nil
}

// Run brings a lab up, calls fn and takes the lab down whatever happens, a panic in fn included.
func Run(ctx context.Context, topo *Topology, opt Options, fn func(ctx context.Context, l *Lab) error) (err error) {
	l, err := Up(ctx, topo, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	return fn(ctx, l)
}

func (l *Lab) build(ctx context.Context) error {
	if err := l.makeDir(); err != nil {
		return err
	}
	temporary := l.opt.Temporary
	if l.madeDir && l.opt.RemoveDir {
		temporary = append(slices.Clone(temporary), l.dir)
	}
	if err := l.state.setDirs(l.dir, temporary); err != nil {
		return err
	}
	for _, line := range l.Topology.Ignored {
		l.log.Debug(line)
	}
	for _, name := range namespaceNames(l.Name, l.Topology) { // first, for those that share one
		if err := newNamespace(name); err != nil {
			return err
		}
	}
	for _, def := range l.Topology.Nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.addNode(def); err != nil {
			return fmt.Errorf("node %s: %w", def.Name, err)
		}
	}
	for _, link := range l.Topology.Links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.addLink(link); err != nil {
			return fmt.Errorf("link %s - %s: %w", link.A, link.B, err)
		}
	}
	for _, def := range l.Topology.Nodes {
		if err := l.sysctls(ctx, def); err != nil {
			return fmt.Errorf("node %s: %w", def.Name, err)
		}
		for _, line := range def.Exec {
			argv, err := splitWords(line)
			if err != nil {
				return fmt.Errorf("node %s: exec: %w", def.Name, err)
			}
			if _, err := l.Exec(ctx, def.Name, argv...); err != nil {
				return err
			}
		}
	}
	if l.opt.NoPrograms {
		return l.state.markReady()
	}
	for _, def := range l.Topology.Nodes {
		if err := l.startProgram(ctx, def); err != nil {
			return fmt.Errorf("node %s: %w", def.Name, err)
		}
	}
	return l.state.markReady()
}

func (l *Lab) makeDir() error {
	if l.opt.Dir == "" {
		dir, err := os.MkdirTemp("", "pncd-lab-")
		if err != nil {
			return fmt.Errorf("make lab folder: %w", err)
		}
		l.dir, l.madeDir = dir, true
	} else {
		dir, err := filepath.Abs(l.opt.Dir)
		if err != nil {
			return err
		}
		l.dir = dir
	}
	// Daemons that drop their privileges (FRR) must reach their node's /run inside.
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return fmt.Errorf("make lab folder: %w", err)
	}
	return os.Chmod(l.dir, 0o755)
}

// Dir is the folder of logs: <node>/<process>.log.
func (l *Lab) Dir() string { return l.dir }

// RunDir is where the node's /run is seen outside of it, as for its unix sockets, while the lab is up. It is
// not under Dir: a socket's path has at most 107 octets (unix(7)).
func (l *Lab) RunDir(node string) string { return filepath.Join(runRoot(l.opt.StateDir, l.Name), node) }

// Namespace is the name of the node's network namespace as `ip netns` shows it.
func (l *Lab) Namespace(node string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.nodes[node]; n != nil {
		return n.netns
	}
	return ""
}

// WaitFor calls cond until it returns nil, and returns its last error when ctx ends first, or when a
// node's own program has ended. It polls every 20 ms.
func (l *Lab) WaitFor(ctx context.Context, cond func(ctx context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var err error
	for {
		now := cond(ctx)
		if now == nil {
			return nil
		}
		if err == nil || ctx.Err() == nil { // what a condition says when it was cut off tells nothing
			err = now
		}
		if dead := l.deadProgram(); dead != nil {
			return fmt.Errorf("%w (meanwhile %w)", err, dead)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: last seen: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// deadProgram is the error of the first node's program that ended without being asked to.
func (l *Lab) deadProgram() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ps := range l.programs {
		for _, p := range ps {
			if p.stopped.Load() {
				continue
			}
			select {
			case <-p.done:
				return fmt.Errorf("%s of node %s ended: %v; its log ends: %s", p.name, p.node, p.err, p.tail())
			default:
			}
		}
	}
	return nil
}

// Down takes the lab down. It may be called at any time, again, and after a failed Up; each call returns when
// it is down, with the same result.
func (l *Lab) Down() error {
	l.downOnce.Do(func() { l.downErr = l.takeDown() })
	return l.downErr
}

func (l *Lab) takeDown() error {
	l.forks.refuse()
	l.mu.Lock()
	l.down = true
	procs, listeners := l.procs, l.listeners
	nodes := make([]*node, 0, len(l.nodes))
	for _, n := range l.nodes {
		nodes = append(nodes, n)
	}
	l.mu.Unlock()

	var errs []error
	stopAll(procs)
	for _, r := range listeners {
		errs = append(errs, r.close())
	}
	for _, n := range nodes {
		if n.holder != nil {
			errs = append(errs, n.holder.end())
		}
	}
	l.forks.close()
	errs = append(errs, deleteNamespaces(namespaceNames(l.Name, l.Topology)))
	errs = append(errs, os.RemoveAll(runRoot(l.opt.StateDir, l.Name)))
	for _, dir := range l.state.temporary() {
		errs = append(errs, os.RemoveAll(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return err // the state file stays, so that the next start tries again
	}
	return l.state.remove()
}

// namespaceNames are the names of all namespaces that a lab may have.
func namespaceNames(lab string, topo *Topology) []string {
	var names []string
	for _, n := range topo.Nodes {
		if n.NetworkMode == "" {
			names = append(names, namespaceName(lab, n.Name))
		}
	}
	return names
}

func namespaceName(lab, node string) string { return "pncd-" + lab + "-" + node }
