package backoff

import (
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// runs gives when it runs for reasons at these times, in ms.
func runs(c Config, reasons ...int) (out []int) {
	var s State
	var due time.Time
	run := func() {
		s.Ran(due, c)
		out = append(out, int(due.Sub(start)/time.Millisecond))
		due = time.Time{}
	}
	for _, ms := range reasons {
		now := start.Add(time.Duration(ms) * time.Millisecond)
		if !due.IsZero() && !due.After(now) {
			run()
		}
		if due.IsZero() {
			due = s.Next(now, c)
		}
	}
	run()
	return out
}

func TestSpacing(t *testing.T) {
	every10ms := make([]int, 1000)
	for i := range every10ms {
		every10ms[i] = 10 * i
	}
	for _, tc := range []struct {
		name    string
		c       Config
		reasons []int
		want    []int
	}{
		{"one", Default, []int{0}, []int{50}},
		{"several before the first run are one", Default, []int{0, 20, 49}, []int{50}},
		{"the second waits", Default, []int{0, 60}, []int{50, 250}},
		{"one after the wait is over has the initial wait", Default, []int{0, 1000}, []int{50, 1050}},
		{"the waits double up to the longest", Default, every10ms, []int{50, 250, 650, 1450, 3050, 6250, 11250}},
		{"after quiet it begins anew", Default, []int{0, 60, 260, 11000, 11060, 21300, 21400}, []int{50, 250, 650, 11050, 11250, 21350, 21550}},
		{"shorter than twice the longest is not quiet", Default, []int{0, 60, 260, 660, 10600, 10700}, []int{50, 250, 650, 1450, 10650, 13850}},
		{"nothing but a fixed interval", Config{Second: 5 * time.Second, Max: 5 * time.Second}, []int{0, 10, 5010}, []int{0, 5000, 10000}},
	} {
		if got := runs(tc.c, tc.reasons...); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestAShorterMaximumCountsAtOnce(t *testing.T) {
	var s State
	for range 10 {
		s.Ran(start, Default)
	}
	if got := s.Next(start, Config{Max: time.Second}); got != start.Add(time.Second) {
		t.Errorf("%s after the last run", got.Sub(start))
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []Config{{Initial: 2, Max: 1}, {Second: 2, Max: 1}, {Initial: -1, Max: 1}, {Second: -1, Max: 1}} {
		if c.Check() == nil {
			t.Errorf("%+v is good", c)
		}
	}
	if err := Default.Check(); err != nil {
		t.Error(err)
	}
	if (Config{}).OrDefault() != Default || (Config{Max: 1}).OrDefault() != (Config{Max: 1}) {
		t.Error("OrDefault")
	}
}
