package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pack runs dist.sh with stand-ins for the binaries and returns the tarball's octets.
func pack(t *testing.T, umask string) []byte {
	t.Helper()
	bin, out := t.TempDir(), t.TempDir()
	for _, name := range []string{"pncd", "pncctl", "pnclab"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "-c", "umask "+umask+` && exec ./dist.sh v0 "$1" "$2"`, "bash", bin, out)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("dist.sh: %v: %s", err, errs.String())
	}
	data, err := os.ReadFile(strings.TrimSpace(string(said)))
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(out); len(left) != 1 {
		t.Errorf("left beside the tarball: %v", left)
	}
	return data
}

// unpack reads the files by their path under the one folder at the top.
func unpack(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || fs.FileMode(h.Mode)&0o022 != 0 {
			t.Errorf("%s: owner %d:%d %q, mode %o", h.Name, h.Uid, h.Gid, h.Uname, h.Mode)
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(name, "/")] = string(body)
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	bind     = regexp.MustCompile(`(?m)^ +- ([\w.]+):/etc/`)
	document = regexp.MustCompile(`(?m)^Documentation=file://(/\S+)$`)
)

func TestTarballIsReproducibleAndHoldsWhatItsPagesName(t *testing.T) {
	data := pack(t, "022")
	if !bytes.Equal(data, pack(t, "077")) {
		t.Error("two runs give different octets")
	}
	files := unpack(t, data)
	for name, text := range files {
		if !strings.HasSuffix(name, ".md") || strings.HasPrefix(name, "licenses/") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, ok := files[path.Join(path.Dir(name), m[1])]; !ok {
				t.Errorf("%s links to %s, which is missing", name, m[1])
			}
		}
	}
	topology := files["integration/bed/path.clab.yml"]
	binds := bind.FindAllStringSubmatch(topology, -1)
	if len(binds) == 0 {
		t.Error("no topology, or one without binds")
	}
	for _, m := range binds {
		if files["integration/bed/"+m[1]] == "" {
			t.Errorf("the topology binds %s, which is missing", m[1])
		}
	}
	for _, name := range []string{"bin/pncd", "bin/pncctl", "bin/pnclab", "LICENSE", "deploy/pncd.yaml", "licenses/go/LICENSE",
		"licenses/github.com/osrg/gobgp/v3/LICENSE", "licenses/google.golang.org/grpc/NOTICE.txt", "licenses/github.com/coreos/go-systemd/v22/NOTICE"} {
		if files[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	for name := range files {
		if strings.HasSuffix(name, ".go") {
			t.Errorf("%s is source code", name)
		}
	}
}

func TestUnitNamesADocumentThatTheInstallationPutsThere(t *testing.T) {
	unit, err := os.ReadFile("pncd.service")
	if err != nil {
		t.Fatal(err)
	}
	m := document.FindSubmatch(unit)
	if m == nil {
		t.Fatal("the unit has no Documentation=")
	}
	const installed = "/usr/local/share/doc/pncd/"
	name, ok := strings.CutPrefix(string(m[1]), installed)
	if _, err := os.Stat(filepath.Join("..", name)); err != nil || !ok {
		t.Errorf("Documentation=%s is not under %s, or not in the repository: %v", m[1], installed, err)
	}
	steps, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if top, _, _ := strings.Cut(name, "/"); !regexp.MustCompile(`cp -r .*\b` + top + `\b.* ` + installed).Match(steps) {
		t.Errorf("docs/configuration.md does not install %s", m[1])
	}
}
