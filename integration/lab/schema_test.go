package lab

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// schemaProblems checks a file against the parts of containerlab's schema that concern us: the keys
// of the file, of topology and of a node, their types, and the patterns of endpoints and network-mode.
func schemaProblems(t *testing.T, text []byte) []string {
	t.Helper()
	var problems []string
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return []string{err.Error()}
	}
	for key := range doc {
		if !slices.Contains([]string{"name", "prefix", "mgmt", "topology", "settings"}, key) {
			say("key %q at the top", key)
		}
	}
	topology, _ := doc["topology"].(map[string]any)
	node := func(path string, v any) {
		if v == nil {
			return
		}
		m, ok := v.(map[string]any)
		if !ok {
			say("%s is no object", path)
		}
		for key, v := range m {
			if !slices.Contains(publishedNodeKeys, key) {
				say("%s: key %q", path, key)
			}
			switch key {
			case "exec", "binds":
				list, ok := v.([]any)
				if !ok || len(list) == 0 {
					say("%s.%s must be a list with an entry", path, key)
				}
				for _, e := range list {
					if _, ok := e.(string); !ok {
						say("%s.%s: %v is no string", path, key, e)
					}
				}
			case "env":
				env, _ := v.(map[string]any)
				for k, v := range env {
					switch v.(type) {
					case string, int, float64:
					default:
						say("%s.env.%s: %v is neither string nor number", path, k, v)
					}
				}
			case "network-mode":
				if s, _ := v.(string); !regexp.MustCompile(`^(host)|(container:\S+)$`).MatchString(s) {
					say("%s.network-mode: %v", path, v)
				}
			case "startup-delay":
				if _, ok := v.(int); !ok {
					say("%s.startup-delay: %v is no integer", path, v)
				}
			case "kind", "image", "cmd", "entrypoint", "group":
				if _, ok := v.(string); !ok {
					say("%s.%s: %v is no string", path, key, v)
				}
			}
		}
	}
	for key, v := range topology {
		switch key {
		case "defaults":
			node("defaults", v)
		case "kinds", "nodes":
			m, _ := v.(map[string]any)
			for name, v := range m {
				node(key+"."+name, v)
			}
		case "links":
			list, _ := v.([]any)
			for i, e := range list {
				m, _ := e.(map[string]any)
				ends, _ := m["endpoints"].([]any)
				if len(ends) < 2 {
					say("links[%d]: two endpoints are needed", i)
				}
				for _, end := range ends {
					if s, _ := end.(string); !regexp.MustCompile(`^\S+:\S+$`).MatchString(s) {
						say("links[%d]: endpoint %v", i, end)
					}
				}
			}
		default:
			say("topology: key %q", key)
		}
	}
	return problems
}

func TestSchemaCheckFindsWhatTheSchemaForbids(t *testing.T) {
	for _, c := range []string{
		"name: x\nfoo: 1\ntopology: {nodes: {}}",
		"name: x\ntopology: {nodes: {a: {sysctls: {}}}}",
		"name: x\ntopology: {nodes: {a: {exec: []}}}",
		"name: x\ntopology: {nodes: {a: {network-mode: shared}}}",
		"name: x\ntopology: {nodes: {}, links: [{endpoints: [a]}]}",
		"name: x\ntopology: {nodes: {}, wires: []}",
	} {
		if len(schemaProblems(t, []byte(c))) == 0 {
			t.Errorf("nothing found in %q", c)
		}
	}
}
