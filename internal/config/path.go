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
			n = resolve(n)
			if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
				return nil
			}
			n = n.Content[i]
		}
	}
	return n
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// mapValue gives the value of a key, also of one that a merge key (<<) brings in; its own keys come first.
func mapValue(n *yaml.Node, key string) *yaml.Node {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k, v := n.Content[i], n.Content[i+1]; {
		case k.Value == key:
			return v
		case k.Tag == "!!merge" && merged == nil:
			merged = mergedValue(resolve(v), key)
		}
	}
	return merged
}

// mergedValue looks into what is merged: a mapping, or a list of them, of which the first counts.
func mergedValue(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return mapValue(n, key)
	}
	for _, e := range n.Content {
		if v := mapValue(e, key); v != nil {
			return v
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
