package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestExitStatusTellsUsageFromFailure(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.clab.yml")
	if err := os.WriteFile(bad, []byte("name: x\ntopology: {nodes: {a: {kind: ceos}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.clab.yml")
	if err := os.WriteFile(good, []byte("name: x\ntopology: {nodes: {a: {kind: linux, image: debian}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"--version"}, 0},
		{[]string{"lab", "inspect", good}, 0},
		{[]string{"lab", "inspect", good, "--json"}, 0},
		{[]string{}, exitUsage},
		{[]string{"nosuch"}, exitUsage},
		{[]string{"lab"}, exitUsage},
		{[]string{"lab", "nosuch"}, exitUsage},
		{[]string{"lab", "inspect", bad}, exitUsage},
		{[]string{"lab", "inspect", "no-such-lab"}, exitUsage},
		{[]string{"watch"}, exitUsage},
		{[]string{"generate", "--local", "x", "--peer", "10.0.0.1"}, exitUsage},
		{[]string{"generate", "--local", "10.0.0.1", "--peer", "10.0.0.2", "--ports", "x"}, exitUsage},
		{[]string{"replay", "--local", "10.0.0.1", "--peer", "10.0.0.2", "--pcap", filepath.Join(dir, "nosuch")}, exitFailed},
		{[]string{"replay", "--local", "10.0.0.1", "--peer", "10.0.0.2", "--pcap", good, "--ecn", "x"}, exitUsage},
		{[]string{"watch", "-i", "nosuch0"}, exitFailed},
		{[]string{"demo", "--family", "5"}, exitUsage},
		{[]string{"demo", "--pcap", filepath.Join(dir, "nosuch")}, exitFailed},
		{[]string{"lab", "down", "no-such-lab"}, exitFailed},
	} {
		if got := run(c.args); got != c.want {
			t.Errorf("%q: exit status %d, want %d", c.args, got, c.want)
		}
	}
}
