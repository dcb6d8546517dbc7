package config

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Diff lists what differs between two configurations, one key a line, sorted; secrets only by name. Of a list with
// the same sections in another order it lists the order: of keys the first is sent, of rules the first that matches counts.
func Diff(before, after *Config) ([]string, error) {
	old, oldOrder, err := flatten(before)
	if err != nil {
		return nil, err
	}
	now, nowOrder, err := flatten(after)
	if err != nil {
		return nil, err
	}
	out := reordered(oldOrder, nowOrder)
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

// reordered lists the lists that have the same sections in another order.
func reordered(before, after map[string][]string) (out []string) {
	for at, now := range after {
		was := before[at]
		if slices.Equal(was, now) || !slices.Equal(slices.Sorted(slices.Values(was)), slices.Sorted(slices.Values(now))) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: order [%s] -> [%s]", at, strings.Join(was, ", "), strings.Join(now, ", ")))
	}
	return out
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

// flatten maps the path of each scalar to its value, and the path of each list of sections to their names. Sections in
// lists are named by what identifies them, so that an inserted neighbour does not look like a change of all that follow.
func flatten(c *Config) (map[string]string, map[string][]string, error) {
	b, err := yaml.Marshal(c)
	if err != nil {
		return nil, nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, nil, err
	}
	out, order := map[string]string{}, map[string][]string{}
	walk(&root, "", out, order)
	return out, order, nil
}

func walk(n *yaml.Node, at string, out map[string]string, order map[string][]string) {
	switch n.Kind {
	case yaml.DocumentNode:
		walk(n.Content[0], at, out, order)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if at != "" {
				key = at + "." + key
			}
			walk(n.Content[i+1], key, out, order)
		}
	case yaml.SequenceNode:
		walkList(n, at, out, order)
	default:
		if n.Tag == "!!null" {
			return // a section that is left out
		}
		out[at] = n.Value
	}
}

// walkList gives a list of plain values as one, for their order may mean something, and each section of
// another list under its name.
func walkList(n *yaml.Node, at string, out map[string]string, order map[string][]string) {
	var plain []string
	seen := map[string]int{}
	for i, e := range n.Content {
		if e.Kind == yaml.ScalarNode {
			plain = append(plain, e.Value)
			continue
		}
		name := identity(e, i)
		if seen[name]++; seen[name] > 1 { // static routes to several proxies have one prefix
			name += fmt.Sprintf("#%d", seen[name])
		}
		order[at] = append(order[at], name)
		walk(e, at+"["+name+"]", out, order)
	}
	if len(plain) > 0 {
		out[at] = "[" + strings.Join(plain, ", ") + "]"
	}
}

// identity is what names a section in a list: its address, prefix and so on, else its place.
func identity(n *yaml.Node, i int) string {
	for _, key := range []string{"address", "prefix", "interface", "name", "table", "id"} {
		if v := mapValue(n, key); v != nil && v.Value != "" {
			return v.Value
		}
	}
	return fmt.Sprint(i)
}
