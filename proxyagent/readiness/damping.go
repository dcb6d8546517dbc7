package readiness

import (
	"math"
	"time"
)

// FlapPenalty is what one withdrawal adds to a prefix's penalty, as in the route and interface damping of
// routers.
const FlapPenalty = 1000

// Damping keeps a prefix that comes and goes from shaking the routes of the whole domain. Each withdrawal
// costs FlapPenalty, which decays by half in each HalfLife. A withdrawal that brings the penalty to
// Suppress or above suppresses the prefix until the penalty is below Reuse.
//
// Of RFC 2439 this is the figure of merit for withdrawals alone. Nothing is withdrawn while suppressed, so
// the penalty stays below Suppress + FlapPenalty and needs no ceiling: the longest suppression is
// HalfLife x log2((Suppress + FlapPenalty) / Reuse).
type Damping struct {
	HalfLife time.Duration // 0: no damping
	Suppress int
	Reuse    int // less than Suppress
}

// damper is the penalty of one prefix.
type damper struct {
	penalty    float64 // at time at
	at         time.Time
	suppressed bool
}

// value is the penalty now.
func (d *damper) value(c Damping, now time.Time) float64 {
	if d.penalty == 0 || c.HalfLife <= 0 {
		return 0
	}
	return d.penalty * math.Exp2(-float64(now.Sub(d.at))/float64(c.HalfLife))
}

// flap counts a withdrawal.
func (d *damper) flap(c Damping, now time.Time) {
	if c.HalfLife <= 0 {
		*d = damper{}
		return
	}
	d.penalty, d.at = d.value(c, now)+FlapPenalty, now
	d.suppressed = d.suppressed || d.penalty >= float64(c.Suppress)
}

// held says whether the prefix is suppressed now, and if so until when.
func (d *damper) held(c Damping, now time.Time) (bool, time.Time) {
	if !d.suppressed {
		return false, time.Time{}
	}
	v := d.value(c, now)
	if v < float64(c.Reuse) {
		d.suppressed = false
		return false, time.Time{}
	}
	left := time.Duration(float64(c.HalfLife) * math.Log2(v/float64(c.Reuse)))
	return true, now.Add(left + time.Millisecond) // just below Reuse, not just at it
}

// settle brings the penalty to now by the damping so far, before that changes.
func (d *damper) settle(c Damping, now time.Time) { d.penalty, d.at = d.value(c, now), now }

// forgotten says whether the penalty matters no more: half of what ends a suppression, as in RFC 2439
// section 4.4.2.
func (d *damper) forgotten(c Damping, now time.Time) bool {
	return d.value(c, now) < float64(c.Reuse)/2
}
