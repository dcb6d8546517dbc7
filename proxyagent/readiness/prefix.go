package readiness

import (
	"net/netip"
	"time"
)

// Config says when a prefix is announced.
type Config struct {
	// Always announces whether ready or not; readiness is still told.
	Always bool
	// WithdrawAfter is how long a prefix must have been unready before it is withdrawn, and AnnounceAfter
	// how long ready before it is announced, also for the first time.
	WithdrawAfter, AnnounceAfter time.Duration
	Damping                      Damping
}

// Key names a prefix.
type Key struct {
	Context string // the VPN; empty for the default one
	Prefix  netip.Prefix
}

// Status is where a prefix stands after a step.
type Status struct {
	Key
	State   State
	Ready   bool
	Failed  []Failure // why it is not ready, the first one first
	Since   time.Time // of State
	Until   time.Time // when State ends if nothing else changes; zero: when the conditions change
	Penalty float64   // of the damping, now
}

// Change is a step from one state to another, or from ready to not ready or back within one.
type Change struct {
	Status
	From     State
	WasReady bool
}

// Withdrawn reports whether the capability is no longer announced for want of readiness.
func (c *Change) Withdrawn() bool {
	return c.From.Announced() && !c.State.Announced() && c.State != Off
}

// prefix is the state machine of one prefix.
type prefix struct {
	known     bool // stepped before
	enabled   bool
	ready     bool
	announced bool
	changed   time.Time // of ready
	state     State
	since     time.Time
	damper    damper
}

// step takes what is wrong now, and gives where the prefix stands.
func (p *prefix) step(c *Config, now time.Time, enabled bool, failed []Failure) (out Status, withdrawn bool) {
	ready := enabled && len(failed) == 0
	if !p.known || p.ready != ready || p.enabled != enabled {
		p.known, p.ready, p.enabled, p.changed = true, ready, enabled, now
	}
	state, until := p.decide(c, now)
	if p.announced && !state.Announced() && state != Off {
		withdrawn = true
		p.damper.flap(c.Damping, now)
	}
	p.announced = state.Announced()
	if p.since.IsZero() || p.state != state {
		p.state, p.since = state, now
	}
	return Status{
		State: state, Ready: ready, Failed: failed, Since: p.since, Until: until, Penalty: p.damper.value(c.Damping, now),
	}, withdrawn
}

// decide gives the state, and until when it lasts while nothing changes.
func (p *prefix) decide(c *Config, now time.Time) (State, time.Time) {
	switch {
	case !p.enabled:
		return Off, time.Time{}
	case c.Always, p.announced && p.ready:
		return Announced, time.Time{}
	case p.announced:
		if end := p.changed.Add(c.WithdrawAfter); now.Before(end) {
			return Losing, end
		}
		return Held, time.Time{}
	case !p.ready:
		return Held, time.Time{}
	}
	if end := p.changed.Add(c.AnnounceAfter); now.Before(end) {
		return Waiting, end
	}
	if held, end := p.damper.held(c.Damping, now); held {
		return Suppressed, end
	}
	return Announced, time.Time{}
}
