package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
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

// Parse decodes and checks a configuration: first its form, then the rules between and beyond the values.
// Each of the two reports everything that it finds. An empty configuration is valid: everything off.
func Parse(b []byte) (*Config, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, &Error{Problems: []Problem{syntaxProblem(b, err)}}
	}
	problems, empty := checkShape(&root)
	if len(problems) > 0 {
		return nil, &Error{Problems: problems}
	}
	c := withDefaults()
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, &Error{Problems: []Problem{parseProblem(err.Error())}} // what checkShape does not know of
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &Error{Problems: []Problem{{Rule: "only one YAML document is allowed"}}}
	}
	c.fillDefaults(&root)
	if problems, c.warnings = check(c, &root); len(problems) > 0 {
		return nil, &Error{Problems: problems}
	}
	c.warnings = append(empty, c.warnings...)
	return c, nil
}

// Warnings lists what of the file is valid and does nothing, as an area without a link.
func (c *Config) Warnings() []Problem { return c.warnings }

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

var lineRE = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\n\s*)?line (\d+): (.*)$`)

// parseProblem takes the line out of yaml's own wording.
func parseProblem(s string) Problem {
	p := Problem{Rule: strings.TrimPrefix(s, "yaml: ")}
	if m := lineRE.FindStringSubmatch(s); m != nil {
		p.Line, _ = strconv.Atoi(m[1]) // digits
		p.Rule = m[2]
	}
	return p
}

// syntaxProblem is that of a text that is no YAML. yaml leaves the first line out, and that of a control
// character always.
func syntaxProblem(b []byte, err error) Problem {
	p := parseProblem(err.Error())
	if p.Line > 0 {
		return p
	}
	p.Line = 1
	if i := bytes.IndexFunc(b, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7F }); i >= 0 {
		p.Line += bytes.Count(b[:i], []byte("\n"))
	}
	return p
}
