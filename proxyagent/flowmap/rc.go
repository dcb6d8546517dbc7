package flowmap

import "pncd/dataplane/roce"

// observeRC takes a packet of Reliable Connection.
func (sh *shard) observeRC(s *stream, p *roce.Packet, at int64) {
	if m := mtuOf(p); m != 0 {
		s.mtu, s.pair.mtu = m, m
	}
	switch op := p.BTH.Opcode; {
	case op.IsRequest():
		sh.request(s, p, at)
	case op.IsResponse():
		sh.response(s, p, at)
	default:
		sh.c.Malformed++
	}
}

// request takes a request: it moves the stream on, may speak against candidates (rule 4), and when it is
// ackable, is remembered for the responses to come (rule 1).
func (sh *shard) request(s *stream, p *roce.Packet, at int64) {
	op, first := p.BTH.Opcode, p.BTH.PSN
	last := first
	if op.IsReadRequest() {
		reth, err := roce.ParseRETH(p.Body)
		if err != nil {
			sh.c.Malformed++
			return
		}
		last = (first + readPackets(reth.DMALen, sh.readMTU(s)) - 1) & psnMask
	}
	st, ok := sh.sequence(s, &s.req, first, last, at)
	if !ok {
		return
	}
	pair := s.pair
	pair.countAsking(s)
	if sh.checkPeer(s, at) {
		sh.sequence(s, &s.req, first, last, at)
	}
	if st == stepNew {
		sh.testAgainst(s, first, at)
	}
	if l := s.link; l != nil && !l.confirmed && l.source == SourceCM {
		sh.confirm(l, at, "CM, and data from the agreed PSN on")
	}
	if !p.BTH.AckReq && !op.IsAckable() {
		return
	}
	if v := pair.voting(); v != nil && !s.tap.stale {
		x, bound, n := &v.index[s.side], v.lags[s.side].limit(), pair.asking[s.side]
		if pair.rc[1-s.side] == 0 && len(x.ring) >= indexPerFlow {
			bound = 0 // nothing answers yet: the index need not grow
		}
		x.add(s, first, at, bound, n)
		if last != first {
			x.add(s, last, at, bound, n)
		}
	}
}

// readMTU is the path MTU by which the responses to s's READs are counted: that of the READ responses
// the other way, or of s's own data.
func (sh *shard) readMTU(s *stream) uint16 {
	if l := s.link; l != nil {
		if m := l.partner(s).mtu; m != 0 {
			return m
		}
	}
	if s.mtu != 0 {
		return s.mtu
	}
	return s.pair.mtu
}

// response takes a response: it shows what the other direction's requests have come to, and votes.
func (sh *shard) response(s *stream, p *roce.Packet, at int64) {
	op, psn := p.BTH.Opcode, p.BTH.PSN
	var aeth roce.AETH
	if op.HasAETH() {
		var err error
		if aeth, err = roce.ParseAETH(p.Body); err != nil {
			sh.c.Malformed++
			return
		}
	}
	if _, ok := sh.sequence(s, &s.resp, psn, psn, at); !ok {
		return
	}
	if op.HasAETH() && sh.msnRestarts(s, aeth.MSN, at) {
		sh.sequence(s, &s.resp, psn, psn, at)
	}
	if !op.IsAck() || aeth.IsAck() {
		s.acked.add(psn, at)
	}
	if sh.checkWindow(s, psn, at) {
		sh.sequence(s, &s.resp, psn, psn, at)
	}
	if canVote(op, aeth) && !s.tap.stale {
		sh.vote(s, psn, at)
	}
}
