package config

import (
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// shape holds a YAML document against the types of Config before anything is decoded: unknown and
// repeated keys, and values of the wrong form, each with its line and full key. yaml's own decoder names Go
// types, cuts fractions off and takes 010 for 8.
type shape struct{ problems, warnings []Problem }

// maxDepth is more than any configuration has; an alias that holds itself has no end.
const maxDepth = 16

// checkShape returns what is wrong with the form of a document, and the sections that are as if they were not there.
func checkShape(root *yaml.Node) (problems, warnings []Problem) {
	if root.Kind != yaml.DocumentNode {
		return nil, nil // empty
	}
	var s shape
	s.value(root.Content[0], reflect.TypeFor[Config](), "", 0)
	return s.problems, s.warnings
}

func (s *shape) add(line int, key, rule string, args ...any) {
	s.problems = append(s.problems, Problem{Line: line, Key: key, Rule: fmt.Sprintf(rule, args...)})
}

// maxShown is how many characters of a value a problem shows: a file that is no configuration may be one long word.
const maxShown = 64

// short cuts a text of the file to what is shown of it.
func short(s string) string {
	for i := range s {
		if utf8.RuneCountInString(s[:i]) == maxShown {
			return s[:i] + "..."
		}
	}
	return s
}

// shortened cuts the texts among the arguments of a rule.
func shortened(args []any) []any {
	out := slices.Clone(args)
	for i, a := range out {
		if s, ok := a.(string); ok {
			out[i] = short(s)
		}
	}
	return out
}

// value checks one value against a type.
func (s *shape) value(n *yaml.Node, t reflect.Type, key string, depth int) {
	at := n.Line
	n = resolve(n)
	if depth > maxDepth {
		s.add(at, key, "nested too deep")
		return
	}
	optional := t.Kind() == reflect.Pointer
	if optional {
		t = t.Elem()
	}
	if n.Tag == "!!null" {
		if kind := t.Kind(); kind == reflect.Bool || isNumber(kind) {
			s.add(at, key, "has no value; leave the key out for the default")
		} else if optional && kind == reflect.Struct {
			s.warnings = append(s.warnings, Problem{Line: at, Key: key, Rule: "is empty: as if it were not there"})
		}
		return
	}
	if _, own := reflect.New(t).Interface().(yaml.Unmarshaler); own {
		s.own(n, at, t, key)
		return
	}
	switch kind := t.Kind(); {
	case kind == reflect.Struct:
		s.section(n, at, t, key, depth)
	case kind == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			s.add(at, key, "%s is not a list", got(n))
			return
		}
		for i, e := range n.Content {
			s.value(e, t.Elem(), index(key, i), depth+1)
		}
	case n.Kind != yaml.ScalarNode:
		s.add(at, key, "%s is not %s", got(n), wanted(t))
	case kind == reflect.Bool:
		if n.Tag != "!!bool" {
			s.add(at, key, "%s is not true or false", got(n))
		}
	case isNumber(kind):
		if !fits(n, t) {
			s.add(at, key, "%s is not %s", got(n), wanted(t))
		}
	}
}

// own checks a value of a type that reads itself.
func (s *shape) own(n *yaml.Node, at int, t reflect.Type, key string) {
	if n.Kind != yaml.ScalarNode {
		s.add(at, key, "%s is not one value", got(n))
		return
	}
	if err := n.Decode(reflect.New(t).Interface()); err != nil {
		s.add(at, key, "%s", parseProblem(err.Error()).Rule)
	}
}

// section checks the keys of a mapping, those that it merges in included.
func (s *shape) section(n *yaml.Node, at int, t reflect.Type, key string, depth int) {
	if n.Kind != yaml.MappingNode {
		s.add(at, key, "%s is not a section of keys", got(n))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" {
			s.merged(resolve(v), t, key, depth)
			continue
		}
		full := short(k.Value)
		if key != "" {
			full = key + "." + full
		}
		f, known := field(t, k.Value)
		line, twice := first[k.Value]
		first[k.Value] = k.Line
		switch {
		case twice:
			s.add(k.Line, full, "given twice; the first is at line %d", line)
		case !known:
			s.add(k.Line, full, "unknown key%s", similar(t, k.Value))
		default:
			s.value(v, f, full, depth+1)
		}
	}
}

func (s *shape) merged(n *yaml.Node, t reflect.Type, key string, depth int) {
	if n.Kind != yaml.SequenceNode {
		s.value(n, t, key, depth+1)
		return
	}
	for _, e := range n.Content {
		s.value(e, t, key, depth+1)
	}
}

// field returns the type of a key of a section.
func field(t reflect.Type, key string) (reflect.Type, bool) {
	for name, f := range fields(t) {
		if name == key {
			return f, true
		}
	}
	return nil, false
}

// fields gives the keys of a section and their types, those of inlined ones included.
func fields(t reflect.Type) iter.Seq2[string, reflect.Type] {
	return func(yield func(string, reflect.Type) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if !f.Anonymous && f.IsExported() && !yield(f.Tag.Get("yaml"), f.Type) {
				return
			}
		}
	}
}

// similar suggests the key that differs by one or two letters.
func similar(t reflect.Type, key string) string {
	best, at := "", 3
	for name := range fields(t) {
		if d := distance(name, key); d < at && d < len(name)/2+1 {
			best, at = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the Levenshtein distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func isNumber(k reflect.Kind) bool {
	return k >= reflect.Int && k <= reflect.Uint64
}

// number is a whole number as pncd takes it. A leading zero means octal to some readers and nothing to others.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*|0x[0-9A-Fa-f]+)$`)

// fits says whether a scalar is a whole number that a type holds: decimal, or hexadecimal with 0x.
func fits(n *yaml.Node, t reflect.Type) bool {
	if n.Tag != "!!int" || !number.MatchString(n.Value) {
		return false
	}
	var err error
	if t.Kind() >= reflect.Uint {
		_, err = strconv.ParseUint(n.Value, 0, t.Bits())
	} else {
		_, err = strconv.ParseInt(n.Value, 0, t.Bits())
	}
	return err == nil
}

// got says what is there.
func got(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return strconv.Quote(short(n.Value)) // a text, whatever it looks like
	}
	return short(n.Value)
}

// wanted says in an operator's words what a type holds.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.String:
		return "a text"
	default:
		return "a whole number"
	}
}
