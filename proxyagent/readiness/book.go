package readiness

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Input is what is wrong with one prefix now: nothing means that it is ready.
type Input struct {
	Key
	Failed []Failure // by Reason in order
}

// Counters count what happened since the book was made.
type Counters struct {
	Announced  uint64              // times that a prefix was announced
	Suppressed uint64              // times that damping held back a prefix that was ready
	Withdrawn  [reasonCount]uint64 // by the first reason
	Lost       [reasonCount]uint64 // times that a prefix lost readiness, by the first reason
	Prefixes   [stateCount]int     // now, by state
}

// Book holds the prefixes. It is not safe for concurrent use.
type Book struct {
	cfg      Config
	prefixes map[Key]*prefix
	gone     map[Key]*prefix // left with a penalty that is not forgotten: coming back does not clear it
	status   map[Key]Status
	counters Counters
}

// NewBook makes an empty book.
func NewBook(c Config) *Book {
	return &Book{cfg: c, prefixes: map[Key]*prefix{}, gone: map[Key]*prefix{}, status: map[Key]Status{}}
}

// Configure changes the configuration; what the change means for the prefixes shows in the next step.
func (b *Book) Configure(c Config, now time.Time) {
	if b.cfg.Damping != c.Damping {
		for _, set := range []map[Key]*prefix{b.prefixes, b.gone} {
			for _, p := range set {
				p.damper.settle(b.cfg.Damping, now)
			}
		}
	}
	b.cfg = c
}

// Step takes every prefix that there is, with what is wrong with it, and gives what changed, by context
// and prefix. Prefixes that are not named any more are dropped. With enabled false all are off.
func (b *Book) Step(now time.Time, enabled bool, in []Input) []Change {
	var out []Change
	seen := make(map[Key]bool, len(in))
	for i := range in {
		k := in[i].Key
		if seen[k] {
			continue
		}
		seen[k] = true
		p := b.find(k)
		was, known := b.status[k]
		st, withdrawn := p.step(&b.cfg, now, enabled, in[i].Failed)
		st.Key = k
		b.status[k] = st
		if known && was.State == st.State && was.Ready == st.Ready {
			continue
		}
		c := Change{Status: st, From: was.State, WasReady: was.Ready}
		b.count(&c, withdrawn)
		out = append(out, c)
	}
	b.drop(now, seen)
	slices.SortFunc(out, func(x, y Change) int { return compareKeys(x.Key, y.Key) })
	return out
}

func (b *Book) find(k Key) *prefix {
	p := b.prefixes[k]
	if p == nil {
		if p = b.gone[k]; p != nil {
			delete(b.gone, k)
			p = &prefix{damper: p.damper}
		} else {
			p = new(prefix)
		}
		b.prefixes[k] = p
	}
	return p
}

// drop forgets the prefixes that were not seen. What damping knows of them stays until it has decayed, so
// that a request or route that is taken back and made again does not escape it.
func (b *Book) drop(now time.Time, seen map[Key]bool) {
	for k, p := range b.prefixes {
		if !seen[k] {
			delete(b.prefixes, k)
			delete(b.status, k)
			b.gone[k] = p
		}
	}
	maps.DeleteFunc(b.gone, func(_ Key, p *prefix) bool { return p.damper.forgotten(b.cfg.Damping, now) })
}

func (b *Book) count(c *Change, withdrawn bool) {
	first := None
	if len(c.Failed) > 0 {
		first = c.Failed[0].Reason
	}
	if c.State.Announced() && !c.From.Announced() {
		b.counters.Announced++
	}
	if withdrawn {
		b.counters.Withdrawn[first]++
	}
	if c.WasReady && !c.Ready && c.State != Off {
		b.counters.Lost[first]++
	}
	if c.State == Suppressed {
		b.counters.Suppressed++
	}
}

// Status lists the prefixes, by context and prefix.
func (b *Book) Status() []Status {
	return slices.SortedFunc(maps.Values(b.status), func(x, y Status) int { return compareKeys(x.Key, y.Key) })
}

// Get gives the status of one prefix.
func (b *Book) Get(k Key) (Status, bool) {
	st, ok := b.status[k]
	return st, ok
}

// Counters gives the counters.
func (b *Book) Counters() Counters {
	c := b.counters
	for _, st := range b.status {
		c.Prefixes[st.State]++
	}
	return c
}

// Wake gives when a prefix changes its state although nothing else changes; zero: none does.
func (b *Book) Wake() (at time.Time) {
	for _, st := range b.status {
		if !st.Until.IsZero() && (at.IsZero() || st.Until.Before(at)) {
			at = st.Until
		}
	}
	return at
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Context, b.Context), a.Prefix.Compare(b.Prefix))
}
