package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reportRow is a line of docs/implementation-report.md.
type reportRow struct {
	line                      int
	rule, source, level, done string
	tests                     []string // file:TestName
}

var (
	reportTest   = regexp.MustCompile("`([^`]+_test\\.go):((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	reportLevels = []string{"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "own"}
)

// reportRows reads the tables: rule, source, level, implemented, tests.
func reportRows(text string) (rows []reportRow, bad []string) {
	for i, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule |") {
			continue
		}
		if len(cells) != 5 {
			bad = append(bad, line)
			continue
		}
		r := reportRow{line: i + 1, rule: strings.TrimPrefix(cells[0], "| "), source: cells[1], level: cells[2], done: cells[3]}
		last := cells[4]
		for _, m := range reportTest.FindAllStringSubmatch(last, -1) {
			r.tests = append(r.tests, m[1]+":"+m[2])
			last = strings.Replace(last, m[0], "", 1)
		}
		if strings.Contains(last, "`") {
			bad = append(bad, line) // something that looks like a test and is none
		}
		rows = append(rows, r)
	}
	return rows, bad
}

// Every rule of the implementation report that is said to be kept has a test, and each test exists.
func TestTheImplementationReportNamesTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "implementation-report.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, bad := reportRows(string(text))
	for _, line := range bad {
		t.Errorf("no row of five cells with tests as `file_test.go:TestName`: %s", line)
	}
	if len(rows) < 50 {
		t.Fatalf("%d rows: the test doesn't read the tables", len(rows))
	}
	sources := map[string]string{}
	for _, r := range rows {
		if r.rule == "" || r.source == "" || !slices.Contains(reportLevels, r.level) {
			t.Errorf("line %d: rule, source or level is wrong: %+v", r.line, r)
		}
		switch {
		case r.done != "yes" && r.done != "no" && r.done != "does not apply":
			t.Errorf("line %d: implemented is %q", r.line, r.done)
		case r.done == "yes" && len(r.tests) == 0:
			t.Errorf("line %d: said to be implemented, and no test holds it: %s", r.line, r.rule)
		}
		for _, name := range r.tests {
			file, test, _ := strings.Cut(name, ":")
			if _, read := sources[file]; !read {
				b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
				if err != nil {
					t.Errorf("line %d: %v", r.line, err)
				}
				sources[file] = string(b)
			}
			if !strings.Contains(sources[file], "\nfunc "+test+"(") {
				t.Errorf("line %d: no %s in %s", r.line, test, file)
			}
		}
	}
}

func TestTheImplementationReportIsReadAsItIsWritten(t *testing.T) {
	rows, bad := reportRows("# Title\n| rule | source | level | implemented | tests |\n|---|---|---|---|---|\n" +
		"| a rule | RFC 1 section 2 | MUST | yes | `a/b_test.go:TestX` and `c_test.go:FuzzY` |\n| short | row |\n| b | RFC 1 | MAY | no | `none` |\n")
	if len(rows) != 2 || !slices.Equal(rows[0].tests, []string{"a/b_test.go:TestX", "c_test.go:FuzzY"}) || rows[0].line != 4 ||
		rows[0].done != "yes" || rows[0].level != "MUST" || len(bad) != 2 {
		t.Errorf("%+v, %q", rows, bad)
	}
}
