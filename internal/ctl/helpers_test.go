package ctl

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pncd/api"
	"pncd/api/apitest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// output is a writer that a test reads while the command runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// pncctl runs the command line and returns its exit status and what it wrote.
func pncctl(t *testing.T, env map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, errs output
	status = Main(ctx, Env{
		Args: args, Stdout: &out, Stderr: &errs,
		Getenv: func(k string) string { return env[k] },
		Now:    func() time.Time { return apitest.Now },
	})
	return status, out.String(), errs.String()
}

// sample serves the sample backends; the second value is the environment that points to them.
func sample(t *testing.T) (*apitest.Backends, map[string]string) {
	t.Helper()
	b := apitest.New(t)
	socket, _ := b.Serve(t, api.Options{})
	return b, map[string]string{envAddress: "unix://" + socket}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n--- got\n%s--- want\n%s", file, got, want)
	}
}
