package lab

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// mergeDepth bounds merge keys within merged mappings: a mapping may merge itself by its own anchor.
const mergeDepth = 16

// mapping calls fn for each key of n, merge keys (<<) included; a key given twice is an error.
func (p *parser) mapping(n *yaml.Node, path string, fn func(key string, k, v *yaml.Node) error) error {
	return p.merged(n, path, 0, fn)
}

// merged is mapping for what stands depth merge keys deep.
func (p *parser) merged(n *yaml.Node, path string, depth int, fn func(key string, k, v *yaml.Node) error) error {
	if depth > mergeDepth {
		return p.errorf(n.Line, "%s: merge keys (<<) nest more than %d deep, or a mapping merges itself", or(path, "the file"), mergeDepth)
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return p.errorf(n.Line, "%s: must be a mapping", or(path, "the file"))
	}
	own := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if line, ok := own[k.Value]; ok {
			return p.errorf(k.Line, "%s: key %q is given on line %d already", or(path, "the file"), k.Value, line)
		}
		own[k.Value] = k.Line
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if k.Tag == "!!merge" {
			err := p.merged(v, path, depth+1, func(key string, k, v *yaml.Node) error {
				if _, ok := own[key]; ok {
					return nil // the mapping's own key wins
				}
				return fn(key, k, v)
			})
			if err != nil {
				return err
			}
			continue
		}
		if err := fn(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) str(n *yaml.Node, path string, to *string) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return p.errorf(n.Line, "%s: must be a string", path)
	}
	*to = n.Value
	return nil
}

func (p *parser) list(n *yaml.Node, path string, fn func(s string, line int) error) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return p.errorf(n.Line, "%s: must be a list with at least one entry", path)
	}
	for _, v := range n.Content {
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		var s string
		if err := p.str(v, path, &s); err != nil {
			return err
		}
		if err := fn(s, v.Line); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) strings(n *yaml.Node, path string, valid func(string) bool, to *map[string]string) error {
	*to = map[string]string{}
	return p.mapping(n, path, func(key string, k, v *yaml.Node) error {
		if !valid(key) {
			return p.errorf(k.Line, "%s: %q is no valid name", path, key)
		}
		var s string
		if err := p.str(v, path+"."+key, &s); err != nil {
			return err
		}
		(*to)[key] = s
		return nil
	})
}

// otherKey answers for a key without an effect: reported, refused, or unknown.
func (p *parser) otherKey(k *yaml.Node, path, key string, ignored, refused map[string]string) error {
	if why, ok := ignored[key]; ok {
		p.topo.Ignored = append(p.topo.Ignored, fmt.Sprintf("line %d: %s ignored: %s", k.Line, join(path, key), why))
		return nil
	}
	if why, ok := refused[key]; ok {
		return p.errorf(k.Line, "%s: not supported here: %s", join(path, key), why)
	}
	return p.errorf(k.Line, "%s: unknown key %q", or(path, "the file"), key)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
