package flowmap

import (
	"net/netip"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// Tuple names a flow inside a VPN by addresses and UDP source port: a notification of format 2 names no queue
// pair.
type Tuple struct {
	Context  uint32     // VPN context; not the default one, whose flows are not found this way
	Sender   netip.Addr // outer source address of the data
	Receiver netip.Addr // outer destination address of the data
	SrcPort  uint16     // UDP source port of the data
}

// tupleKey is Tuple without pointers.
type tupleKey struct {
	sender, receiver [16]byte
	context          uint32
	port             uint16
}

func (t *Tuple) flat() tupleKey {
	return tupleKey{sender: t.Sender.As16(), receiver: t.Receiver.As16(), context: t.Context, port: t.SrcPort}
}

// several is the Detail of an answer that is none because queue pairs share the port.
const several = "several queue pairs share the UDP source port"

// LookupTuple answers the Source QP of the one flow with this tuple, without locks or allocation; its Key has
// the Destination QP then. Flows that aged or closed give way to one that lives. Several live ones are
// undecided unless all have the same Source QP: the notification may mean any of them.
func (m *Map) LookupTuple(t Tuple, now time.Time) (Entry, Verdict) { return m.lookTuple(t, now, false) }

// LookupTupleAlone is LookupTuple for who keeps copies, which hears of changes by OnAnswer: a flow that has aged makes the
// answer undecided as well, for it may live again without a call.
func (m *Map) LookupTupleAlone(t Tuple, now time.Time) (Entry, Verdict) {
	return m.lookTuple(t, now, true)
}

func (m *Map) lookTuple(t Tuple, now time.Time, alone bool) (Entry, Verdict) {
	k := Key{Context: t.Context, Sender: t.Sender, Receiver: t.Receiver}
	sl, ok := m.tuples.Load(t.flat())
	if !ok {
		return Entry{Key: k}, Miss
	}
	at, ageAfter := now.UnixNano(), m.ageAfter.Load()
	k.DestQP = sl.first.qp
	e, v := sl.first.look(k, at, ageAfter)
	for _, o := range sl.others() {
		k.DestQP = o.qp
		e2, v2 := o.look(k, at, ageAfter)
		switch {
		case !alone && v2.ended():
		case !alone && v.ended():
			e, v = e2, v2
		case v == Hit && v2 == Hit && e.SourceQP == e2.SourceQP:
		default:
			e.Key.DestQP, e.SourceQP, e.Source, e.State, e.Detail, v = 0, 0, SourceNone, StateUndecided, several, Undecided
		}
	}
	return e, v
}

// ended says whether the verdict is about a flow that sends no more.
func (v Verdict) ended() bool { return v == Aged || v == Closed }

// tupleOf is the key that readers find s by, given its meta; false for flows that are not found this way.
func (s *stream) tupleOf(meta uint64) (tupleKey, bool) {
	p := s.pair
	if p.key.context == 0 || meta&metaSeen == 0 {
		return tupleKey{}, false
	}
	k := tupleKey{sender: p.key.low, receiver: p.key.high, context: p.key.context, port: uint16(meta >> metaPortShift)}
	if s.side == 0 {
		k.sender, k.receiver = k.receiver, k.sender
	}
	return k, true
}

// setMeta shows a stream's meta to readers, and the stream under the tuple that the meta gives it.
func (m *Map) setMeta(s *stream, meta uint64) {
	old := s.meta.Load()
	if old == meta {
		return
	}
	s.meta.Store(meta)
	if uint16(meta) != uint16(old) {
		s.answerChanged(m) // the P_Key is part of it
	}
	was, had := s.tupleOf(old)
	is, has := s.tupleOf(meta)
	if had == has && was == is {
		return
	}
	if has {
		m.tuples.Compute(is, func(sl slot, loaded bool) (slot, xsync.ComputeOp) { return sl.with(s, loaded) })
	}
	if had {
		m.hideTuple(s, was)
	}
	s.answerChanged(m) // that of the tuples
}

// leaveTuple hides a stream that is removed.
func (m *Map) leaveTuple(s *stream) {
	if k, ok := s.tupleOf(s.meta.Load()); ok {
		m.hideTuple(s, k)
		s.answerChanged(m)
	}
}

func (m *Map) hideTuple(s *stream, k tupleKey) {
	m.tuples.Compute(k, func(sl slot, loaded bool) (slot, xsync.ComputeOp) { return sl.without(s, loaded) })
}
