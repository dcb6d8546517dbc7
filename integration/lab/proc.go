package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Proc describes a process to start in a node.
type Proc struct {
	Name   string    // names the log; the program's name when empty
	Argv   []string  // program and arguments; looked for on the node's PATH
	Env    []string  // KEY=value, added to the node's
	Stdin  io.Reader // none when nil
	Stdout io.Writer // the log when nil
}

// Process is a process in a node.
type Process struct {
	name, node, log string

	cmd     *exec.Cmd
	start   uint64
	done    chan struct{}
	err     error // valid when done is closed
	stopped atomic.Bool
}

// Name is the process's name, as its log has it.
func (p *Process) Name() string { return p.name }

// Pid is its process identifier on the machine.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is the path of the file that holds what it printed.
func (p *Process) Log() string { return p.log }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the process to end and returns how it did.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Signal sends a signal to the process alone.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// stopPatience is how long a process may take to stop before it is killed.
const stopPatience = 5 * time.Second

// Stop asks the process to stop, kills it when it does not, and waits for its end. It returns how
// the process ended: nil for exit status 0.
func (p *Process) Stop() error {
	p.terminate()
	return p.reap(time.Now().Add(stopPatience))
}

func (p *Process) terminate() {
	p.stopped.Store(true)
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.Pid(), syscall.SIGTERM)
	}
}

// reap waits, kills the process group at the deadline, and waits for that.
func (p *Process) reap(deadline time.Time) error {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
		<-p.done
	}
	return p.err
}

// Kill ends the process at once, as a crash would.
func (p *Process) Kill() {
	p.stopped.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stopAll stops processes, the latest first, all at once.
func stopAll(procs []*Process) {
	for i := len(procs) - 1; i >= 0; i-- {
		procs[i].terminate()
	}
	deadline := time.Now().Add(stopPatience) // for all of them, however many don't listen
	for _, p := range procs {
		_ = p.reap(deadline) // how a process that we stop ends is no error of the lab's
	}
}

// tail is the end of the log, for error messages.
func (p *Process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 600
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return strings.TrimSpace(string(b))
}

// command is argv in the node's namespaces. nsenter execs in place, so the pid is the program's own.
func (l *Lab) command(n *node, argv, env []string) *exec.Cmd {
	args := append([]string{"-t", strconv.Itoa(n.holder.pid), "-m", "-n", "-u", "--"}, argv...)
	cmd := exec.Command("nsenter", args...)
	cmd.Env = l.environ(n, env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (l *Lab) node(name string) (*node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errDown
	}
	n := l.nodes[name]
	if n == nil || n.holder == nil {
		return nil, fmt.Errorf("no node %q", name)
	}
	return n, nil
}

// Exec runs a command in a node and returns what it printed, errors included. The error of a failed
// command has the output's end in it.
func (l *Lab) Exec(ctx context.Context, nodeName string, argv ...string) ([]byte, error) {
	n, err := l.node(nodeName)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return nil, errors.New("exec: the command is empty")
	}
	var out bytes.Buffer
	cmd := l.command(n, argv, nil)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := l.forks.start(cmd, nil); err != nil {
		return nil, fmt.Errorf("node %s: %s: %w", nodeName, argv[0], err)
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
			select {
			case <-ended: // its pid may be another process's by now
			default:
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
		case <-ended:
		}
	})
	err = cmd.Wait()
	close(ended)
	watch.Wait()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		text := strings.TrimSpace(out.String())
		return out.Bytes(), fmt.Errorf("node %s: %s: %w: %s", nodeName, strings.Join(argv, " "), err, text[max(0, len(text)-800):])
	}
	return out.Bytes(), nil
}

// Start starts a process in a node. It is stopped by its Stop, or by the lab's Down.
func (l *Lab) Start(ctx context.Context, nodeName string, pr Proc) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, err := l.node(nodeName)
	if err != nil {
		return nil, err
	}
	if len(pr.Argv) == 0 {
		return nil, errors.New("start: the command is empty")
	}
	p := &Process{name: pr.Name, node: nodeName, done: make(chan struct{})}
	if p.name == "" {
		p.name = filepath.Base(pr.Argv[0])
	}
	p.log = filepath.Join(l.dir, nodeName, p.name+".log")
	logFile, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	p.cmd = l.command(n, pr.Argv, pr.Env)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pr.Stdin, logFile, logFile
	if pr.Stdout != nil {
		p.cmd.Stdout = pr.Stdout
	}
	// A child that keeps the output open must not hold Wait up.
	p.cmd.WaitDelay = time.Second
	err = l.forks.start(p.cmd, func() {
		p.err = p.cmd.Wait()
		close(p.done)
	})
	_ = logFile.Close()
	if err != nil {
		return nil, fmt.Errorf("node %s: start %s: %w", nodeName, pr.Argv[0], err)
	}
	p.start, _ = startTime(p.Pid()) // zero when it has ended already
	l.mu.Lock()
	l.procs = append(l.procs, p)
	l.mu.Unlock()
	if err := l.state.addProcess(p.Pid(), p.start); err != nil {
		_ = p.Stop()
		return nil, err
	}
	l.log.WithFields(map[string]any{"node": nodeName, "process": p.name, "pid": p.Pid()}).Debug("started")
	return p, nil
}

// Programs are the processes of the node's own program, as its image and cmd say.
func (l *Lab) Programs(node string) []*Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.programs[node]
}

// forker starts processes from one thread that lives as long as the lab does: the parent of
// PR_SET_PDEATHSIG is the thread, not the process.
type forker struct {
	work  chan func()
	owned sync.WaitGroup // goroutines that wait for processes
	ended chan struct{}

	mu     sync.Mutex // held while a process is started
	closed bool
}

func newForker() *forker {
	f := &forker{work: make(chan func()), ended: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(f.ended)
		for fn := range f.work {
			fn()
		}
	}()
	return f
}

var errDown = errors.New("the lab is down")

// start starts a process; wait, if any, runs in a goroutine that close waits for.
func (f *forker) start(cmd *exec.Cmd, wait func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errDown
	}
	done := make(chan error, 1)
	f.work <- func() { done <- cmd.Start() }
	err := <-done
	if err == nil && wait != nil {
		f.owned.Go(wait)
	}
	return err
}

// refuse makes every start from now on fail.
func (f *forker) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// close waits for all processes' ends, then ends the thread. It is called once, after refuse.
func (f *forker) close() {
	f.owned.Wait()
	close(f.work)
	<-f.ended
}
