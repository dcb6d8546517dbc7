package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load reads, decodes and checks a file. The error is an *Error unless the file can't be read.
func Load(path string) (*Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c, err := Parse(b)
	var e *Error
	if errors.As(err, &e) {
		e.File = path
	}
	return c, err
}

// Parse decodes and checks a configuration. An empty one is valid: everything off.
func Parse(b []byte) (*Config, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, &Error{Problems: []Problem{parseProblem(err.Error())}}
	}
	c := withDefaults()
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, &Error{Problems: decodeProblems(err)}
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &Error{Problems: []Problem{{Rule: "only one YAML document is allowed"}}}
	}
	c.fillDefaults(&root)
	if p := check(c, &root); len(p) > 0 {
		return nil, &Error{Problems: p}
	}
	return c, nil
}

// Problem is one rule broken by a configuration.
type Problem struct {
	Line int    // 1-based; 0 when no line can be named
	Key  string // as in bgp.neighbors[0].address; empty when the text as a whole is meant
	Rule string
}

// String renders a problem for one line of output.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Key != "" {
		fmt.Fprintf(&b, "%s: ", p.Key)
	}
	b.WriteString(p.Rule)
	return b.String()
}

// Error lists every problem found in a configuration.
type Error struct {
	File     string
	Problems []Problem
}

// Error implements error: one problem a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
		if e.File != "" {
			lines[i] = e.File + ": " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

var (
	lineRE    = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\n\s*)?line (\d+): (.*)$`)
	unknownRE = regexp.MustCompile(`^field (\S+) not found in type config\.\S+$`)
	repeatRE  = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	typeRE    = regexp.MustCompile("^cannot unmarshal !!(\\w+)(?: `(.*)`)? into (\\S+)$")
)

func decodeProblems(err error) []Problem {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		return []Problem{parseProblem(err.Error())}
	}
	out := make([]Problem, 0, len(te.Errors))
	for _, s := range te.Errors {
		out = append(out, parseProblem(s))
	}
	return out
}

// parseProblem turns yaml's own wording, which names Go types, into ours.
func parseProblem(s string) Problem {
	p := Problem{Rule: strings.TrimPrefix(s, "yaml: ")}
	if m := lineRE.FindStringSubmatch(s); m != nil {
		fmt.Sscanf(m[1], "%d", &p.Line)
		p.Rule = m[2]
	}
	switch {
	case unknownRE.MatchString(p.Rule):
		p.Key = unknownRE.FindStringSubmatch(p.Rule)[1]
		p.Rule = "unknown key"
	case repeatRE.MatchString(p.Rule):
		m := repeatRE.FindStringSubmatch(p.Rule)
		p.Key, p.Rule = m[1], "given twice; the first is at line "+m[2]
	case typeRE.MatchString(p.Rule):
		m := typeRE.FindStringSubmatch(p.Rule)
		got := m[2]
		if got == "" {
			got = map[string]string{"map": "a section", "seq": "a list"}[m[1]]
		}
		p.Rule = fmt.Sprintf("%s is not %s", got, kindName(m[3]))
	}
	return p
}

// kindName says in an operator's words what a Go type holds.
func kindName(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "bool":
		return "true or false"
	case goType == "uint8":
		return "a number from 0 to 255"
	case goType == "uint16":
		return "a number from 0 to 65535"
	case goType == "uint32":
		return "a number from 0 to 4294967295"
	case strings.HasPrefix(goType, "uint"), strings.HasPrefix(goType, "int"):
		return "a number"
	case goType == "string":
		return "a text"
	default:
		return "a section of keys"
	}
}
