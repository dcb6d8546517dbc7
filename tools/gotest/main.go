// Command gotest reads `go test -json` and prints what a person wants to see: a line for each package,
// the output of failed tests, the tests that were skipped with their reasons. It exits with 1 when a
// test failed, and where CI is set also when a test was skipped that .ci/allowed-skips does not list.
//
// A line of that file is a test's name, as in pncd/pnc.TestX, and the reason, after a space.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

type report struct {
	figures bool
	output  map[string][]string // by test, or by package for what belongs to none
	skipped map[string]string   // reason by test
	failed  bool
	passed  int
}

func main() {
	figures := flag.Bool("figures", false, "print the lines that tests log with 'figures: ' in front")
	flag.Parse()
	r := report{figures: *figures, output: map[string][]string{}, skipped: map[string]string{}}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	dec := json.NewDecoder(in)
	for dec.More() {
		var e event
		if err := dec.Decode(&e); err != nil {
			fmt.Fprintln(os.Stderr, "gotest: this is not the output of go test -json:", err)
			os.Exit(1)
		}
		r.event(e)
	}
	if r.passed == 0 && !r.failed {
		fmt.Println("no test ran")
		r.failed = true
	}
	if !r.skipsAllowed() || r.failed {
		os.Exit(1)
	}
}

func (r *report) event(e event) {
	id := e.Package
	if e.Test != "" {
		id += "." + e.Test
	}
	if e.Action == "build-output" {
		fmt.Print(e.Output)
		return
	}
	switch e.Action {
	case "output":
		r.output[id] = append(r.output[id], e.Output)
		if _, figure, ok := strings.Cut(e.Output, ": figures: "); ok && r.figures {
			fmt.Print(figure)
		}
		return
	case "fail":
		r.failed = true
		fmt.Print(strings.Join(r.output[id], ""))
		if e.Test == "" {
			fmt.Printf("FAIL\t%s\t%.1fs\n", e.Package, e.Elapsed)
		}
	case "skip":
		if e.Test != "" {
			r.skipped[id] = reason(r.output[id])
		}
	case "pass":
		if e.Test == "" {
			fmt.Printf("ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
		}
		if e.Test != "" {
			r.passed++
		}
	default:
		return
	}
	delete(r.output, id)
}

// reason takes the text of t.Skip from what the test printed: "    file.go:1: reason".
func reason(lines []string) string {
	for _, l := range lines {
		if i := strings.Index(l, ".go:"); i >= 0 {
			_, text, _ := strings.Cut(l[i:], ": ")
			return strings.TrimSpace(text)
		}
	}
	return "no reason given"
}

func (r *report) skipsAllowed() bool {
	allowed := map[string]string{}
	if b, err := os.ReadFile(".ci/allowed-skips"); err == nil {
		for _, l := range strings.Split(string(b), "\n") {
			if name, why, ok := strings.Cut(strings.TrimSpace(l), " "); ok && !strings.HasPrefix(name, "#") {
				allowed[name] = why
			}
		}
	}
	names := make([]string, 0, len(r.skipped))
	for n := range r.skipped {
		names = append(names, n)
	}
	sort.Strings(names)
	ok := true
	for _, n := range names {
		fmt.Printf("SKIP\t%s: %s\n", n, r.skipped[n])
		if _, listed := allowed[n]; !listed && os.Getenv("CI") != "" {
			fmt.Printf("FAIL\t%s was skipped, and .ci/allowed-skips does not list it\n", n)
			ok = false
		}
	}
	return ok
}
