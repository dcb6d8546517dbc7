// Package integration holds the closed-loop and interoperability tests: whole labs with real routers.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pncd/integration/bed"
	"pncd/integration/lab"
)

// leftovers is what a test must not add to: network namespaces, links, lab state, temporary files.
func leftovers() (string, error) {
	var out strings.Builder
	for _, pattern := range []string{
		filepath.Join(os.TempDir(), "pncd-*"), // TestMain's own folder
		filepath.Join(lab.DefaultStateDir, fmt.Sprintf("*-%d*", os.Getpid())),
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, p := range paths {
			if p != built.dir {
				out.WriteString(p + "\n")
			}
		}
	}
	for _, argv := range [][]string{{"ip", "netns", "list"}, {"ip", "-o", "link", "show"}} {
		b, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if argv[1] == "netns" && !strings.Contains(line, fmt.Sprintf("-%d-", os.Getpid())) {
				continue // another process's
			}
			out.WriteString(line + "\n")
		}
	}
	return out.String(), nil
}

func TestMain(m *testing.M) {
	tmp, err := os.MkdirTemp("", "pncd-it-")
	if err == nil {
		err = os.Setenv("TMPDIR", tmp)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	before, err := leftovers()
	if err == nil {
		err = moreBesideEachOther()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	after, err := leftovers()
	if err == nil && before != after {
		err = fmt.Errorf("the tests left something behind; before:\n%s\nafter:\n%s", before, after)
	}
	if err == nil {
		err = childrenLeft()
	}
	err = errors.Join(err, os.RemoveAll(tmp)) // what pncd was built into, too
	if err != nil {
		fmt.Println(err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// moreBesideEachOther lets twice as many labs be up as there are processors, unless -parallel says how many: they use
// a fifth of one each.
func moreBesideEachOther() error {
	flag.Parse()
	f := flag.Lookup("test.parallel")
	if f.Value.String() != f.DefValue {
		return nil
	}
	return f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
}

// childrenLeft finds processes that labs of this process started: their environment names its lab.
func childrenLeft() error {
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	mark := fmt.Sprintf("-%d\x00", os.Getpid())
	for _, p := range paths {
		env, err := os.ReadFile(p)
		if err != nil {
			continue // it has ended, or is another user's
		}
		for _, kv := range strings.SplitAfter(string(env), "\x00") {
			if strings.HasPrefix(kv, "LAB_NAME=") && strings.HasSuffix(kv, mark) {
				cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
				return fmt.Errorf("process %s is left: %q", filepath.Dir(p), cmdline)
			}
		}
	}
	return nil
}

func needLab(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN for namespaces")
	}
}

var built struct {
	once sync.Once
	dir  string
	err  error
}

// pncdBinary builds the daemon once for all tests.
func pncdBinary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "pncd-built-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.dir, "pncd"), "pncd/cmd/pncd")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build pncd: %w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "pncd")
}

// patience bounds the wait for one thing; a whole lab starts within it on a busy machine.
const patience = 30 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// upBed starts the shared lab with edited files, beside other tests' labs.
func upBed(t *testing.T, edit map[string]string) *bed.Bed {
	t.Helper()
	t.Parallel() // see moreBesideEachOther
	return upBedAlone(t, edit)
}

// upBedAlone does so while no other lab is up; when the test fails the daemons' logs are shown.
func upBedAlone(t *testing.T, edit map[string]string) *bed.Bed {
	t.Helper()
	needLab(t)
	pncd := pncdBinary(t) // the first time it is built, which may take longer than a lab
	b, err := bed.Up(testContext(t), bed.Options{Unique: true, Dir: t.TempDir(), Pncd: pncd, Edit: edit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, node := range []string{bed.Proxy, bed.Congestion} {
				if log, err := os.ReadFile(filepath.Join(b.Dir(), node, "pncd.log")); err == nil {
					t.Logf("%s:\n%s", node, log[max(0, len(log)-4000):])
				}
			}
		}
		if err := b.Down(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// edited is a lab file with replacements, each of which must apply.
func edited(t *testing.T, file string, oldNew ...string) map[string]string {
	t.Helper()
	text := bed.File(file)
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			t.Fatalf("%s does not hold %q", file, oldNew[i])
		}
		text = strings.Replace(text, oldNew[i], oldNew[i+1], 1)
	}
	return map[string]string{file: text}
}

// wait waits for a condition of the lab.
func wait(t *testing.T, b *bed.Bed, what string, cond func(ctx context.Context) error) {
	t.Helper()
	if err := b.Wait(testContext(t), patience, cond); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
