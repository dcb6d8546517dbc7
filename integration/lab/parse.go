package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parser turns YAML nodes into a Topology, keeping lines for its errors.
type parser struct {
	file string
	topo *Topology

	defaults rawNode
	kinds    map[string]rawNode
}

// rawNode is a node, a kind or the defaults before they are merged.
type rawNode struct {
	kind, image, entrypoint, cmd, networkMode string
	exec                                      []string
	binds                                     []Bind
	env, sysctls                              map[string]string
	delay                                     int
}

func (p *parser) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", filepath.Base(p.file), line, fmt.Sprintf(format, args...))
}

func (p *parser) parse(text []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return p.errorf(1, "the file is empty")
		}
		return fmt.Errorf("%s: %w", filepath.Base(p.file), err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return p.errorf(max(more.Line, 1), "one document is expected")
	}
	seen := map[string]bool{}
	err := p.mapping(doc.Content[0], "", func(key string, k, v *yaml.Node) error {
		seen[key] = true
		switch key {
		case "name":
			return p.str(v, "name", &p.topo.Name)
		case "topology":
			return p.topology(v)
		}
		return p.otherKey(k, "", key, ignoredTopKeys, nil)
	})
	if err != nil {
		return err
	}
	for _, key := range []string{"name", "topology"} {
		if !seen[key] {
			return p.errorf(1, "key %q is missing", key)
		}
	}
	return nil
}

// topology reads defaults and kinds before nodes, wherever they stand in the file.
func (p *parser) topology(n *yaml.Node) error {
	parts := map[string]*yaml.Node{}
	err := p.mapping(n, "topology", func(key string, k, v *yaml.Node) error {
		switch key {
		case "defaults", "kinds", "nodes", "links":
			parts[key] = v
			return nil
		}
		return p.otherKey(k, "topology", key, nil, nil)
	})
	if err != nil {
		return err
	}
	if v := parts["defaults"]; v != nil {
		if p.defaults, err = p.node(v, "topology.defaults"); err != nil {
			return err
		}
	}
	p.kinds = map[string]rawNode{}
	if v := parts["kinds"]; v != nil {
		err = p.mapping(v, "topology.kinds", func(key string, k, v *yaml.Node) error {
			if key != kindLinux && key != kindBridge {
				return p.errorf(k.Line, "topology.kinds: %q can't be realised here; linux or bridge", key)
			}
			var err error
			p.kinds[key], err = p.node(v, "topology.kinds."+key)
			return err
		})
		if err != nil {
			return err
		}
	}
	if v := parts["nodes"]; v == nil {
		return p.errorf(n.Line, "topology: key \"nodes\" is missing")
	} else if err := p.allNodes(v); err != nil {
		return err
	}
	if v := parts["links"]; v != nil {
		return p.links(v)
	}
	return nil
}

func (p *parser) allNodes(n *yaml.Node) error {
	return p.mapping(n, "topology.nodes", func(key string, k, v *yaml.Node) error {
		raw, err := p.node(v, "topology.nodes."+key)
		if err != nil {
			return err
		}
		p.topo.Nodes = append(p.topo.Nodes, p.merge(key, raw, k.Line))
		return nil
	})
}

// merge applies containerlab's rule: the node wins over its kind, the kind over the defaults; lists
// of commands are joined, maps and binds are merged by key and target.
func (p *parser) merge(name string, raw rawNode, line int) *Node {
	first := func(s ...string) string {
		for _, v := range s {
			if v != "" {
				return v
			}
		}
		return ""
	}
	d := p.defaults
	kind := first(raw.kind, d.kind)
	k := p.kinds[kind]
	n := &Node{
		Name: name, Kind: kind, line: line,
		Image:       first(raw.image, k.image, d.image),
		Entrypoint:  first(raw.entrypoint, k.entrypoint, d.entrypoint),
		Cmd:         first(raw.cmd, k.cmd, d.cmd),
		NetworkMode: first(raw.networkMode, k.networkMode, d.networkMode),
		Env:         map[string]string{},
		Sysctls:     map[string]string{},
	}
	for _, r := range []rawNode{d, k, raw} {
		n.Exec = append(n.Exec, r.exec...)
		maps.Copy(n.Env, r.env)
		maps.Copy(n.Sysctls, r.sysctls)
		if r.delay > 0 {
			n.StartupDelay = r.delay
		}
		for _, b := range r.binds {
			n.Binds = mergeBind(n.Binds, b)
		}
	}
	return n
}

