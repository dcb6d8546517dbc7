package kernel

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestObjectsAreOfTheSource needs no clang: `go generate` writes down of which source the objects are.
func TestObjectsAreOfTheSource(t *testing.T) {
	source, err := os.ReadFile("learn.c")
	if err != nil {
		t.Fatal(err)
	}
	sum, _ := recorded(t)
	if got := fmt.Sprintf("%x", sha256.Sum256(source)); got != sum {
		t.Errorf("learn.c is %s, the objects are of %s: run go generate ./dataplane/tap/kernel", got, sum)
	}
}

// recorded returns what learn.sum says: the SHA-256 of the source, and the compiler's version.
func recorded(t *testing.T) (sum, clang string) {
	t.Helper()
	b, err := os.ReadFile("learn.sum")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	return strings.Fields(lines[0])[0], lines[1]
}

// Another clang makes other objects of the same source, so this compares only where the same one is there.
func TestObjectsAreWhatClangMakes(t *testing.T) {
	_, version := recorded(t)
	out, err := exec.Command("clang", "--version").Output()
	if have, _, _ := strings.Cut(string(out), "\n"); err != nil || have != version {
		t.Skipf("needs %s to compare; there is %q (%v)", version, have, err)
	}
	command := ""
	source, err := os.ReadFile("generate.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(source)) {
		if c, ok := strings.CutPrefix(line, "//go:generate go "); ok {
			command = c
		}
	}
	dir := t.TempDir()
	args := strings.Fields(strings.Replace(command, "bpf2go ", "bpf2go -output-dir "+dir+" ", 1))
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOPACKAGE=kernel", "GOFILE=generate.go")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(made) != 4 {
		t.Fatalf("made %v, %v; want two objects with their Go files", made, err)
	}
	for _, f := range made {
		want, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if have, err := os.ReadFile(filepath.Base(f)); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what clang makes of learn.c (%v): run go generate ./dataplane/tap/kernel", filepath.Base(f), err)
		}
	}
}
