package labtraffic

import "pncd/dataplane/roce"

const mask24 = 1<<24 - 1

// diff24 is a - b in the circle of 24-bit sequence numbers (IBTA volume 1, section 9.7.1).
func diff24(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// stream is one direction towards one QP.
type stream struct {
	from side
	qp   uint32 // Destination QP
}

// span is the range of sequence numbers that a capture uses, around its first one.
type span struct {
	first    uint32
	min, max int32
	set      bool
}

func (s *span) add(n uint32) {
	if !s.set {
		s.first, s.set = n, true
	}
	d := diff24(n, s.first)
	s.min, s.max = min(s.min, d), max(s.max, d)
}

// width is how far one pass of the capture moves on.
func (s *span) width() uint32 {
	if !s.set {
		return 0
	}
	return uint32(s.max - s.min + 1)
}

// advance says by how much PSNs and MSNs move on from one pass of a capture to the next, so that the second
// pass looks like a continuation and not like old packets again. Requests of a stream and the responses
// to them live in one PSN space (IBTA volume 1, section 9.7.2) and move together.
type advance struct {
	requests  map[stream]*span  // PSNs that a request stream and its responses use
	responses map[stream]stream // response stream -> the request stream it answers
	own       map[stream]*span  // PSNs of response streams that answer nothing captured
	msn       map[stream]*span
}

// newAdvance pairs each response stream with the request stream in the other direction whose PSNs it
// repeats most, the one of the lowest QP among equals.
func newAdvance(packets []captured) *advance {
	a := &advance{
		requests: map[stream]*span{}, responses: map[stream]stream{},
		own: map[stream]*span{}, msn: map[stream]*span{},
	}
	psns := map[stream]map[uint32]bool{}
	votes := map[stream]map[stream]int{}
	each := func(fn func(p *captured, s stream, op roce.Opcode)) {
		for i := range packets {
			p := &packets[i]
			if !p.packet.IsMAD() {
				fn(p, stream{p.from, p.packet.BTH.DestQP}, p.packet.BTH.Opcode)
			}
		}
	}
	each(func(p *captured, s stream, op roce.Opcode) {
		if op.IsResponse() {
			return
		}
		if psns[s] == nil {
			psns[s], a.requests[s] = map[uint32]bool{}, &span{}
		}
		psns[s][p.packet.BTH.PSN] = true
		a.requests[s].add(p.packet.BTH.PSN)
	})
	each(func(p *captured, s stream, op roce.Opcode) {
		if !op.IsResponse() {
			return
		}
		if votes[s] == nil {
			votes[s] = map[stream]int{}
		}
		for req, seen := range psns {
			if req.from == s.from.other() && seen[p.packet.BTH.PSN] {
				votes[s][req]++
			}
		}
	})
	for s, v := range votes {
		best := 0
		for req, n := range v {
			if n > best || n == best && req.qp < a.responses[s].qp {
				a.responses[s], best = req, n
			}
		}
		a.own[s] = &span{}
	}
	each(func(p *captured, s stream, op roce.Opcode) {
		if !op.IsResponse() {
			return
		}
		if req, ok := a.responses[s]; ok {
			a.requests[req].add(p.packet.BTH.PSN) // a READ's responses use more PSNs than the request shows
		} else {
			a.own[s].add(p.packet.BTH.PSN)
		}
		if op.HasAETH() && len(p.packet.Body) >= 4 {
			if a.msn[s] == nil {
				a.msn[s] = &span{}
			}
			a.msn[s].add(msnOf(p.packet.Body))
		}
	})
	return a
}

// psn is by how much the packet's PSN moves on in each pass.
func (a *advance) psn(p *captured) uint32 {
	s := stream{p.from, p.packet.BTH.DestQP}
	if !p.packet.BTH.Opcode.IsResponse() {
		if sp := a.requests[s]; sp != nil {
			return sp.width()
		}
		return 0
	}
	if req, ok := a.responses[s]; ok {
		return a.requests[req].width()
	}
	if sp := a.own[s]; sp != nil {
		return sp.width()
	}
	return 0
}

// msns is by how much the packet's MSN moves on; only packets with an AETH have one.
func (a *advance) msns(p *captured) uint32 {
	if sp := a.msn[stream{p.from, p.packet.BTH.DestQP}]; sp != nil {
		return sp.width()
	}
	return 0
}

// msnOf and setMSN read and write the low 24 bits of the AETH, which leads the body.
func msnOf(body []byte) uint32 {
	return uint32(body[1])<<16 | uint32(body[2])<<8 | uint32(body[3])
}

func setMSN(body []byte, n uint32) {
	body[1], body[2], body[3] = byte(n>>16), byte(n>>8), byte(n)
}
