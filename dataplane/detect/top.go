package detect

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// TopConfig says which flows of a link count as its top ones.
type TopConfig struct {
	Window time.Duration // what is named was seen in the last one to two of it
	Count  int           // flows named at most
	Share  int           // percent of the octets seen that a flow has at least, 1 to 100
}

const (
	// topEntries bounds a window's summary. A flow with more than 1 in so many of the octets is in it.
	topEntries = 256
	// minSeen is how many packets of a flow must have been seen: fewer don't tell it from chance.
	minSeen = 4
)

// TopFlow is a flow that carries much of what leaves by a link.
type TopFlow struct {
	Sender, Receiver netip.Addr // of the data, as in Event
	SrcPort          uint16     // UDP source port of its last data packet
	DestQP           uint32     // 24 bits
	Octets           uint64     // of its packets that were seen, at least
}

// TopFlows remembers which flows carry most, in bounded memory. Its methods may be called from any goroutine.
//
// Of the current window and of the one before it, it keeps a Space-Saving summary by octets (Metwally, Agrawal, El
// Abbadi, ICDT 2005): when there is no room, a flow takes the place of the least one, and what that had is known as
// the most by which the newcomer's count may be wrong. Only what is sure counts: an innocent flow must not be named.
type TopFlows struct {
	config TopConfig

	mu        sync.Mutex
	began     time.Time // of the current window
	now, last summary
}

// NewTopFlows returns one that has seen nothing.
func NewTopFlows(c TopConfig) *TopFlows {
	return &TopFlows{config: c, now: newSummary(), last: newSummary()}
}

// Observe takes a data packet of a flow, of so many octets on the wire.
func (t *TopFlows) Observe(f *TopFlow, octets int, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(at)
	t.now.add(f, uint64(max(octets, 0)))
}

// Top lists the top flows, that with most octets first; none when no flow stands out.
func (t *TopFlows) Top(now time.Time) []TopFlow {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	sure := map[topKey]counter{}
	total := t.now.octets + t.last.octets
	for _, s := range []*summary{&t.last, &t.now} {
		for i := range s.counters {
			c, sum := &s.counters[i], sure[s.counters[i].key]
			sum.flow = c.flow
			sum.flow.Octets = sum.octets + c.octets - c.over
			sum.octets, sum.seen = sum.flow.Octets, sum.seen+c.seen
			sure[c.key] = sum
		}
	}
	var out []TopFlow
	for _, c := range sure {
		if c.seen >= minSeen && c.octets*100 >= total*uint64(t.config.Share) {
			out = append(out, c.flow)
		}
	}
	slices.SortFunc(out, func(a, b TopFlow) int {
		return cmp.Or(cmp.Compare(b.Octets, a.Octets), a.Sender.Compare(b.Sender), a.Receiver.Compare(b.Receiver), cmp.Compare(a.DestQP, b.DestQP))
	})
	return out[:min(len(out), t.config.Count)]
}

// turn begins another window when the current one is over.
func (t *TopFlows) turn(now time.Time) {
	switch age := now.Sub(t.began); {
	case age < 0: // a packet from just before, or the clock was set back
		t.began = now
	case age < t.config.Window:
	case age < 2*t.config.Window:
		t.now, t.last = t.last, t.now
		t.now.reset()
		t.began = t.began.Add(t.config.Window)
	default:
		t.now.reset()
		t.last.reset()
		t.began = now
	}
}

// topKey is a flow as the notifier paces it.
type topKey struct {
	sender, receiver netip.Addr
	destQP           uint32
}

// counter is what a summary knows of a flow.
type counter struct {
	key    topKey
	flow   TopFlow
	octets uint64
	over   uint64 // of octets, at most so many are others'
	seen   uint64 // packets since it is in
}

// summary is a Space-Saving summary of one window.
type summary struct {
	at       map[topKey]int // into counters
	counters []counter
	octets   uint64
}

func newSummary() summary {
	return summary{at: make(map[topKey]int, topEntries), counters: make([]counter, 0, topEntries)}
}

func (s *summary) reset() {
	clear(s.at)
	s.counters, s.octets = s.counters[:0], 0
}

func (s *summary) add(f *TopFlow, octets uint64) {
	s.octets += octets
	key := topKey{f.Sender, f.Receiver, f.DestQP}
	i, known := s.at[key]
	switch {
	case known:
	case len(s.counters) < topEntries:
		i = len(s.counters)
		s.counters = append(s.counters, counter{key: key})
		s.at[key] = i
	default:
		i = s.least()
		c := &s.counters[i]
		delete(s.at, c.key)
		*c = counter{key: key, octets: c.octets, over: c.octets}
		s.at[key] = i
	}
	c := &s.counters[i]
	c.flow = *f
	c.octets += octets
	c.seen++
}

func (s *summary) least() (at int) {
	for i := range s.counters {
		if s.counters[i].octets < s.counters[at].octets {
			at = i
		}
	}
	return at
}
