package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
	"sigs.k8s.io/yaml"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
)

// The output formats.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

func (a *app) checkOutput() error {
	switch a.output {
	case outputTable, outputJSON, outputYAML:
		return nil
	}
	return usagef("--output: %q is none of table, json, yaml", a.output)
}

// marshaler prints fields by the names of the protobuf, all of them: a reader can rely on each.
var marshaler = protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}

// compactJSON gives a message as one line. protojson varies its white space on purpose; this does not.
func compactJSON(m proto.Message) ([]byte, error) {
	raw, err := marshaler.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, raw)
	return out.Bytes(), err
}

func indentedJSON(m proto.Message) ([]byte, error) {
	raw, err := marshaler.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// show prints an answer: as the message, or with table.
func (a *app) show(m proto.Message, table func(w io.Writer) error) error {
	var out []byte
	var err error
	switch a.output {
	case outputJSON:
		out, err = indentedJSON(m)
	case outputYAML:
		if out, err = compactJSON(m); err == nil {
			out, err = yaml.JSONToYAML(out)
		}
	default:
		var b bytes.Buffer
		err = table(&b)
		out = b.Bytes()
	}
	if err != nil {
		return fmt.Errorf("format the answer: %w", err)
	}
	_, err = a.env.Stdout.Write(out)
	return err
}

// grid is a table whose columns are as wide as their widest cell.
type grid struct{ w *tabwriter.Writer }

func newGrid(w io.Writer, header ...string) grid {
	g := grid{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	g.row(header...)
	return g
}

// row adds a row. Empty cells show as a dash, so that columns can be counted.
func (g grid) row(cells ...string) {
	for i, c := range cells {
		cells[i] = cell(c)
	}
	fmt.Fprintln(g.w, strings.Join(cells, "\t"))
}

func (g grid) flush() error { return g.w.Flush() }

// cell makes a value safe for a table: one line without tabs, never empty.
func cell(s string) string {
	s = oneLine(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s))
	if s == "" {
		return "-"
	}
	return s
}

// block prints pairs of name and value, the values in one column. Pairs with an empty value are left out.
func block(w io.Writer, pairs ...[2]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range pairs {
		if p[1] != "" {
			fmt.Fprintf(tw, "%s:\t%s\n", p[0], cell(p[1]))
		}
	}
	return tw.Flush()
}

// age shows how long ago a time was, in its two largest units: 5s, 3m12s, 2h05m, 3d04h. A time in the
// future, by a clock that differs, is 0s.
func (a *app) age(ts *timestamppb.Timestamp) string {
	if ts == nil {
		return ""
	}
	return span(a.env.Now().Sub(ts.AsTime()))
}

// left shows how long it is until then, in one word.
func (a *app) left(ts *timestamppb.Timestamp) string {
	if ts == nil {
		return ""
	}
	return span(ts.AsTime().Sub(a.env.Now()))
}

func span(d time.Duration) string {
	d = max(0, d)
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
}

const timeLayout = "2006-01-02T15:04:05.000Z"

// clock shows a time in UTC to the millisecond.
func clock(ts *timestamppb.Timestamp) string {
	if ts == nil {
		return ""
	}
	return ts.AsTime().UTC().Format(timeLayout)
}

// qp shows a queue pair; nothing for zero, which no data QP has.
func qp(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", n)
}

func number[T ~uint32 | ~uint64 | ~int](n T) string { return fmt.Sprint(n) }

// numberOr is number with nothing for zero.
func numberOr[T ~uint32 | ~uint64 | ~int](n T) string {
	if n == 0 {
		return ""
	}
	return number(n)
}

// plural is a number with its noun: 1 time, 2 times.
func plural[T ~uint32 | ~uint64 | ~int](n T, noun string) string {
	if n == 1 {
		return number(n) + " " + noun
	}
	return number(n) + " " + noun + "s"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// enum shows a value by its name without the enum's prefix, in lower case with dashes; nothing for the
// unspecified one. A value that this pncctl does not know shows as its number.
func enum(e protoreflect.Enum) string {
	if e.Number() == 0 {
		return ""
	}
	v := e.Descriptor().Values().ByNumber(e.Number())
	if v == nil {
		return fmt.Sprint(e.Number())
	}
	return enumName(v)
}

func enumName(v protoreflect.EnumValueDescriptor) string {
	unspecified := v.Parent().(protoreflect.EnumDescriptor).Values().ByNumber(0)
	prefix := strings.TrimSuffix(string(unspecified.Name()), "UNSPECIFIED")
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix)), "_", "-")
}

// outcome shows an outcome as counters and filters name it, and the part that it belongs to.
func outcome(o pncv1.Outcome) (part, name string) {
	p := evidence.PartOf(o)
	if p == evidence.PartNone {
		return "", enum(o)
	}
	return p.String(), evidence.Name(o)
}
