package demo

import (
	"bytes"
	"testing"
	"time"
)

func TestTimesOfAStepRise(t *testing.T) {
	var out bytes.Buffer
	l := newTimeline(&out)
	after := func(d time.Duration) time.Time { return l.start.Add(d) }
	l.at(after(4330*time.Millisecond), "lab is up")
	l.at(after(4*time.Second), "route learned")
	l.at(after(4330*time.Millisecond), "traffic starts")
	l.title("Act 1")
	l.at(after(5*time.Second), "CE")
	l.flush()
	l.flush()
	const want = "  4.000000 s  route learned\n  4.330000 s  lab is up\n  4.330000 s  traffic starts\n\nAct 1\n  5.000000 s  CE\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
