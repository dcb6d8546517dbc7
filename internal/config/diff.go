package config

import (
	"fmt"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Diff lists what differs between two configurations, one key a line, sorted; secrets only by name.
func Diff(before, after *Config) ([]string, error) {
	old, err := flatten(before)
	if err != nil {
		return nil, err
	}
	now, err := flatten(after)
	if err != nil {
		return nil, err
	}
	var out []string
	for key, v := range now {
		was, had := old[key]
		switch {
		case !had:
			out = append(out, fmt.Sprintf("%s: added (%s)", key, shown(key, v)))
		case was != v:
			out = append(out, fmt.Sprintf("%s: %s -> %s", key, shown(key, was), shown(key, v)))
		}
	}
	for key := range old {
		if _, has := now[key]; !has {
			out = append(out, key+": removed")
		}
	}
	sort.Strings(out)
	return out, nil
}

func shown(key, value string) string {
	if strings.HasSuffix(key, ".password") && value != "" {
		return redacted
	}
	if value == "" {
		return `""`
	}
	return value
}

// flatten maps the path of each scalar to its value. Elements of lists are named by what identifies
// them, so that an inserted neighbour does not look like a change of all that follow.
func flatten(c *Config) (map[string]string, error) {
	b, err := yaml.Marshal(c)
	if err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, err
	}
	out := map[string]string{}
	walk(&root, "", out)
	return out, nil
}

func walk(n *yaml.Node, at string, out map[string]string) {
	switch n.Kind {
	case yaml.DocumentNode:
		walk(n.Content[0], at, out)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if at != "" {
				key = at + "." + key
			}
			walk(n.Content[i+1], key, out)
		}
	case yaml.SequenceNode:
		for i, e := range n.Content {
			walk(e, fmt.Sprintf("%s[%s]", at, identity(e, i)), out)
		}
	default:
		if n.Tag == "!!null" {
			return // a section that is left out
		}
		out[at] = n.Value
	}
}

// identity is what names an element of a list: its address or prefix, the value itself, else its place.
func identity(n *yaml.Node, i int) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	for _, key := range []string{"address", "prefix"} {
		if v := mapValue(n, key); v != nil {
			return v.Value
		}
	}
	return fmt.Sprint(i)
}
