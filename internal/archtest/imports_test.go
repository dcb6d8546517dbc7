package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "pncd"

// pkg is what `go list -json` tells of a package.
type pkg struct {
	ImportPath string
	Imports    []string // without the tests'
	CgoFiles   []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, root)
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,CgoFiles", "./...")
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// readAll looks at every source file, so that `go test` does not take the result from its cache after a
// package that only `go list` reads has changed.
func readAll(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case filepath.Ext(path) == ".go":
			_, err = os.Stat(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // an editor's file that came and went
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// check gives the rules that a package breaks.
func check(p pkg) []string {
	var broken []string
	say := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	path := strings.TrimPrefix(p.ImportPath, module+"/")
	i := slices.IndexFunc(rules, func(r rule) bool { return match(r.pkg, path) })
	if i < 0 {
		say("%s has no rule: say in rules_test.go and docs/architecture.md what it may import", path)
		return broken
	}
	if len(p.CgoFiles) > 0 {
		say("%s uses cgo: the program must build with CGO_ENABLED=0", path)
	}
	for _, imp := range p.Imports {
		own, ours := strings.CutPrefix(imp, module+"/")
		if !ours {
			for _, l := range libraries {
				if match(l.prefix+"/...", imp) && !matchAny(l.by, path) {
					say("%s must not import %s: only %v may", path, imp, l.by)
				}
			}
			if slices.Contains(pure, path) && matchAny(inputOutput, imp) {
				say("%s must not import %s: it has no I/O", path, imp)
			}
			continue
		}
		if !matchAny(rules[i].may, own) {
			say("%s must not import %s: it may import %v", path, own, rules[i].may)
		}
		for _, c := range closed {
			if match(c.pkg, own) && !matchAny(c.may, path) {
				say("%s must not import %s: only %v may", path, own, c.may)
			}
		}
	}
	return broken
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("go list gave %d packages: the test looks at the wrong place", len(packages))
	}
	for _, p := range packages {
		for _, b := range check(p) {
			t.Error(b)
		}
	}
}

func TestCheckFindsEachKindOfViolation(t *testing.T) {
	for _, tt := range []struct {
		name string
		pkg  pkg
		want string // part of the only finding; empty for none
	}{
		{"allowed", pkg{ImportPath: "pncd/bgp", Imports: []string{"fmt", "pncd/pnc", "pncd/bgp/engine"}}, ""},
		{"domain imports anything of ours", pkg{ImportPath: "pncd/pnc", Imports: []string{"pncd/api/pnc/v1"}}, "pnc must not import api/pnc/v1"},
		{"codec imports the domain", pkg{ImportPath: "pncd/bgp/nhc", Imports: []string{"pncd/pnc"}}, "bgp/nhc must not import pnc"},
		{"agent imports the kernel's side", pkg{ImportPath: "pncd/proxyagent/notifier", Imports: []string{"pncd/dataplane/emit"}}, "must not import dataplane/emit"},
		{"kernel's side imports the domain", pkg{ImportPath: "pncd/dataplane/host", Imports: []string{"pncd/pnc"}}, "must not import pnc"},
		{"server imports an agent", pkg{ImportPath: "pncd/api", Imports: []string{"pncd/proxyagent/flowmap"}}, "must not import proxyagent/flowmap"},
		{"GoBGP beside the engine", pkg{ImportPath: "pncd/bgp", Imports: []string{"github.com/osrg/gobgp/v3/pkg/server"}}, "must not import github.com/osrg/gobgp"},
		{"metrics beside telemetry", pkg{ImportPath: "pncd/internal/daemon", Imports: []string{"github.com/prometheus/client_golang/prometheus"}}, "must not import github.com/prometheus"},
		{"daemon from elsewhere", pkg{ImportPath: "pncd/cmd/pncctl", Imports: []string{"pncd/internal/daemon"}}, "must not import internal/daemon"},
		{"test support outside of tests", pkg{ImportPath: "pncd/internal/daemon", Imports: []string{"pncd/api/apitest"}}, "must not import api/apitest"},
		{"I/O in the domain", pkg{ImportPath: "pncd/pnc", Imports: []string{"net"}}, "it has no I/O"},
		{"addresses in the domain", pkg{ImportPath: "pncd/pnc", Imports: []string{"net/netip"}}, ""},
		{"cgo", pkg{ImportPath: "pncd/dataplane/tap", CgoFiles: []string{"ring.go"}}, "uses cgo"},
		{"package without a rule", pkg{ImportPath: "pncd/internal/misc"}, "internal/misc has no rule"},
		{"prefix is not a parent", pkg{ImportPath: "pncd/bgpx", Imports: nil}, "bgpx has no rule"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := check(tt.pkg)
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("check() = %v, want none", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("check() = %v, want one with %q", got, tt.want)
			}
		})
	}
}
