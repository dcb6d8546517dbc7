package qdisc

import (
	"fmt"
	"testing"
)

func TestQueueIsCongestedByMarksOrBacklog(t *testing.T) {
	type q = []Stats
	red := func(handle, marks, backlog uint32) Stats {
		return Stats{Kind: "red", Handle: handle, Marks: marks, Backlog: backlog, CountsMarks: true}
	}
	tbf := func(backlog uint32) Stats { return Stats{Kind: "tbf", Backlog: backlog, Marks: 77} }
	steps := func(all ...q) []q { return all }
	for _, tt := range []struct {
		name    string
		backlog uint32
		looks   []q
		want    string // of each look: marks and depth, when congested
	}{
		{"the first look gives no marks", 0, steps(q{red(1, 500, 10)}, q{red(1, 500, 10)}), "- -"},
		{"marks that rise", 0, steps(q{red(1, 5, 0)}, q{red(1, 8, 300)}, q{red(1, 8, 300)}, q{red(1, 9, 0)}), "- 3/300 - 1/0"},
		{"all disciplines are summed, the deepest counts", 0, steps(q{red(1, 0, 0), red(2, 0, 0)}, q{red(1, 1, 50), red(2, 2, 40)}), "- 3/50"},
		{"a backlog", 100, steps(q{tbf(99)}, q{tbf(100)}, q{tbf(101)}, q{tbf(0)}), "- 0/100 0/101 -"},
		{"a backlog is nothing without a threshold", 0, steps(q{tbf(0)}, q{tbf(1 << 30)}), "- -"},
		{"what counts no marks has none", 0, steps(q{{Kind: "tbf", Marks: 1}}, q{{Kind: "tbf", Marks: 9}}), "- -"},
		{"the count wraps", 0, steps(q{red(1, 1<<32-2, 0)}, q{red(1, 1, 0)}), "- 3/0"},
		{"replaced by one of its kind", 0, steps(q{red(1, 500, 0)}, q{red(1, 2, 0)}, q{red(1, 3, 0)}), "- - 1/0"},
		{"replaced by one with another handle", 0, steps(q{red(1, 5, 0)}, q{red(2, 9, 0)}, q{red(2, 10, 0)}), "- - 1/0"},
		{"replaced by another kind", 0, steps(q{red(1, 5, 0)}, q{{Kind: "codel", Handle: 1, Marks: 6, CountsMarks: true}}), "- -"},
		{"gone and there again", 0, steps(q{red(1, 5, 0)}, q{}, q{red(1, 9, 0)}, q{red(1, 10, 0)}), "- - - 1/0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := watch{backlog: tt.backlog}
			got := ""
			for i, look := range tt.looks {
				if i > 0 {
					got += " "
				}
				if c, congested := w.step(look); congested {
					got += fmt.Sprintf("%d/%d", c.Marks, c.Depth)
				} else {
					got += "-"
				}
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
