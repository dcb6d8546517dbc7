package demo

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// timeline prints what happened, each line with the seconds since the demonstration began. What happened is held until
// something else is said or the step ends, and printed in the order of its times: it is often known later than it happened.
type timeline struct {
	out   io.Writer
	start time.Time
	held  []happening
}

type happening struct {
	at   time.Duration // since the start
	what string
}

func newTimeline(out io.Writer) *timeline { return &timeline{out: out, start: time.Now()} }

// at holds a line for something that happened at t.
func (l *timeline) at(t time.Time, format string, args ...any) {
	l.held = append(l.held, happening{t.Sub(l.start), fmt.Sprintf(format, args...)})
}

// flush prints what is held.
func (l *timeline) flush() {
	slices.SortStableFunc(l.held, func(a, b happening) int { return int(a.at - b.at) })
	for _, h := range l.held {
		l.print("%10.6f s  %s", h.at.Seconds(), h.what)
	}
	l.held = l.held[:0]
}

func (l *timeline) title(format string, args ...any) { l.plain("\n"+format, args...) }

func (l *timeline) plain(format string, args ...any) {
	l.flush()
	l.print(format, args...)
}

func (l *timeline) print(format string, args ...any) {
	_, _ = fmt.Fprintf(l.out, format+"\n", args...) // whoever owns a closed pipe ends the context
}
