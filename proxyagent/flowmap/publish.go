package flowmap

import "time"

// answer is what readers see of a stream without the lock. It never changes: a change is a new answer.
type answer struct {
	link      *link // nil when the Source QP is not known by a link
	sourceQP  uint32
	votes     uint32
	state     State
	source    Source
	suspended bool
	version   uint64
	learned   int64
	changed   int64
	detail    string
}

// publish sets a stream's answer and tells the watchers. The link is that of a known answer, else nil.
func (sh *shard) publish(s *stream, state State, source Source, l *link, at int64, detail string) {
	a := &answer{state: state, source: source, changed: at, detail: detail, version: sh.m.version.Add(1)}
	if l != nil {
		a.link, a.sourceQP, a.votes, a.learned, a.suspended = l, l.partner(s).qp, l.votes, l.learned, l.suspended
	}
	sh.store(s, a)
	sh.review(s)
}

func (sh *shard) store(s *stream, a *answer) {
	old := s.answer.Swap(a)
	if was, is := old.known(), a.known(); was != is {
		if is {
			sh.m.known.Add(1)
		} else {
			sh.m.known.Add(-1)
		}
	}
	if sh.m.watching() {
		sh.m.tell(s.entry(s.key(), a))
	}
	s.answerChanged(sh.m)
}

func (sh *shard) publishLink(l *link, state State, at int64, detail string) {
	for _, s := range l.streams {
		sh.publish(s, state, l.source, l, at, detail)
	}
}

func (a *answer) known() bool {
	return a != nil && !a.suspended && (a.state == StateLearned || a.state == StateConfirmed)
}

// verdict is the answer's verdict when the pair was last seen at seen and the time is now.
func (a *answer) verdict(now, seen, ageAfter int64) Verdict {
	switch a.state {
	case StateLearned, StateConfirmed:
		switch {
		case a.link != nil && a.link.revoked.Load():
			return Contradicted
		case now-seen > ageAfter:
			return Aged
		case a.suspended:
			return Undecided
		}
		return Hit
	case StateContradicted:
		return Contradicted
	case StateAged:
		return Aged
	case StateClosed:
		return Closed
	case StateUnsupported:
		return Unsupported
	}
	return Undecided
}

// seen is when the pair of the stream was last seen, by a's link.
func (s *stream) seen(a *answer) int64 {
	if a.link != nil {
		return a.link.lastSeen()
	}
	return s.lastSeen.Load()
}

// entry builds the entry that readers get, without the lock and without allocation.
func (s *stream) entry(k Key, a *answer) Entry {
	meta := s.meta.Load()
	e := Entry{
		Key:         k,
		SourceQP:    a.sourceQP,
		State:       a.state,
		Source:      a.source,
		PKey:        uint16(meta),
		VLAN:        s.vlan,
		SrcPort:     uint16(meta >> metaPortShift),
		Votes:       a.votes,
		SeenForward: meta&metaSeen != 0,
		Version:     a.version,
		ChangedAt:   time.Unix(0, a.changed),
		LastSeen:    time.Unix(0, s.seen(a)),
		Detail:      a.detail,
	}
	if a.known() {
		e.LearnedAt = time.Unix(0, a.learned)
	}
	if l := a.link; l != nil {
		e.SeenReverse = l.partner(s).meta.Load()&metaSeen != 0
	}
	if a.suspended {
		e.State, e.SourceQP = StateUndecided, 0
	}
	return e
}

func (s *stream) key() Key {
	p := s.pair
	return Key{Context: p.key.context, Sender: p.addr[1-s.side], Receiver: p.addr[s.side], DestQP: s.qp}
}
