package flowmap

import (
	"encoding/binary"
	"time"

	"pncd/dataplane/roce"
)

// The hosts of the simulator: requester, responder, path and tap.

const (
	rcAck       = roce.Opcode(roce.OpAck)
	rcAtomicAck = roce.Opcode(roce.OpAtomicAck)
	rcRead      = roce.Opcode(roce.OpReadRequest)
	rcFetchAdd  = roce.Opcode(roce.OpFetchAdd)
	rcSend      = roce.Opcode(roce.OpSendOnly)
	rcWrite     = roce.Opcode(roce.OpWriteOnly)
)

// post sends the next message of a requester.
func (s *sim) post(c *simConn, side uint8, at int64) {
	e := &c.end[side]
	if e.left == 0 {
		return
	}
	if len(e.pending) >= s.cfg.window {
		return // posted when one completes
	}
	e.left--
	msg := simMessage{psn: e.next, psns: 1, op: rcSend}
	switch r := s.rng.Float64(); {
	case s.cfg.lockstep:
		msg.psns = s.size
	case r < s.cfg.reads:
		msg.op, msg.psns = rcRead, 1+s.rng.Uint32N(8)
	case r < s.cfg.reads+s.cfg.atomics:
		msg.op = rcFetchAdd
	case s.cfg.mixed:
		msg.psns = 1 + s.rng.Uint32N(16)
		if s.rng.IntN(2) == 0 {
			msg.op = rcWrite
		}
	default:
		msg.psns = 1 + s.rng.Uint32N(2)
	}
	e.next = (e.next + msg.psns) & psnMask
	e.pending = append(e.pending, msg)
	s.transmit(c, side, msg, msg.psn)
	s.arm(c, side)
	if !s.cfg.lockstep {
		s.postLater(c, side, s.now)
	}
}

// transmit sends a message's packets from a PSN on.
func (s *sim) transmit(c *simConn, side uint8, msg simMessage, from uint32) {
	end := (msg.psn + msg.psns) & psnMask
	if msg.op == rcRead || msg.op == rcFetchAdd {
		left := uint32(psnDiff(end, from))
		s.send(simPacket{conn: c, from: side, op: msg.op, psn: from, ackReq: true, word: left * simMTU, length: 16})
		return
	}
	first, middle, last, only := roce.OpSendFirst, roce.OpSendMiddle, roce.OpSendLast, roce.OpSendOnly
	if msg.op == rcWrite {
		first, middle, last, only = roce.OpWriteFirst, roce.OpWriteMiddle, roce.OpWriteLast, roce.OpWriteOnly
	}
	for p := from; p != end; p = (p + 1) & psnMask {
		isFirst, isLast := p == msg.psn, (p+1)&psnMask == end
		op := middle
		switch {
		case isFirst && isLast:
			op = only
		case isFirst:
			op = first
		case isLast:
			op = last
		}
		s.send(simPacket{conn: c, from: side, op: roce.Opcode(op), psn: p, ackReq: isLast, length: simMTU})
	}
}

// send puts a packet on the host's link: the tap and the peer see it later, unless the path loses it.
func (s *sim) send(p simPacket) {
	t := max(s.now, s.free[p.from]) + simSerial
	s.free[p.from] = t
	where := s.cfg.tapAt
	if p.from == 1 {
		where = 1 - where
	}
	lostBefore, lostAfter := false, false
	if s.cfg.pathLoss > 0 && s.rng.Float64() < s.cfg.pathLoss {
		lostBefore = s.rng.Float64() < where
		lostAfter = !lostBefore
	}
	// Queues make the delay vary by up to 4 us; a path keeps the order of one direction.
	delay := float64(s.cfg.oneWay) + 4000*float64(t/200_000%7)/7
	if !lostBefore && !p.conn.hide[p.from] && (s.cfg.tapLoss == 0 || s.rng.Float64() >= s.cfg.tapLoss) {
		seen := max(t+int64(delay*where), s.passed[p.from])
		s.passed[p.from] = seen
		if s.cfg.reorder > 0 {
			seen += s.rng.Int64N(int64(s.cfg.reorder))
		}
		s.push(simEvent{at: seen, kind: evTap, pkt: p})
	}
	if !lostBefore && !lostAfter {
		at := max(t+int64(delay), s.arrived[p.from])
		s.arrived[p.from] = at
		s.push(simEvent{at: at, kind: evArrive, pkt: p})
	}
}

func (s *sim) arm(c *simConn, side uint8) {
	e := &c.end[side]
	e.deadline = s.now + int64(s.cfg.timeout)
	if !e.ticking {
		e.ticking = true
		s.push(simEvent{at: e.deadline, kind: evTimeout, pkt: simPacket{conn: c, from: side}})
	}
}

func (s *sim) timeout(c *simConn, side uint8) {
	e := &c.end[side]
	e.ticking = false
	if c.closed || len(e.pending) == 0 {
		return
	}
	if s.now >= e.deadline {
		s.goBack(c, side, e.pending[0].psn)
		e.deadline = s.now + int64(s.cfg.timeout)
	}
	e.ticking = true
	s.push(simEvent{at: e.deadline, kind: evTimeout, pkt: simPacket{conn: c, from: side}})
}

// goBack sends all from a PSN on again.
func (s *sim) goBack(c *simConn, side uint8, psn uint32) {
	for _, m := range c.end[side].pending {
		if psnDiff(m.psn+m.psns, psn) > 0 {
			from := m.psn
			if psnDiff(psn, from) > 0 {
				from = psn
			}
			s.transmit(c, side, m, from)
		}
	}
}

