package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCheckRefusesWhatAStartWouldRefuse(t *testing.T) {
	const neighbor = "bgp:\n  as: 65000\n  router_id: 192.0.2.1\n  neighbors:\n  - {address: 192.0.2.254, as: 65000"
	for _, tc := range []struct {
		name, yaml string
		want       int
	}{
		{"valid", neighbor + "}\n", 0},
		{"valid, and does nothing", "ospfv2: {router_id: 192.0.2.1}\n", 0},
		{"unknown key", "nod: x\n", exitUsage},
		{"a rule of the file", "enabled: true\n", exitUsage},
		{"a rule of the speaker", neighbor + ", multihop_ttl: 4}\n", exitUsage},
		{"a password that can't be read", neighbor + ", password_file: /nonexistent/key}\n", exitUsage},
	} {
		path := filepath.Join(t.TempDir(), "pncd.yaml")
		if err := os.WriteFile(path, []byte(tc.yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run([]string{"--check", "--config", path}); got != tc.want {
			t.Errorf("%s: exit status %d, want %d", tc.name, got, tc.want)
		}
	}
}
