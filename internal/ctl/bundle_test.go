package ctl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pncd/api"
	"pncd/api/apitest"
)

func readBundle(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "pncd-support/")] = string(body)
	}
}

func TestBundleHoldsEverythingAndNoSecrets(t *testing.T) {
	tele := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			io.WriteString(w, "pncd_enabled 1\n")
		case "/readyz":
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		case "/debug/pprof/goroutine":
			io.WriteString(w, "goroutine 1 [running]:\n")
		}
	}))
	defer tele.Close()
	b, env := sample(t)
	b.Node.SetConfig("node: pe1\ntelemetry:\n  listen: " + strings.TrimPrefix(tele.URL, "http://") +
		"\nbgp:\n  neighbors:\n    - address: 192.0.2.251\n      password: hunter2\n    - {address: 192.0.2.252, password: 'hunter3', passive: true}\n")
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	status, out, errs := pncctl(t, env, "support-bundle", "-o", file)
	if status != 0 || errs != "" || !strings.HasPrefix(out, file+": ") {
		t.Fatalf("exit status %d, %q, %q", status, out, errs)
	}
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, want 0600", st.Mode().Perm())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := readBundle(t, data)
	want := []string{
		"capabilities.json", "config.yaml", "counters.json", "flows.json", "goroutines.txt", "host-changes.json", "metrics.txt", "neighbors.json",
		"readyz.txt", "records.json", "rejected.json", "status.json", "version.json",
	}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("files = %v\nwant    %v", got, want)
	}
	for name, text := range map[string]string{
		"status.json": `"node": "pe1"`, "neighbors.json": "192.0.2.251", "capabilities.json": "203.0.113.0/25", "rejected.json": "NEXT_HOP_MISMATCH",
		"flows.json": `"source_qp": 311`, "records.json": "OUTCOME_PROXY_MALFORMED", "counters.json": "map-miss", "version.json": "v1.2.3",
		"goroutines.txt": "goroutine 1", "metrics.txt": "pncd_enabled 1", "readyz.txt": "not ready",
		"config.yaml": "password: (secret), passive: true",
	} {
		if !strings.Contains(files[name], text) {
			t.Errorf("%s = %.200q, want %q in it", name, files[name], text)
		}
	}
	for name, body := range files {
		if strings.Contains(body, "hunter") {
			t.Errorf("%s holds a password", name)
		}
	}
}

func TestBundleListsWhatItCouldNotCollect(t *testing.T) {
	b := apitest.New(t)
	backends := b.API()
	backends.Flows = nil
	socket := filepath.Join(apitest.SocketDir(t), "pncd.sock")
	l, err := api.ListenConfig{Address: socket}.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apitest.Serve(t, backends, api.Options{}, l)
	status, out, errs := pncctl(t, nil, "--socket", socket, "support-bundle", "-o", "-")
	if status != 0 || errs != "" {
		t.Fatalf("exit status %d, errors %q", status, errs)
	}
	files := readBundle(t, []byte(out))
	for _, want := range []string{"flows.json: ", "not a proxy", "metrics.txt: pncd serves no telemetry"} {
		if !strings.Contains(files["errors.txt"], want) {
			t.Errorf("errors.txt = %q, want %q in it", files["errors.txt"], want)
		}
	}
	if strings.Contains(files["errors.txt"], "rpc error") {
		t.Errorf("errors.txt = %q, want what the server said only", files["errors.txt"])
	}
	if _, ok := files["flows.json"]; ok {
		t.Error("flows.json is there although it could not be collected")
	}
}

func TestBundleIsNamedByNodeAndTime(t *testing.T) {
	_, env := sample(t)
	t.Chdir(t.TempDir())
	status, out, errs := pncctl(t, env, "support-bundle")
	if status != 0 || errs != "" || !strings.HasPrefix(out, "pncd-support-pe1-20260301T120000Z.tar.gz: ") {
		t.Errorf("exit status %d, %q, %q", status, out, errs)
	}
	if got, _ := filepath.Glob("*"); !slices.Equal(got, []string{"pncd-support-pe1-20260301T120000Z.tar.gz"}) {
		t.Errorf("files = %v", got)
	}
}

func TestBundleThatCannotBeWrittenLeavesNothing(t *testing.T) {
	_, env := sample(t)
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	status, _, errs := pncctl(t, env, "support-bundle", "-o", target)
	if status != exitFailed || !strings.Contains(errs, "write the bundle") {
		t.Errorf("exit status %d, errors %q", status, errs)
	}
	if got, _ := filepath.Glob(filepath.Join(dir, ".pncd*")); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestSecretsAreFoundInEveryForm(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"password: x", "password: (secret)"},
		{"  - password: x y # z", "  - password: (secret)"},
		{`"md5_password": "x"`, `"md5_password": (secret)`},
		{"auth-key: x\nnode: y", "auth-key: (secret)\nnode: y"},
		{"{a: 1, token: abc, b: 2}", "{a: 1, token: (secret), b: 2}"},
		{`{password: "a, b"}`, "{password: (secret)}"},
		{"password_file: /etc/pncd/md5", "password_file: /etc/pncd/md5"},
		{"bgp:\n  neighbors: []", "bgp:\n  neighbors: []"},
	} {
		if got := withoutSecrets(tt.in); got != tt.want {
			t.Errorf("withoutSecrets(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
