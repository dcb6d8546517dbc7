package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Topology is a parsed topology file, with defaults and kinds merged into the nodes.
type Topology struct {
	Name    string
	Nodes   []*Node // in the order of the file
	Links   []Link
	File    string   // where it was read from
	Ignored []string // keys without effect here, each with its line and the reason
}

// Node is one node with everything that applies to it.
type Node struct {
	Name         string
	Kind         string // linux or bridge
	Image        string
	Entrypoint   string
	Cmd          string
	Exec         []string // defaults first, then the kind's, then the node's
	Binds        []Bind   // one for each target
	Env          map[string]string
	Sysctls      map[string]string
	NetworkMode  string // empty, or the node whose network namespace is shared
	StartupDelay int    // seconds

	line int
}

// Bind mounts a file or directory of the machine in a node.
type Bind struct {
	Source   string // absolute
	Target   string // absolute, as the node sees it
	ReadOnly bool
}

// Link joins two interfaces.
type Link struct {
	A, B Endpoint
	MTU  int

	line int
}

// Endpoint is one end of a link.
type Endpoint struct{ Node, Interface string }

func (e Endpoint) String() string { return e.Node + ":" + e.Interface }

// Node returns the node of that name, or nil.
func (t *Topology) Node(name string) *Node {
	for _, n := range t.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Load reads and checks a topology file. Errors name the file and the line.
func Load(path string) (*Topology, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read topology: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read topology: %w", err)
	}
	return Parse(abs, b)
}

// Parse parses the text of a topology file. Binds are relative to the folder of path.
func Parse(path string, text []byte) (*Topology, error) {
	p := &parser{file: path, topo: &Topology{File: path}}
	if err := p.parse(text); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p.topo, nil
}

// ifNameMax is IFNAMSIZ without the terminating zero.
const ifNameMax = 15

var (
	nameRule  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	envRule   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	ctlRule   = regexp.MustCompile(`^[a-z0-9_]+([./][A-Za-z0-9_*-]+)+$`)
	ifaceRule = regexp.MustCompile(`^[^\s/:]+$`)
)

// check holds the rules over several parts of the file.
func (p *parser) check() error {
	t := p.topo
	if !nameRule.MatchString(t.Name) || len(t.Name) > 64 {
		return p.errorf(1, "name: %q must be letters, digits, '.', '_' and '-', at most 64", t.Name)
	}
	if len(t.Nodes) == 0 {
		return p.errorf(1, "topology.nodes: at least one node is needed")
	}
	for _, n := range t.Nodes {
		if err := p.checkNode(n); err != nil {
			return err
		}
	}
	used := map[Endpoint]int{}
	for _, l := range t.Links {
		for _, e := range []Endpoint{l.A, l.B} {
			if err := p.checkEndpoint(l, e); err != nil {
				return err
			}
			if before, ok := used[e]; ok {
				return p.errorf(l.line, "links: endpoint %s is used on line %d already", e, before)
			}
			used[e] = l.line
		}
	}
	return nil
}

func (p *parser) checkEndpoint(l Link, e Endpoint) error {
	n := p.topo.Node(e.Node)
	switch {
	case n == nil:
		return p.errorf(l.line, "links: endpoint %s names a node that is not in topology.nodes", e)
	case n.NetworkMode != "":
		return p.errorf(l.line, "links: endpoint %s: the node shares the network of %s; put the link there", e, n.NetworkMode)
	case len(e.Interface) > ifNameMax || !ifaceRule.MatchString(e.Interface):
		return p.errorf(l.line, "links: endpoint %s: an interface name has 1 to %d characters without '/', ':' and space", e, ifNameMax)
	case e.Interface == "lo" || (n.Kind == kindBridge && e.Interface == n.Name):
		return p.errorf(l.line, "links: endpoint %s: the name is taken in that node", e)
	}
	return nil
}

func (p *parser) checkNode(n *Node) error {
	switch {
	case !nameRule.MatchString(n.Name):
		return p.errorf(n.line, "topology.nodes: %q must be letters, digits, '.', '_' and '-'", n.Name)
	case n.Kind != kindLinux && n.Kind != kindBridge:
		return p.errorf(n.line, "topology.nodes.%s.kind: %q can't be realised here; linux or bridge", n.Name, n.Kind)
	case n.Kind == kindBridge && len(n.Name) > ifNameMax:
		return p.errorf(n.line, "topology.nodes.%s: a bridge's name has at most %d characters", n.Name, ifNameMax)
	case n.Kind == kindBridge && n.NetworkMode != "":
		return p.errorf(n.line, "topology.nodes.%s.network-mode: not for a bridge", n.Name)
	}
	if n.NetworkMode != "" {
		o := p.topo.Node(n.NetworkMode)
		if o == nil {
			return p.errorf(n.line, "topology.nodes.%s.network-mode: node %q is not in topology.nodes", n.Name, n.NetworkMode)
		}
		if o.NetworkMode != "" || o.Kind != kindLinux {
			return p.errorf(n.line, "topology.nodes.%s.network-mode: node %q must be of kind linux with a network of its own", n.Name, n.NetworkMode)
		}
		if len(n.Sysctls) > 0 {
			return p.errorf(n.line, "topology.nodes.%s.sysctls: set them at %s, whose network is shared", n.Name, n.NetworkMode)
		}
	}
	if n.Kind == kindLinux {
		if _, err := programFor(n); err != nil {
			return p.errorf(n.line, "topology.nodes.%s: %v", n.Name, err)
		}
	}
	return nil
}

// parseBind reads source:target[:ro|rw] as containerlab does: a relative source is relative to the
// topology file.
func (p *parser) parseBind(s string) (Bind, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || !filepath.IsAbs(parts[1]) {
		return Bind{}, fmt.Errorf("%q must be source:/target or source:/target:ro", s)
	}
	b := Bind{Source: parts[0], Target: filepath.Clean(parts[1])}
	if len(parts) == 3 {
		switch parts[2] {
		case "ro":
			b.ReadOnly = true
		case "rw":
		default:
			return Bind{}, fmt.Errorf("%q: option %q must be ro or rw", s, parts[2])
		}
	}
	if !filepath.IsAbs(b.Source) {
		b.Source = filepath.Join(filepath.Dir(p.file), b.Source)
	}
	return b, nil
}
