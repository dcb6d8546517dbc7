// Package backoff spaces what may have to be done again and again, versions of an LSP and runs of SPF: soon after
// quiet, then less and less often as long as there is a reason to. It is the scheme that routers have as
// lsp-gen-interval and spf-interval with three times. It is pure.
package backoff

import (
	"fmt"
	"time"
)

// Config is the three times.
type Config struct {
	Initial time.Duration // from the first reason after quiet to the first run
	Second  time.Duration // least time from the first run to the second
	Max     time.Duration // each further one is twice as long as the one before, at most this
}

// Default is 50 ms, 200 ms and 5 s.
var Default = Config{Initial: 50 * time.Millisecond, Second: 200 * time.Millisecond, Max: 5 * time.Second}

// OrDefault gives the default for the zero configuration.
func (c Config) OrDefault() Config {
	if c == (Config{}) {
		return Default
	}
	return c
}

// Check holds the times to their order.
func (c Config) Check() error {
	if c.Initial < 0 || c.Second < 0 || c.Initial > c.Max || c.Second > c.Max {
		return fmt.Errorf("initial %s and second %s must be between 0 and max %s", c.Initial, c.Second, c.Max)
	}
	return nil
}

// State is where one thing that is spaced stands. The zero State has never run.
type State struct {
	ran  time.Time
	hold time.Duration // from ran to the next run
}

// Next is when to run for a reason that has come up now. A reason that comes up before that run needs no other.
func (s State) Next(now time.Time, c Config) time.Time {
	at := now.Add(c.Initial)
	if soonest := s.ran.Add(min(s.hold, c.Max)); !s.ran.IsZero() && soonest.After(at) {
		return soonest
	}
	return at
}

// Ran says that it has run.
func (s *State) Ran(now time.Time, c Config) {
	// Quiet is twice the longest wait, so that what happens every Max does not begin anew each time.
	if s.ran.IsZero() || now.Sub(s.ran) >= 2*c.Max {
		s.hold = 0
	}
	s.ran = now
	s.hold = min(max(c.Second, 2*s.hold), c.Max)
}