func mergeBind(all []Bind, b Bind) []Bind {
	for i := range all {
		if all[i].Target == b.Target {
			all[i] = b
			return all
		}
	}
	return append(all, b)
}

func (p *parser) node(n *yaml.Node, path string) (rawNode, error) {
	var r rawNode
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return r, nil // containerlab allows a node without keys
	}
	err := p.mapping(n, path, func(key string, k, v *yaml.Node) error {
		at := path + "." + key
		switch key {
		case "kind":
			return p.str(v, at, &r.kind)
		case "image":
			return p.str(v, at, &r.image)
		case "entrypoint":
			return p.str(v, at, &r.entrypoint)
		case "cmd":
			return p.str(v, at, &r.cmd)
		case "exec":
			return p.list(v, at, func(s string, line int) error {
				if _, err := splitWords(s); err != nil {
					return p.errorf(line, "%s: %v", at, err)
				}
				r.exec = append(r.exec, s)
				return nil
			})
		case "binds":
			return p.list(v, at, func(s string, line int) error {
				b, err := p.parseBind(s)
				if err != nil {
					return p.errorf(line, "%s: %v", at, err)
				}
				r.binds = mergeBind(r.binds, b)
				return nil
			})
		case "env":
			return p.strings(v, at, envRule.MatchString, &r.env)
		case "sysctls":
			return p.strings(v, at, ctlRule.MatchString, &r.sysctls)
		case "network-mode":
			return p.networkMode(v, at, &r.networkMode)
		case "startup-delay":
			var s string
			if err := p.str(v, at, &s); err != nil {
				return err
			}
			d, err := strconv.Atoi(s)
			if err != nil || d < 0 || d > 600 {
				return p.errorf(v.Line, "%s: %q must be 0 to 600 seconds", at, s)
			}
			r.delay = d
			return nil
		case "user":
			if v.Value != "root" && v.Value != "0" {
				return p.errorf(v.Line, "%s: programs run as root here", at)
			}
			return nil
		}
		return p.otherKey(k, path, key, ignoredNodeKeys, refusedNodeKeys)
	})
	return r, err
}

func (p *parser) networkMode(v *yaml.Node, at string, to *string) error {
	var s string
	if err := p.str(v, at, &s); err != nil {
		return err
	}
	if s == "none" {
		return nil
	}
	name, ok := strings.CutPrefix(s, "container:")
	if !ok || name == "" {
		return p.errorf(v.Line, "%s: %q must be none or container:<node>", at, s)
	}
	*to = name
	return nil
}

func (p *parser) links(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return p.errorf(n.Line, "topology.links: must be a list")
	}
	for _, v := range n.Content {
		l := Link{MTU: defaultMTU, line: v.Line}
		var ends []Endpoint
		err := p.mapping(v, "topology.links", func(key string, k, v *yaml.Node) error {
			switch key {
			case "endpoints":
				return p.list(v, "topology.links.endpoints", func(s string, line int) error {
					node, iface, ok := strings.Cut(s, ":")
					if !ok || node == "" || iface == "" {
						return p.errorf(line, "topology.links.endpoints: %q must be node:interface", s)
					}
					ends = append(ends, Endpoint{node, iface})
					return nil
				})
			case "mtu":
				m, err := strconv.Atoi(v.Value)
				if err != nil || m < 68 || m > 65535 {
					return p.errorf(v.Line, "topology.links.mtu: %q must be 68 to 65535", v.Value)
				}
				l.MTU = m
				return nil
			}
			return p.otherKey(k, "topology.links", key, ignoredLinkKeys, nil)
		})
		if err != nil {
			return err
		}
		if len(ends) != 2 {
			return p.errorf(v.Line, "topology.links: two endpoints are needed, %d given", len(ends))
		}
		l.A, l.B = ends[0], ends[1]
		p.topo.Links = append(p.topo.Links, l)
	}
	return nil
}
