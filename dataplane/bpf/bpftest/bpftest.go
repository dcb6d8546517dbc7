// Package bpftest holds the committed eBPF objects to their sources. Only tests use it.
package bpftest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Objects are those of NAME.c in the package under test. It needs no clang: NAME.sum says of which sources they
// are.
func Objects(t *testing.T, name string) {
	t.Helper()
	recorded, _ := sum(t, name)
	headers, err := filepath.Glob(filepath.Join(shared(t), "*.h"))
	if err != nil || len(headers) == 0 {
		t.Fatalf("no headers: %v", err)
	}
	own, err := filepath.Glob("*.h")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range slices.Concat([]string{name + ".c"}, own, headers) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, fmt.Sprintf("%x  %s", sha256.Sum256(b), filepath.Base(f)))
	}
	if got := strings.Join(have, "\n"); got != recorded {
		t.Errorf("the sources are\n%s\nthe objects are of\n%s\nrun go generate ./dataplane/...", got, recorded)
	}
}

// Compiled makes the objects of NAME.c anew, with the command of the package's generate.go, and compares. Another clang
// makes other objects of the same source, so the test is skipped where it is not the same one.
func Compiled(t *testing.T, name string) {
	t.Helper()
	_, version := sum(t, name)
	out, err := exec.Command("clang", "--version").Output()
	if have, _, _ := strings.Cut(string(out), "\n"); err != nil || have != version {
		t.Skipf("needs %s to compare; there is %q (%v)", version, have, err)
	}
	source, err := os.ReadFile("generate.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for line := range strings.Lines(string(source)) {
		args := strings.Fields(strings.TrimPrefix(line, "//go:generate "))
		if len(args) < 3 || args[0] != "sh" || args[2] != name {
			continue
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "GOPACKAGE="+packageOf(source), "GOFILE=generate.go", "OUTPUT="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(made) != 5 {
		t.Fatalf("made %v, %v; want two objects with their Go files, and the sum", made, err)
	}
	for _, f := range made {
		want, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if have, err := os.ReadFile(filepath.Base(f)); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what clang makes of %s.c (%v): run go generate ./dataplane/...", filepath.Base(f), name, err)
		}
	}
}

func packageOf(source []byte) string {
	for line := range strings.Lines(string(source)) {
		if name, ok := strings.CutPrefix(line, "package "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// sum returns what NAME.sum says: a SHA-256 for each source, and the compiler's version.
func sum(t *testing.T, name string) (sources, clang string) {
	t.Helper()
	b, err := os.ReadFile(name + ".sum")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(b))
	at := strings.LastIndex(text, "\n")
	if at < 0 {
		t.Fatalf("%s.sum: %q", name, text)
	}
	return text[:at], text[at+1:]
}

// shared returns the directory of the headers: dataplane/bpf of the module that the test runs in.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "dataplane", "bpf")
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		break
	}
	t.Fatalf("no module around the test (%v)", err)
	return ""
}
