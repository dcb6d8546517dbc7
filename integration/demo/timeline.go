package demo

import (
	"fmt"
	"io"
	"time"
)

// timeline prints what happened, each line with the seconds since the demonstration began.
type timeline struct {
	out   io.Writer
	start time.Time
}

func newTimeline(out io.Writer) *timeline { return &timeline{out: out, start: time.Now()} }

// at prints a line for something that happened at t.
func (l *timeline) at(t time.Time, format string, args ...any) {
	l.plain("%10.6f s  %s", t.Sub(l.start).Seconds(), fmt.Sprintf(format, args...))
}

func (l *timeline) title(format string, args ...any) { l.plain("\n"+format, args...) }

func (l *timeline) plain(format string, args ...any) {
	_, _ = fmt.Fprintf(l.out, format+"\n", args...) // whoever owns a closed pipe ends the context
}
