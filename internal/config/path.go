package config

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// index names an element of a list: bgp.neighbors[0].
func index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// find returns the value at a path such as bgp.neighbors[0].address, or nil.
func find(root *yaml.Node, path string) *yaml.Node {
	n := root
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	for _, part := range strings.Split(path, ".") {
		key, rest, _ := strings.Cut(part, "[")
		if n = mapValue(n, key); n == nil {
			return nil
		}
		if rest != "" {
			i, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
			if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
				return nil
			}
			n = n.Content[i]
		}
	}
	return n
}

func mapValue(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// lineOf returns the line of the value at a path, or that of the nearest section around it.
func lineOf(root *yaml.Node, path string) int {
	for path != "" {
		if n := find(root, path); n != nil {
			return n.Line
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return 0
		}
		path = path[:cut]
	}
	return 0
}
