// Package pace limits how often something may be sent: per key (a flow, a Source QP) by a window and a
// number per second, and in total by a token bucket. Time is passed in. It is not safe for concurrent
// use.
//
// The limits are those that NICs hold for CNPs: at most one in 50 us and at most 1,000 in a second for
// each queue pair.
package pace

import (
	"time"

	"pncd/proxyagent/internal/lru"
)

// Defaults.
const (
	DefaultWindow    = 50 * time.Microsecond
	DefaultPerSecond = 1000
	DefaultMaxKeys   = 65536
)

// Limits are the limits per key.
type Limits struct {
	Window    time.Duration // at most one in it
	PerSecond int           // at most this many in each second, counted from the first
}

// late is how far behind the latest time another one may be and still count as late, not as a clock that was
// set back: whoever shares the limits reads the clock before it waits for its turn.
const late = int64(time.Second)

// notBefore is t, or last when t is only late: what was used a moment ago stays used.
func notBefore(t, last int64) int64 {
	if t < last && last-t < late {
		return last
	}
	return t
}

// Keyed holds what each key has used. A key that made room for others starts anew when it comes back,
// so a table that is too small lets through more of it than the limits say; Evicted shows that.
type Keyed[K comparable] struct {
	limits Limits
	table  *lru.Table[K, State]
}

// State is what one key has used, with room for what its owner counts between two sendings.
type State struct {
	last   int64  // when it last sent, ns since 1970
	second int64  // when the current second began
	used   uint32 // sent in the current second
	sent   bool   // whether it ever sent: only then the above count

	Offered uint64 // for the owner: how many were offered
	Pending uint64 // for the owner: what gathered since the last sending
}

// NewKeyed returns a Keyed that remembers at most maxKeys keys.
func NewKeyed[K comparable](limits Limits, maxKeys int) *Keyed[K] {
	return &Keyed[K]{limits: limits, table: lru.New[K, State](maxKeys)}
}

// SetLimits changes the limits; what the keys have used stays.
func (k *Keyed[K]) SetLimits(limits Limits) { k.limits = limits }

// State gives the key's state, made if need be. It is valid until the next call.
func (k *Keyed[K]) State(key K) *State {
	if s := k.table.Get(key); s != nil {
		return s
	}
	return k.table.Put(key)
}

// Allowed reports whether the key may send now. It uses nothing up: Sent does.
func (k *Keyed[K]) Allowed(s *State, now time.Time) bool {
	if !s.sent {
		return true
	}
	t := notBefore(now.UnixNano(), s.last)
	if t < s.last {
		return true // the clock was set back: what it used belongs to no time we can compare with
	}
	if t-s.last < int64(k.limits.Window) {
		return false
	}
	return t-s.second >= int64(time.Second) || int(s.used) < k.limits.PerSecond
}

// Sent uses up the key's share for one sending.
func (k *Keyed[K]) Sent(s *State, now time.Time) {
	t := notBefore(now.UnixNano(), s.last)
	if !s.sent || t < s.last || t-s.second >= int64(time.Second) {
		s.second, s.used = t, 0
	}
	s.sent = true
	s.last = t
	s.used++
}

// Len is the number of keys remembered.
func (k *Keyed[K]) Len() int { return k.table.Len() }

// Evicted is the number of keys that made room for others.
func (k *Keyed[K]) Evicted() uint64 { return k.table.Evicted() }
