package ctl

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// readOnly are command lines that change nothing, with their golden file and exit status.
var readOnly = []struct {
	golden string
	args   string
	status int
}{
	{"status", "status", 0},
	{"neighbors", "neighbors", 0},
	{"neighbors-one", "neighbors 192.0.2.252", 0},
	{"neighbors-detail", "neighbors --detail", 0},
	{"capabilities", "capabilities", 0},
	{"capabilities-all", "capabilities --all --prefix 203.0.113.0/24", 0},
	{"capabilities-context", "capabilities --context blue", 0},
	{"capabilities-rejected", "capabilities --rejected", 0},
	{"resolve-found", "resolve 198.51.100.10", 0},
	{"resolve-no-proxy", "resolve 198.51.100.200", 1},
	{"resolve-no-route", "resolve 2001:db8:2::1", 1},
	{"resolve-self", "resolve 203.0.113.193", 1},
	{"resolve-context-unknown", "resolve 10.0.0.1 --context red", 1},
	{"flows", "flows", 0},
	{"flows-state", "flows --state undecided,closed", 0},
	{"flow", "flows 198.51.100.10 203.0.113.10 0x18b", 0},
	{"flow-undecided", "flows 198.51.100.9 203.0.113.10 32", 0},
	{"records", "records", 0},
	{"records-filtered", "records --qp 0x18b --outcome translated --since 2m", 0},
	{"isis-neighbors", "isis neighbors", 0},
	{"isis-interface", "isis interface", 0},
	{"isis-spf", "isis spf", 0},
	{"isis-database", "isis database", 0},
	{"isis-database-detail", "isis database r2 --detail", 0},
	{"ospf-neighbors", "ospf neighbors", 0},
	{"ospf-interface", "ospf interface", 0},
	{"ospf-spf", "ospf spf --v2", 0},
	{"ospf-database", "ospf database", 0},
	{"ospf-database-detail", "ospf database 192.0.2.9 --detail", 0},
	{"ospf-database-type", "ospf database --v3 --area 0 --type 0xa029", 0},
	{"records-host", "records host", 0},
	{"nrp-list", "nrp list", 0},
	{"nrp-list-one", "nrp list 0xc8", 0},
	{"boundary-show", "boundary show", 0},
	{"counters", "counters", 0},
	{"counters-nonzero", "counters --part proxy --nonzero", 0},
}

func TestTablesAreStable(t *testing.T) {
	_, env := sample(t)
	for _, tt := range readOnly {
		t.Run(tt.args, func(t *testing.T) {
			status, out, errs := pncctl(t, env, strings.Fields(tt.args)...)
			if status != tt.status || errs != "" {
				t.Errorf("exit status %d, errors %q, want %d and none", status, errs, tt.status)
			}
			golden(t, tt.golden+".txt", out)
		})
	}
}

func TestEveryAnswerIsAlsoJSONAndYAMLWithTheSameContent(t *testing.T) {
	_, env := sample(t)
	for _, tt := range readOnly {
		t.Run(tt.args, func(t *testing.T) {
			args := strings.Fields(tt.args)
			status, asJSON, errs := pncctl(t, env, append(args, "-o", "json")...)
			if status != tt.status || errs != "" {
				t.Errorf("exit status %d, errors %q, want %d and none", status, errs, tt.status)
			}
			var fromJSON, fromYAML any
			if err := json.Unmarshal([]byte(asJSON), &fromJSON); err != nil {
				t.Fatalf("%v in %s", err, asJSON)
			}
			_, asYAML, _ := pncctl(t, env, append(args, "-o", "yaml")...)
			if err := yaml.Unmarshal([]byte(asYAML), &fromYAML); err != nil {
				t.Fatalf("%v in %s", err, asYAML)
			}
			a, _ := json.Marshal(fromJSON)
			b, _ := json.Marshal(fromYAML)
			if string(a) != string(b) {
				t.Errorf("JSON and YAML differ:\n%s\n%s", a, b)
			}
		})
	}
}

func TestJSONHasFieldNamesOfTheProtobufAndEveryField(t *testing.T) {
	_, env := sample(t)
	_, out, _ := pncctl(t, env, "flows", "198.51.100.9", "203.0.113.10", "0x20", "-o", "json")
	golden(t, "flow-undecided.json", out)
	_, out, _ = pncctl(t, env, "resolve", "198.51.100.10", "-o", "yaml")
	golden(t, "resolve-found.yaml", out)
}

func TestEmptyListingsShowTheirHeader(t *testing.T) {
	_, env := sample(t)
	status, out, errs := pncctl(t, env, "flows", "--sender", "192.0.2.77")
	if status != 0 || errs != "" || !strings.HasPrefix(out, "SENDER") || strings.Count(out, "\n") != 1 {
		t.Errorf("status %d, %q, %q, want the header only", status, out, errs)
	}
}

func TestTruncatedListingSaysSoOnTheErrorOutput(t *testing.T) {
	_, env := sample(t)
	for _, args := range []string{"flows --limit 1", "capabilities --limit 1"} {
		status, out, errs := pncctl(t, env, strings.Fields(args)...)
		if status != 0 || !strings.Contains(errs, "--limit") || out == "" {
			t.Errorf("%s: status %d, errors %q, want a word about the limit", args, status, errs)
		}
	}
}
