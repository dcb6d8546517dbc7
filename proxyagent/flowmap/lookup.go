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

// addStream counts a stream and shows it to readers.
func (m *Map) addStream(s *stream, k flowKey) {
	m.total.Add(1)
	m.showStream(s, k)
	s.answerChanged(m)
}

func (m *Map) showStream(s *stream, k flowKey) {
	m.flows.Compute(k, func(old slot, loaded bool) (slot, xsync.ComputeOp) { return old.with(s, loaded) })
}

// removeStream hides a stream from readers and counts it no more.
func (m *Map) removeStream(s *stream, k flowKey) {
	m.total.Add(-1)
	m.hideStream(s, k)
	s.answerChanged(m)
}

func (m *Map) hideStream(s *stream, k flowKey) {
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
	fk, at, ageAfter := k.flat(), now.UnixNano(), m.ageAfter.Load()
	for range 2 { // a pair that is settled, or is so no longer, at this moment may be missed in the first round
		e, v := m.lookSettled(&fk, k, at, ageAfter)
		if v != Miss && !m.tagged.Load() {
			return e, v
		}
		if sl, ok := m.flows.Load(fk); ok {
			e2, v2 := sl.first.look(k, at, ageAfter)
			agree(&e, &v, &e2, v2)
			for _, o := range sl.others() {
				e2, v2 = o.look(k, at, ageAfter)
				agree(&e, &v, &e2, v2)
			}
		}
		if v != Miss {
			return e, v
		}
		if m.settled.count.Load() == 0 {
			break
		}
	}
	return Entry{Key: k}, Miss
}

// agree puts what another VLAN says to what is known of a flow.
func agree(e *Entry, v *Verdict, e2 *Entry, v2 Verdict) {
	switch {
	case *v == Miss:
		*e, *v = *e2, v2
	case *v == Hit && v2 == Hit && e.SourceQP == e2.SourceQP:
	case *v == Hit && v2 == Hit:
		e.SourceQP, e.State, e.Source, e.Detail, *v = 0, StateContradicted, SourceNone, "two VLANs disagree", Contradicted
	case *v == Hit:
		*e, *v = *e2, v2
	}
}

// lookSettled looks among the settled pairs.
func (m *Map) lookSettled(fk *flowKey, k Key, at, ageAfter int64) (e Entry, v Verdict) {
	st := &m.settled
	if st.count.Load() == 0 {
		return e, Miss
	}
	st.candidates(settledHash(&fk.receiver, fk.context, fk.destQP), func(ref settledRef, r *settledPair) bool {
		seq := r.seq.Load()
		if seq&1 != 0 || !r.is(ref.side(), fk) {
			return true
		}
		e2, v2 := st.look(r, ref.side(), k, at, ageAfter)
		if r.seq.Load() == seq {
			agree(&e, &v, &e2, v2)
		}
		return true
	})
	return e, v
}

// look reads the answer of one direction of a settled pair as it stands at a time.
func (st *settledStore) look(r *settledPair, side uint8, k Key, at, ageAfter int64) (Entry, Verdict) {
	extra, flags := r.extra.Load(), r.qps.Load()
	seen := st.seenAt(r)
	e := Entry{
		Key:         k,
		SourceQP:    r.qp(1 - side),
		State:       StateConfirmed,
		Source:      r.source(),
		PKey:        r.pkey(side),
		SrcPort:     r.port(side),
		Votes:       r.votes(),
		SeenForward: flags&(settledSeen<<side) != 0,
		SeenReverse: flags&(settledSeen<<(1-side)) != 0,
		Version:     r.versionOf(side),
		LearnedAt:   time.Unix(0, st.time(r.learned.Load())),
		ChangedAt:   time.Unix(0, st.time(r.changed.Load())),
		LastSeen:    time.Unix(0, seen),
		Detail:      st.detail(extra >> settledDetailShift),
	}
	if p := r.pair.Load(); p != nil {
		e.VLAN = p.key.vlan
	}
	v := Hit
	doubted := flags&settledDoubted != 0
	switch {
	case r.revoked():
		v = Contradicted
	case at-seen > ageAfter:
		v = Aged
	case doubted:
		v = Undecided
	}
	switch {
	case doubted: // as that of a link that is suspended
		e.SourceQP, e.State, e.LearnedAt = 0, StateUndecided, time.Time{}
	case v != Hit:
		e.SourceQP, e.Source, e.State = 0, SourceNone, v.state()
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

// Range calls f for each key's entry as it stands at now, in no order, until f returns false. Entries that come, go, are
// settled or settled no more meanwhile may be left out or come twice.
func (m *Map) Range(now time.Time, f func(Entry) bool) {
	if !m.rangeSettled(now, f) {
		return
	}
	m.flows.Range(func(k flowKey, sl slot) bool {
		if m.tagged.Load() {
			if _, settled := m.settled.first(&k); settled { // in another VLAN: it was called for that
				return true
			}
		}
		e, v := m.Lookup(sl.first.key(), now)
		return v == Miss || f(e)
	})
}

// rangeSettled does so for the keys of settled pairs.
func (m *Map) rangeSettled(now time.Time, f func(Entry) bool) bool {
	st := &m.settled
	slabs := st.slabs.Load()
	if slabs == nil {
		return true
	}
	for n := range settledRef(len(*slabs) * settledSlabLen) {
		for _, ref := range [2]settledRef{n << 1, n<<1 | 1} {
			k, ok := st.at(ref).key(ref.side())
			if !ok {
				continue
			}
			if m.tagged.Load() {
				fk := k.flat()
				if first, ok := st.first(&fk); ok && first != ref {
					continue
				}
			}
			if e, v := m.Lookup(k, now); v != Miss && !f(e) {
				return false
			}
		}
	}
	return true
}

// first finds a settled direction of a flow, always the same one as long as none comes or goes. It needs no lock.
func (st *settledStore) first(k *flowKey) (found settledRef, ok bool) {
	if st.count.Load() == 0 {
		return 0, false
	}
	st.candidates(settledHash(&k.receiver, k.context, k.destQP), func(e settledRef, r *settledPair) bool {
		found, ok = e, r.seq.Load()&1 == 0 && r.is(e.side(), k)
		return !ok
	})
	return found, ok
}
