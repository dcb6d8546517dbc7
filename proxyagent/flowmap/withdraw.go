package flowmap

import "pncd/dataplane/roce"

// sequence takes the PSNs of a packet into one of the stream's halves, and applies the first part of rule
// 8: one jump suspends the pair, a second one ends it; so does going back after idling. It reports
// whether the packet may be used further.
func (sh *shard) sequence(s *stream, h *half, first, last uint32, at int64) (step, bool) {
	if s.link != nil && h == &s.req && h.seen {
		sh.doubt(s, first, psnDiff(first, h.high), at)
	}
	st := h.track(first, last, at)
	switch st {
	case stepJump:
		s.inOrder = 0
		s.jumps++
		if s.jumps == 1 {
			if s.link != nil {
				sh.suspend(s.link, true, at, "a PSN jump")
			}
			return st, false
		}
		sh.restart(s, at, "PSN jumps")
		return h.track(first, last, at), true
	case stepBack:
		sh.restart(s, at, "PSN back after idling")
		return h.track(first, last, at), true
	}
	if s.jumps > 0 {
		s.inOrder++
		if s.inOrder >= 2 { // the jump was not the stream's own
			s.jumps = 0
			sh.resume(s.link, at)
		}
	}
	return st, true
}

// resume gives a suspended answer again when nothing holds it back any more; nil is fine.
func (sh *shard) resume(l *link, at int64) {
	if l != nil && l.doubtAt == 0 && l.streams[0].jumps == 0 && l.streams[1].jumps == 0 {
		sh.suspend(l, false, at, "in sequence again")
	}
}

// doubt suspends a pair on a step that is too small for a jump and yet unlike a connection that goes on: of
// more than outsideAhead PSNs (one in 256 reused QPs starts that near), or back by more than idleBack to what
// the peer had acknowledged (QPs that start from zero). The next response of the peer in the window lifts
// it; without one for as long as idleReset the pair ends.
func (sh *shard) doubt(s *stream, psn uint32, d int32, at int64) {
	l := s.link
	if l.doubtAt != 0 {
		if at-l.doubtAt > idleReset {
			sh.restart(s, at, "a PSN step that no response followed")
		}
		return
	}
	if s.transport != roce.TransportRC || d > jumpPSN || d < -jumpPSN {
		return
	}
	if d > outsideAhead || d < -outsideAhead || d < -idleBack && sh.hasAcked(l.partner(s), psn, at-tapReordering) {
		l.doubtAt = at
		sh.suspend(l, true, at, "a PSN step")
	}
}

// msnRestarts applies rule 8 to the message sequence number of an AETH: back by more than 4 to under 64
// means that the responder's QP started again, unless the tap delivered the packet late.
func (sh *shard) msnRestarts(s *stream, msn uint32, at int64) bool {
	restarted := false
	d := psnDiff(msn, s.msn)
	if s.msnSeen && d < -msnBack && msn < msnLow && at-s.msnAt > tapReordering {
		sh.restart(s, at, "MSN started again")
		restarted = true
	}
	if !s.msnSeen {
		s.firstMSN = msn
	}
	if !s.msnSeen || d > 0 {
		s.msn, s.msnSeen, s.msnAt = msn, true, at
	}
	return restarted
}

// checkWindow applies rule 8 to a response of a pair: four in a row that answer nothing the peer has
// sent end it. A response in the window confirms the pair.
func (sh *shard) checkWindow(s *stream, psn uint32, at int64) (ended bool) {
	l := s.link
	if l == nil {
		return false
	}
	req := &l.partner(s).req
	if !req.seen {
		return false
	}
	d := psnDiff(psn, req.high)
	if d > outsideAhead && l.partner(s).tap.stale {
		return false // the requests may be further; checkPeer looks from their side
	}
	if d > outsideAhead || d < -outsideBack {
		s.outside++
		if s.outside >= outsideNeeded {
			sh.restart(s, at, "responses outside of the window")
			return true
		}
		return false
	}
	s.outside = 0
	l.good()
	if l.doubtAt != 0 && at > l.doubtAt {
		l.doubtAt = 0
		sh.resume(l, at)
	}
	if !l.suspended {
		sh.confirm(l, at, "responses agree")
	}
	return false
}

// newPort applies rule 8 to a change of the UDP source port.
func (sh *shard) newPort(s *stream, port uint16, at int64) {
	if s.hasPort {
		if s.port == port {
			return
		}
		sh.restart(s, at, "UDP source port changed")
	}
	if s.pos >= 0 {
		if s.hasPort {
			s.pair.ports.add(s.port, s.side, -1)
		}
		s.pair.ports.add(port, s.side, 1)
	}
	s.port, s.hasPort = port, true
}
