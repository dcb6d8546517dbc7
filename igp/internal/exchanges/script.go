package exchanges

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Begin is when exchanges begin.
var Begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Script is an exchange under way.
type Script struct {
	T   testing.TB
	Now time.Time
	// Matches compares what was sent with what should have been; nil: they are the same.
	Matches func(got, want string) bool
	// AnyOrder: what is sent at once has no order.
	AnyOrder bool

	line string
	sent []string
	why  string // of the packet before; "": it was taken
	err  error
}

// New makes a script for verbs outside of an exchange.
func New(t testing.TB) *Script { return &Script{T: t, Now: Begin} }

// Fatalf ends the test with the line that it was at.
func (s *Script) Fatalf(format string, args ...any) {
	s.T.Helper()
	s.T.Fatalf("%q: %s", s.line, fmt.Sprintf(format, args...))
}

// Number reads a word.
func (s *Script) Number(w string) int {
	s.T.Helper()
	n, err := strconv.Atoi(w)
	if err != nil {
		s.Fatalf("%v", err)
	}
	return n
}

// Duration reads a word.
func (s *Script) Duration(w string) time.Duration {
	s.T.Helper()
	d, err := time.ParseDuration(w)
	if err != nil {
		s.Fatalf("%v", err)
	}
	return d
}

// Dropped notes why a packet was dropped; "none": it was not.
func (s *Script) Dropped(why fmt.Stringer) {
	if s.why = why.String(); s.why == "none" {
		s.why = ""
	}
}

// Refused notes the error that a packet was refused with; nil: it was not.
func (s *Script) Refused(err error) { s.err = err }

func (s *Script) do(v Verbs, f []string) {
	s.T.Helper()
	if !slices.Contains([]string{"<", "!", "="}, f[0]) {
		s.settled()
	}
	rest := strings.Join(f[1:], " ")
	switch f[0] {
	case "!":
		if s.err != nil && !strings.Contains(s.err.Error(), rest) || s.err == nil && (s.why == "" || s.why != rest) {
			s.Fatalf("dropped for %q, refused with %v", s.why, s.err)
		}
		s.why, s.err = "", nil
	case ".":
		s.pass(v, s.Duration(f[1]))
	case "<":
		s.expect(rest)
	default:
		if !v.Do(f) {
			s.Fatalf("unknown")
		}
	}
}

func (s *Script) expect(want string) {
	s.T.Helper()
	i := slices.IndexFunc(s.sent, func(got string) bool {
		if s.Matches != nil {
			return s.Matches(got, want)
		}
		return got == want
	})
	if i < 0 || i > 0 && !s.AnyOrder {
		s.Fatalf("sent is %q", s.sent)
	}
	s.sent = slices.Delete(s.sent, i, i+1)
}

// settled fails when something was sent, or refused, that the exchange doesn't mention.
func (s *Script) settled() {
	s.T.Helper()
	if len(s.sent) > 0 || s.why != "" || s.err != nil {
		s.Fatalf("before this: also sent %q, dropped for %q, refused with %v", s.sent, s.why, s.err)
	}
}

// pass lets time pass, with a Tick whenever the machine wants one.
func (s *Script) pass(v Verbs, d time.Duration) {
	s.T.Helper()
	end := s.Now.Add(d)
	for ticks := 0; ; ticks++ {
		at := v.Wake()
		if ticks > 10_000 {
			s.Fatalf("the machine wants a tick at %v again and again", at)
		}
		if at.IsZero() || at.After(end) {
			break
		}
		if at.After(s.Now) {
			s.Now = at
		}
		s.sent = append(s.sent, v.Tick()...)
	}
	s.Now = end
	s.sent = append(s.sent, v.Tick()...)
}
