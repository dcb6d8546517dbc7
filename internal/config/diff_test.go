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
	const statics = "static: [{prefix: 10.0.0.0/8, proxy: 192.0.2.1}, {prefix: 10.0.0.0/8, proxy: 192.0.2.2}]\n"
	const link, first, second = "ospfv2: {router_id: 192.0.2.1, links: [{interface: a, keys: [", "{id: 1, algorithm: md5, password: one}", "{id: 2, algorithm: md5, password: two}"
	for _, tc := range []struct{ before, after, want string }{
		{link + first + ", " + second + "]}]}\n", link + second + ", " + first + "]}]}\n", "ospfv2.links[a].keys: order [1, 2] -> [2, 1]"},
		{"resolve: {preference: [static, bgp, isis, ospf]}\n", "resolve: {preference: [bgp, static, isis, ospf]}\n",
			"resolve.preference: [static, bgp, isis, ospf] -> [bgp, static, isis, ospf]"},
		{statics, strings.Replace(statics, "192.0.2.1", "192.0.2.3", 1), "static[10.0.0.0/8].proxy: 192.0.2.1 -> 192.0.2.3"},
		{statics, strings.Replace(statics, "192.0.2.2", "192.0.2.3", 1), "static[10.0.0.0/8#2].proxy: 192.0.2.2 -> 192.0.2.3"},
	} {
		if got, err := Diff(parse(tc.before), parse(tc.after)); err != nil || !slices.Equal(got, []string{tc.want}) {
			t.Errorf("got %q, %v; want %q", got, err, tc.want)
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
