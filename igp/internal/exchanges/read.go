// Package exchanges runs exchanges that are written as text against a state machine: packets and times go in, what
// is sent and the state come out. It is for tests.
//
// A file has exchanges, each begun by a line "== name"; what follows a # is a comment. A line is a verb and its
// words. Three verbs are known here, the others are the machine's:
//
//	! reason     the packet before was dropped for this reason, or refused with an error that holds this text
//	. 2s         time passes, Tick is called at each Wake; what is sent must follow:
//	< words      something that was sent
//
// What was sent or refused must be said before anything but "<", "!" and "=" follows, and before the end.
package exchanges

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Exchange is a named part of a file.
type Exchange struct {
	Name string
	body string
}

// Read gives the exchanges of a file, of which there must be at least so many.
func Read(t *testing.T, path string, least int) (all []Exchange) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(raw), "\n== ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		all = append(all, Exchange{name, body})
	}
	if len(all) < least {
		t.Errorf("%s: %d exchanges, must be at least %d", path, len(all), least)
	}
	return all
}

// Verbs is a machine and what can be said to it.
type Verbs interface {
	// Do does a line that is not known here; false: it isn't known there, either.
	Do(words []string) bool
	// Tick gives what the machine sends now, in words.
	Tick() []string
	// Wake is when the machine wants a Tick; zero: never.
	Wake() time.Time
}

// Run does an exchange as a subtest.
func (e Exchange) Run(t *testing.T, name string, begin func(*Script) Verbs) {
	t.Run(name, func(t *testing.T) {
		s := New(t)
		e.run(s, begin(s))
	})
}

func (e Exchange) run(s *Script, v Verbs) {
	s.T.Helper()
	for line := range strings.Lines(e.body) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 0 {
			s.line = strings.TrimSpace(line)
			s.do(v, f)
		}
	}
	s.settled()
}
