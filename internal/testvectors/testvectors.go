// Package testvectors finds the captures and packets that tests read, which are not part of this repository.
package testvectors

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir is their folder: PNCD_VECTORS, or shared/vectors beside the repository. Without it the test is skipped.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PNCD_VECTORS")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared", "vectors")
	}
	if _, err := os.Stat(filepath.Join(dir, "cm-write.pcap")); err != nil {
		t.Skip("vectors not found: set PNCD_VECTORS")
	}
	return dir
}

// root is the repository's, seen from the package under test.
func root(t testing.TB) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod above %s", at)
		}
	}
}

// Open opens one of them until the test ends.
func Open(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(Dir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
