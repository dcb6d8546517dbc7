package flowmap

import (
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// slot holds the streams of one key: one, or one for each VLAN; of one tuple, also one for each queue pair.
type slot struct {
	first *stream
	more  *[]*stream // never changed in place; nil with one stream
}

// addStream shows a stream to readers.
func (m *Map) addStream(s *stream, k flowKey) {
	m.total.Add(1)
	m.flows.Compute(k, func(old slot, loaded bool) (slot, xsync.ComputeOp) { return old.with(s, loaded) })
}

// removeStream hides a stream from readers.
func (m *Map) removeStream(s *stream, k flowKey) {
	m.total.Add(-1)
	m.flows.Compute(k, func(old slot, loaded bool) (slot, xsync.ComputeOp) { return old.without(s, loaded) })
}

// with is the slot with one more stream; loaded says whether there was one.
func (sl slot) with(s *stream, loaded bool) (slot, xsync.ComputeOp) {
	if !loaded {
		return slot{first: s}, xsync.UpdateOp
	}
	more := append([]*stream{sl.first}, sl.others()...)
	return slot{s, &more}, xsync.UpdateOp
}

// without is the slot without a stream, deleted when that was the last.
func (sl slot) without(s *stream, loaded bool) (slot, xsync.ComputeOp) {
	if !loaded {
		return slot{}, xsync.CancelOp
	}
	var rest []*stream
	for _, x := range append([]*stream{sl.first}, sl.others()...) {
		if x != s {
			rest = append(rest, x)
		}
	}
	switch len(rest) {
	case 0:
		return slot{}, xsync.DeleteOp
	case 1:
		return slot{first: rest[0]}, xsync.UpdateOp
	}
	more := rest[1:]
	return slot{rest[0], &more}, xsync.UpdateOp
}

func (sl slot) others() []*stream {
	if sl.more == nil {
		return nil
	}
	return *sl.more
}

// Lookup answers the Source QP of a flow, without locks or allocation. Only Hit comes with one. When a
// flow is seen in several VLANs, all of them must agree.
func (m *Map) Lookup(k Key, now time.Time) (Entry, Verdict) {
	sl, ok := m.flows.Load(k.flat())
	if !ok {
		return Entry{Key: k}, Miss
	}
	at, ageAfter := now.UnixNano(), m.ageAfter.Load()
	e, v := sl.first.look(k, at, ageAfter)
	for _, o := range sl.others() {
		e2, v2 := o.look(k, at, ageAfter)
		switch {
		case v == Hit && v2 == Hit && e.SourceQP == e2.SourceQP:
		case v == Hit && v2 == Hit:
			e.SourceQP, e.State, e.Source, e.Detail, v = 0, StateContradicted, SourceNone, "two VLANs disagree", Contradicted
		case v == Hit:
			e, v = e2, v2
		}
	}
	return e, v
}

// look reads a stream's answer as it stands at a time.
func (s *stream) look(k Key, at, ageAfter int64) (Entry, Verdict) {
	a := s.answer.Load()
	e, v := s.entry(k, a), a.verdict(at, s.seen(a), ageAfter)
	if v != Hit && a.known() {
		e.SourceQP, e.Source, e.State = 0, SourceNone, v.state()
	}
	return e, v
}

// state is the state that an entry with this verdict shows.
func (v Verdict) state() State {
	switch v {
	case Contradicted:
		return StateContradicted
	case Aged:
		return StateAged
	case Closed:
		return StateClosed
	case Unsupported:
		return StateUnsupported
	}
	return StateUndecided
}

// Get returns the entry of a flow as it stands at now, whatever its state; false when it was never seen or
// is forgotten.
func (m *Map) Get(k Key, now time.Time) (Entry, bool) {
	e, v := m.Lookup(k, now)
	return e, v != Miss
}

// Range calls f for each entry as it stands at now, in no order, until f returns false. Entries that come or
// go meanwhile may be left out.
func (m *Map) Range(now time.Time, f func(Entry) bool) {
	m.flows.Range(func(_ flowKey, sl slot) bool {
		e, v := m.Lookup(sl.first.key(), now)
		return v == Miss || f(e)
	})
}
