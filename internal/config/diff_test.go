package config

import (
	"slices"
	"strings"
	"testing"

	"pncd/deploy"
)

func TestDiffNamesWhatChangedAndHidesSecrets(t *testing.T) {
	ref := string(deploy.ReferenceConfig)
	parse := func(s string) *Config {
		t.Helper()
		c, err := Parse([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := parse(ref)
	edit := strings.NewReplacer("node: leaf1", "node: leaf2", `password: ""`, `password: hunter2`,
		"    - address: 192.0.2.254\n", "    - {address: 192.0.2.253, as: 65000}\n    - address: 192.0.2.254\n")
	got, err := Diff(before, parse(edit.Replace(ref)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"node: leaf1 -> leaf2",
		`bgp.neighbors[192.0.2.254].password: "" -> (secret)`,
		"bgp.neighbors[192.0.2.253].as: added (65000)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(strings.Join(got, "\n"), "hunter2") {
		t.Error("a secret shows")
	}
	for _, line := range got {
		if strings.HasPrefix(line, "bgp.neighbors[192.0.2.254]") && !strings.Contains(line, "password") {
			t.Errorf("an unchanged neighbour is listed: %s", line)
		}
	}
	if same, err := Diff(before, parse(ref)); err != nil || len(same) != 0 {
		t.Errorf("the same file differs: %v, %v", same, err)
	}
}
