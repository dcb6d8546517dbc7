package flowmap

import "pncd/dataplane/roce"

// A tap that selects shows a part of a stream's packets, and with each what it knew of the flow before. It has
// judged each step in between: one that does not fit, it shows. So what it skipped is a sequence that goes on, and the
// map takes it over before it judges the packet.

// sameFlow says whether the packet is of the flow that the tap's word on the stream so far is of.
func (s *stream) sameFlow(p *roce.Packet) bool {
	const of = metaTap | vlanMask<<metaVLANShift | 0xFFFF<<metaPortShift
	return (s.meta.Load()^tapMeta(p))&of == 0
}

// tapMeta is the part of a stream's meta that names the tap's flow.
func tapMeta(p *roce.Packet) uint64 {
	return metaTap | uint64(p.VLAN&vlanMask)<<metaVLANShift | uint64(p.SrcPort)<<metaPortShift
}

// met takes over when the flow was last seen, before the packet is admitted: packets that the tap skipped came as the
// stream's own do.
func (sh *shard) met(s *stream, o *Observation) {
	if b := o.Before; b != nil && !b.LastSeen.IsZero() && s.sameFlow(o.Packet) {
		sh.touch(s, b.LastSeen.UnixNano())
	}
}

// catchUp takes over what the tap knew of the stream before an admitted packet.
func (sh *shard) catchUp(s *stream, o *Observation, at int64) {
	b, t := o.Before, &s.tap
	if b == nil {
		return
	}
	same := s.sameFlow(o.Packet)
	if !same || b.Sight != t.sight && at-t.toldAt >= tellDelay {
		sh.setSight(s, b.Sight)
	}
	if b.Sight != Watched {
		t.stale = true
	} else if t.sight == Watched {
		t.stale = false
	}
	misled, resumed := t.misled, t.resumed
	t.resumed, t.again, t.misled = false, b.Foreign, false
	switch {
	case !same, s.packets == 0: // nothing was known: the packet is a first one
		t.reqWas, t.respWas = b.ReqHigh, b.RespHigh
	case b.LastSeen.IsZero():
		sh.doubtGap(s, at, "the tap has forgotten the flow")
	case resumed:
		s.packets += b.Skipped
		s.comeBack(b)
		sh.takeOver(s, b)
	case b.Skipped != 0:
		s.packets += b.Skipped
		if s.jumps == 0 && !misled && s.transport != roce.TransportUD {
			sh.takeOver(s, b)
		}
	}
}

// takeOver moves the stream's sequences to where the tap has followed them.
func (sh *shard) takeOver(s *stream, b *Progress) {
	at := b.LastSeen.UnixNano()
	if b.HasReq && b.ReqHigh != s.tap.reqWas {
		high := b.ReqHigh
		if b.ReadLen != 0 {
			high = (high + readPackets(b.ReadLen, sh.readMTU(s)) - 1) & psnMask
		}
		s.req.advance(high, at)
	}
	if b.HasResp && b.RespHigh != s.tap.respWas {
		s.resp.advance(b.RespHigh, at)
		if s.resp.seen {
			s.acked.add((b.RespHigh-1)&psnMask, at) // itself it may be a NAK's, which acknowledges what is before
		}
	}
	if d := psnDiff(b.MSN, s.msn); b.HasMSN && s.msnSeen && d > 0 {
		s.msn, s.msnAt = b.MSN, at
	}
}

// comeBack gives a stream sequences that the tap has followed and the map has not. Where they started is not known: it
// counts as zero, so that rule 6 does not take them for isolated.
func (s *stream) comeBack(b *Progress) {
	at := b.LastSeen.UnixNano()
	s.req = half{seen: b.HasReq, high: b.ReqHigh, at: at}
	s.resp = half{seen: b.HasResp, high: b.RespHigh, at: at}
	s.msn, s.msnSeen, s.firstMSN, s.msnAt = b.MSN, b.HasMSN, psnMask, at
}

// advance moves a half to a PSN that the tap has seen after its last packet. One that is far behind is ahead by more
// than half of the space.
func (h *half) advance(high uint32, at int64) {
	if !h.seen {
		return
	}
	if d := psnDiff(high, h.high); d > 0 || d < -jumpPSN {
		h.high = high
	}
	h.at = max(h.at, at)
}

// hasAcked says whether s, or the tap's record of it, had acknowledged psn by the time at.
func (sh *shard) hasAcked(s *stream, psn uint32, at int64) bool {
	if s.acked.passed(psn, at) {
		return true
	}
	if !s.tap.stale || !s.selected() {
		return false
	}
	p, ok := sh.m.ask(s.flowID())
	return ok && p.HasResp && p.RespHigh != s.tap.respWas && p.LastSeen.UnixNano() <= at && psnDiff(psn, p.RespHigh) < 0
}

// checkPeer is rule 8's window, seen from the requests: the responses that the map knows of a peer that is shown in part
// are older than this request, so it must be ahead of them. It reports whether that ended the pair.
func (sh *shard) checkPeer(s *stream, at int64) (ended bool) {
	l := s.link
	if l == nil {
		return false
	}
	y := l.partner(s)
	if !y.tap.stale || !y.resp.seen {
		return false
	}
	d := psnDiff(y.resp.high, s.req.high)
	if d <= outsideAhead {
		y.outside = 0
		return false
	}
	if d > outsideBack { // not told apart from responses that are behind by most of the space
		return false
	}
	if y.outside++; y.outside < outsideNeeded {
		return false
	}
	sh.restart(y, at, "responses outside of the window")
	return true
}
