package bgp

import (
	"context"
	"time"

	"pncd/bgp/engine"
)

// Defaults and bounds of OwnRestart.
const (
	DefaultRestartTime = 120 * time.Second
	DefaultDeferral    = 60 * time.Second
	maxRestartTime     = (1<<12 - 1) * time.Second // RFC 4724 section 3
)

// settleTime is how long the announcements have to be as they should be before they count as complete:
// at a start, prefixes come from several places.
const settleTime = 2 * time.Second

// OwnRestart says how this node's own restarts go (RFC 4724 section 4.1). Neighbours with GracefulRestart are
// asked to keep what it announces while it is gone; what forwards is the router, so that still holds.
type OwnRestart struct {
	Enabled bool
	Time    time.Duration // how long a restart may take, whole seconds up to 4095; 0: 120 s
	// Deferral bounds how long after a restart neighbours wait to hear that everything is announced
	// (End-of-RIB); what they don't have again by then they drop. 0: 60 s.
	Deferral time.Duration
	// Restarted says that this start follows an end without withdrawal, a crash or one with Keep.
	Restarted bool
	// Keep lets a clean end leave the announcements with the neighbours, as a crash does.
	Keep bool
}

func (r *OwnRestart) complete() {
	if r.Time == 0 {
		r.Time = DefaultRestartTime
	}
	if r.Deferral == 0 {
		r.Deferral = DefaultDeferral
	}
}

func (r *OwnRestart) check() (errs []error) {
	if r.Time < time.Second || r.Time > maxRestartTime || r.Time%time.Second != 0 {
		errs = append(errs, wrong("restart time", "%s must be whole seconds from 1 s to %s (RFC 4724 section 3)", r.Time, maxRestartTime))
	}
	if r.Deferral < 0 {
		errs = append(errs, wrong("deferral", "%s is negative", r.Deferral))
	}
	if r.Keep && !r.Enabled {
		errs = append(errs, wrong("keep", "needs graceful restart: neighbours would drop the announcements with the session"))
	}
	return errs
}

// same reports whether another differs in nothing that neighbours were told.
func (r OwnRestart) same(o OwnRestart) bool {
	return r.Enabled == o.Enabled && r.Time == o.Time && r.Deferral == o.Deferral
}

// engine is what the engine has to know.
func (r *OwnRestart) engine() engine.OwnRestart {
	if !r.Enabled {
		return engine.OwnRestart{}
	}
	return engine.OwnRestart{Time: r.Time, Restarted: r.Restarted}
}

// coming is the time after a restart in which announcements come back. It is pure.
type coming struct {
	pending bool
	by      time.Time // over at the latest
	since   time.Time // everything is announced since; zero while it is not
}

func (r *OwnRestart) begin(now time.Time) coming {
	return coming{pending: r.Enabled && r.Restarted, by: now.Add(r.Deferral)}
}

// over reports once that neighbours may be told that everything is announced.
func (c *coming) over(now time.Time, announced bool) bool {
	switch {
	case !announced:
		c.since = time.Time{}
	case c.since.IsZero():
		c.since = now
	}
	settled := !c.since.IsZero() && !now.Before(c.since.Add(settleTime))
	return c.pending && (settled || !now.Before(c.by))
}

// comeBack ends a restart when that is due.
func (s *Speaker) comeBack(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.coming.pending {
		return
	}
	missing := s.missing()
	if !s.coming.over(s.clock(), len(missing) == 0) {
		return
	}
	if err := s.eng.EndOfRIB(ctx); err != nil {
		s.log.WithError(err).Error("bgp: neighbours were not told that everything is announced after the restart; trying again")
		return
	}
	s.coming.pending = false
	log := s.log.WithField("announced", len(s.orig.current))
	if len(missing) > 0 {
		log.WithField("missing", missing).Warn("bgp: the restart is over, and not everything is announced; neighbours drop what is missing")
		return
	}
	log.Info("bgp: the restart is over; everything is announced")
}

// missing lists what should be announced and is not. It needs s.mu.
func (s *Speaker) missing() (out []string) {
	if !s.orig.enabled {
		return []string{"the mechanism is disabled"}
	}
	for k := range s.orig.items {
		_, announced := s.orig.current[k]
		switch why := s.orig.status[k]; {
		case why == inactivePolicy: // never
		case why != active || !announced:
			out = append(out, k.String())
		}
	}
	return out
}
