package flowmap

import "sync/atomic"

// link joins the two directions of one connection: the streams' QPs are each other's peers. The first
// five fields never change; the others are guarded by the shard's lock unless they are atomic.
type link struct {
	streams [2]*stream // by the side they go to
	source  Source
	votes   uint32
	learned int64
	context uint32

	exch      *exchange  // CM: the exchange that made it
	cand      *candidate // by PSN alone: the votes for it go on
	hits      uint32     // by ports: responses in sequence, for rule 4's share; halved with against at 64
	against   uint32
	confirmed bool
	suspended bool
	settling  bool        // in the shard's list of those that may be settled
	doubtAt   int64       // since when a PSN step waits for a response; 0 when none does
	revoked   atomic.Bool // another link took one of the QPs (rule 10); set without this shard's lock
}

const linkHitsMax = 64

// lastSeen is when a packet of either direction was last seen, to a millisecond.
func (l *link) lastSeen() int64 {
	return max(l.streams[0].lastSeen.Load(), l.streams[1].lastSeen.Load())
}

// establish makes a link and publishes both directions. The caller has claimed the QPs and has freed the
// streams of other links.
func (sh *shard) establish(l *link, at int64, detail string) {
	for _, s := range l.streams {
		s.link = l
		s.closedAt = 0
		s.pair.countOpen(s)
		if l.source != SourcePSN {
			sh.dropCandidates(s)
		}
	}
	if l.learned == 0 {
		l.learned = at
	}
	sh.c.Learned += 2
	sh.publishLink(l, StateLearned, at, detail)
}

// confirm records that data or an RTU agrees with the link.
func (sh *shard) confirm(l *link, at int64, detail string) {
	if l.confirmed {
		return
	}
	l.confirmed = true
	sh.c.Confirmed += 2
	sh.publishLink(l, StateConfirmed, at, detail)
}

// unlink ends a link with a state for both directions. The votes start again; the PSN sequences of the
// streams go on, so that a counter that began near zero is still known to have.
func (sh *shard) unlink(l *link, state State, at int64, detail string) {
	sh.m.claims.release(l)
	sh.dropExchange(l.exch)
	switch state {
	case StateContradicted:
		sh.c.Contradicted += 2
	case StateClosed:
		sh.c.Closed += 2
	case StateAged:
		sh.c.Aged += 2
	case StateUndecided:
		sh.c.Withdrawn += 2
	}
	for _, s := range l.streams {
		s.link = nil
		sh.dropVotes(s)
		s.jumps, s.inOrder, s.outside = 0, 0, 0
		if state == StateClosed || state == StateAged {
			sh.reset(s)
			s.pair.leave(s)
			s.closedAt = at
		}
		s.pair.countOpen(s)
		if state != StateEvicted { // remove publishes that
			sh.publish(s, state, SourceNone, nil, at, detail)
		}
	}
}

// withdraw ends a link because the traffic speaks against it (rules 4 and 8). What CM said and the traffic
// denies is a contradiction; what votes said is open again.
func (sh *shard) withdraw(l *link, at int64, why string) {
	state := StateUndecided
	if l.source == SourceCM {
		state = StateContradicted
	}
	sh.unlink(l, state, at, why)
}

// restart begins a new life of the stream's QP: what was known of the old one is gone (rule 8).
func (sh *shard) restart(s *stream, at int64, why string) {
	if l := s.link; l != nil {
		other := l.partner(s)
		sh.withdraw(l, at, why)
		sh.reset(other)
	}
	sh.reset(s)
}

// contradict ends a link whose QPs are known to be in other use, with all that its streams had shown.
func (sh *shard) contradict(l *link, at int64, why string) {
	sh.unlink(l, StateContradicted, at, why)
	for _, s := range l.streams {
		sh.reset(s)
	}
}

// suspend holds the answer back, or gives it again, without forgetting it (rule 8).
func (sh *shard) suspend(l *link, on bool, at int64, why string) {
	if l.suspended == on {
		return
	}
	l.suspended = on
	state := StateLearned
	if l.confirmed {
		state = StateConfirmed
	}
	sh.publishLink(l, state, at, why)
}

// swept ends a link that another shard revoked; it reports whether it did.
func (sh *shard) swept(s *stream, at int64) bool {
	if s.link == nil || !s.link.revoked.Load() {
		return false
	}
	sh.contradict(s.link, at, "its QP was taken by a newer connection")
	return true
}

// reset drops all that was learned from a stream's packets; its next packet is its first.
func (sh *shard) reset(s *stream) {
	sh.dropCandidates(s)
	s.epoch++
	s.req, s.resp, s.acked = half{}, half{}, ackHistory{}
	s.voted, s.acks, s.msnSeen, s.outside, s.jumps, s.inOrder = false, 0, false, 0, 0, 0
	s.packets = 0
	s.flowLabel = 0
	s.pair.countAsking(s)
}

// dropVotes forgets the votes for and of a stream and keeps its sequence.
func (sh *shard) dropVotes(s *stream) {
	sh.dropCandidates(s)
	s.epoch++
	s.acks, s.voted = 0, false
}
