package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be pnclab, also where pnclab starts itself.
func TestMain(m *testing.M) {
	if os.Getenv("PNCLAB_TEST_RUN") != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// labTest is a lab of its own name and a folder for temporary files.
type labTest struct {
	t               *testing.T
	name, file, tmp string
}

func newLabTest(t *testing.T, exec string) *labTest {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN for namespaces")
	}
	l := &labTest{t: t, name: fmt.Sprintf("t-cmd-%d", os.Getpid()), tmp: t.TempDir()}
	l.file = filepath.Join(t.TempDir(), "t.clab.yml")
	text := fmt.Sprintf("name: %s\ntopology: {nodes: {a: {kind: linux, image: debian, exec: [%q]}}}\n", l.name, exec)
	if err := os.WriteFile(l.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, ok, _ := find(l.name); ok {
			t.Error("the lab is left")
			_, _ = l.command(context.Background(), "lab", "down", l.name).CombinedOutput()
		}
		if left, _ := filepath.Glob("/run/netns/pncd-" + l.name + "-*"); len(left) > 0 {
			t.Errorf("namespaces are left: %v", left)
		}
		if left, _ := os.ReadDir(l.tmp); len(left) > 0 {
			t.Errorf("temporary files are left: %v", left)
		}
	})
	return l
}

func (l *labTest) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "PNCLAB_TEST_RUN=1", "TMPDIR="+l.tmp)
	cmd.Dir = filepath.Dir(l.file)
	return cmd
}

func (l *labTest) run(args ...string) (string, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := l.command(ctx, args...).CombinedOutput()
	return string(out), err
}

func (l *labTest) mustRun(args ...string) string {
	l.t.Helper()
	out, err := l.run(args...)
	if err != nil {
		l.t.Errorf("%v: %v: %s", args, err, out)
	}
	return out
}

func TestLabIsInspectedByItsNameAndGoesWithItsTemporaryFolder(t *testing.T) {
	l := newLabTest(t, "true")
	// A folder of the lab's name is not the topology.
	if err := os.Mkdir(filepath.Join(filepath.Dir(l.file), l.name), 0o700); err != nil {
		t.Fatal(err)
	}
	l.mustRun("lab", "up", l.file)
	if logs, _ := filepath.Glob(filepath.Join(l.tmp, "pncd-lab-*", "lab.log")); len(logs) != 1 {
		t.Errorf("logs: %v, want one in a temporary folder", logs)
	}
	out := l.mustRun("lab", "inspect", l.name)
	for _, want := range []string{"lab " + l.name + " is up: pid ", l.file, "pncd-" + l.name + "-a"} {
		if !strings.Contains(out, want) {
			t.Errorf("inspect says %q, want %q in it", out, want)
		}
	}
	if out := l.mustRun("lab", "inspect", l.name, "--json"); !strings.HasPrefix(out, "{") {
		t.Errorf("inspect --json says %q", out)
	}
	if out, err := l.run("lab", "up", l.file); err == nil || !strings.Contains(out, "pnclab lab down "+l.name) {
		t.Errorf("a second start: %v, %q; want it refused, and how to take the first down", err, out)
	}
	l.mustRun("lab", "down", l.name)
	if left, _ := os.ReadDir(l.tmp); len(left) > 0 {
		t.Errorf("down leaves %v", left)
	}
}

func TestFolderOfLogsThatWasNamedIsKept(t *testing.T) {
	l := newLabTest(t, "true")
	dir := filepath.Join(t.TempDir(), "logs")
	l.mustRun("lab", "up", "--dir", dir, l.file)
	l.mustRun("lab", "down", l.file)
	if _, err := os.Stat(filepath.Join(dir, "lab.log")); err != nil {
		t.Error(err)
	}
}

func TestLabThatDoesNotComeUpSaysWhyAndLeavesNothing(t *testing.T) {
	l := newLabTest(t, "ls /no-such-file-of-the-test")
	out, err := l.run("lab", "up", l.file)
	if err == nil || !strings.Contains(out, "no-such-file-of-the-test") {
		t.Errorf("%v, %q, want what the command said", err, out)
	}
}

// As in `pnclab lab run FILE | head`, which ends before the lab is up, or reads a line of it.
func TestClosedPipeTakesTheLabDown(t *testing.T) {
	for name, line := range map[string]bool{"before a line": false, "after a line": true} {
		t.Run(name, func(t *testing.T) {
			l := newLabTest(t, "true")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if !line {
				_ = r.Close()
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			cmd := l.command(ctx, "lab", "run", l.file)
			var errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &errs
			err = cmd.Start()
			_ = w.Close()
			if err != nil {
				t.Fatal(err)
			}
			if line {
				if said, err := bufio.NewReader(r).ReadString('\n'); err != nil || !strings.Contains(said, "is up") {
					t.Errorf("said %q, %v", said, err)
				}
				_ = r.Close()
			}
			err = cmd.Wait()
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signaled() {
				t.Errorf("%v: a signal ended it (%s)", err, errs.String())
			}
		})
	}
}
