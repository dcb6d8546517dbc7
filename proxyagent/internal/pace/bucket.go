package pace

import "time"

// Bucket is a token bucket. It counts in nanoseconds of credit; where a second does not divide evenly
// it refills a little slower, never faster.
type Bucket struct {
	interval int64 // ns of credit that one token costs
	depth    int64 // ns of credit that the full bucket holds
	credit   int64
	last     int64
	started  bool
}

// NewBucket returns a full Bucket of burst tokens that refills at perSecond. Less than
// one counts as one; more than 10^9 a second counts as that.
func NewBucket(perSecond, burst int) *Bucket {
	b := &Bucket{}
	b.Set(perSecond, burst)
	b.credit = b.depth
	return b
}

// Set changes rate and burst; what was used stays used.
func (b *Bucket) Set(perSecond, burst int) {
	rate := int64(max(perSecond, 1))
	b.interval = (int64(time.Second) + rate - 1) / rate
	b.depth = b.interval * int64(max(burst, 1))
	b.credit = min(b.credit, b.depth)
}

// Take takes one token; false when there is none.
func (b *Bucket) Take(now time.Time) bool {
	t := notBefore(now.UnixNano(), b.last)
	if b.started && t > b.last {
		// Compared before it is added: after a long silence the sum could overflow.
		if idle := t - b.last; idle >= b.depth-b.credit {
			b.credit = b.depth
		} else {
			b.credit += idle
		}
	}
	b.started = true
	b.last = t // also when the clock was set back
	if b.credit < b.interval {
		return false
	}
	b.credit -= b.interval
	return true
}