// arrive is a packet's arrival at the host on the other side.
func (s *sim) arrive(p *simPacket) {
	side := 1 - p.from
	if p.op.IsRequest() {
		s.respond(p.conn, side, p)
		return
	}
	c, e := p.conn, &p.conn.end[side]
	if p.op == rcAck && p.word>>29 == 3 { // NAK: everything before its PSN is acknowledged
		s.complete(c, side, (p.psn-1)&psnMask)
		s.goBack(c, side, p.psn)
		return
	}
	if p.op.IsReadResponse() && !p.op.IsReadResponseOnly() && !p.op.IsReadResponseLast() {
		return // the last one completes the READ; a lost one makes the timer read again
	}
	if len(e.pending) > 0 {
		s.complete(c, side, p.psn)
	}
}

// complete takes messages off that a response has answered.
func (s *sim) complete(c *simConn, side uint8, psn uint32) {
	e := &c.end[side]
	done := false
	for len(e.pending) > 0 && psnDiff(e.pending[0].psn+e.pending[0].psns-1, psn) <= 0 {
		e.pending = e.pending[1:]
		done = true
	}
	if done {
		e.deadline = s.now + int64(s.cfg.timeout)
		if !s.cfg.lockstep {
			s.postLater(c, side, s.now)
		}
	}
}

// respond takes a request at the responder.
func (s *sim) respond(c *simConn, side uint8, p *simPacket) {
	e := &c.end[side]
	d := psnDiff(p.psn, e.expected)
	if d > 0 {
		if !e.nakSent {
			e.nakSent = true
			s.send(simPacket{conn: c, from: side, op: rcAck, psn: e.expected, word: 3<<29 | e.msn, length: 4})
		}
		return
	}
	e.nakSent = false
	psns := uint32(1)
	if p.op == rcRead {
		psns = p.word / simMTU
	}
	if d == 0 {
		e.expected = (e.expected + psns) & psnMask
		if p.op.IsAckable() {
			e.msn = (e.msn + 1) & psnMask
		}
	}
	switch {
	case p.op == rcRead:
		s.flushAck(c, side)
		s.readResponse(c, side, p.psn, psns)
	case p.op == rcFetchAdd:
		s.flushAck(c, side)
		s.send(simPacket{conn: c, from: side, op: rcAtomicAck, psn: p.psn, word: e.msn, length: 12})
	case p.op.IsAckable():
		e.ackPSN = (e.expected - 1) & psnMask
		if e.ackAt == 0 {
			e.ackAt = s.now + simAckDelay
			s.push(simEvent{at: e.ackAt, kind: evAck, pkt: simPacket{conn: c, from: side}})
		}
	}
}

func (s *sim) ack(c *simConn, side uint8) {
	if c.end[side].ackAt == s.now {
		s.flushAck(c, side)
	}
}

func (s *sim) flushAck(c *simConn, side uint8) {
	e := &c.end[side]
	if e.ackAt != 0 {
		e.ackAt = 0
		s.send(simPacket{conn: c, from: side, op: rcAck, psn: e.ackPSN, word: e.msn, length: 4})
	}
}

func (s *sim) readResponse(c *simConn, side uint8, psn, n uint32) {
	for i := range n {
		op := roce.OpReadRespMiddle
		switch {
		case n == 1:
			op = roce.OpReadRespOnly
		case i == 0:
			op = roce.OpReadRespFirst
		case i == n-1:
			op = roce.OpReadRespLast
		}
		s.send(simPacket{conn: c, from: side, op: roce.Opcode(op), psn: (psn + i) & psnMask, word: c.end[side].msn, length: simMTU})
	}
}

// tap shows a packet to the map.
func (s *sim) tap(p *simPacket, check func(c *simConn, from uint8, now time.Time)) {
	s.seen++
	pkt := &s.pkt
	*pkt = roce.Packet{Src: simAddr[p.from], Dst: simAddr[1-p.from], TTL: 63, SrcPort: p.conn.port[p.from],
		SrcMAC: [6]byte{2, 0, 0, 0, 0, p.from}, FlowLabel: p.conn.label}
	pkt.BTH = roce.BTH{Opcode: p.op, PKey: 0xFFFF, DestQP: p.conn.qp[1-p.from], AckReq: p.ackReq, PSN: p.psn}
	switch {
	case p.op == rcRead:
		binary.BigEndian.PutUint32(s.body[12:], p.word)
		pkt.Body = s.body[:16]
	case p.op.HasAETH():
		binary.BigEndian.PutUint32(s.body[:], p.word)
		pkt.Body = s.body[:4]
	}
	at := time.Unix(0, simEpoch+s.now)
	conn, from := p.conn, p.from
	shown := func() {
		if check != nil && !conn.closed {
			check(conn, from, at)
		}
	}
	o := &Observation{Packet: pkt, IfIndex: 1 + int(p.from), At: at}
	if s.selector != nil {
		s.selector.observe(o, shown)
		return
	}
	s.m.Observe(o)
	shown()
}

// push and pop keep the events in a binary heap by time.
func (s *sim) push(e simEvent) {
	s.events = append(s.events, e)
	h, i := s.events, len(s.events)-1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].at <= e.at {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func (s *sim) pop() simEvent {
	h := s.events
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	s.events = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].at < h[down].at {
			down++
		}
		if h[down].at >= last.at {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return top
}
