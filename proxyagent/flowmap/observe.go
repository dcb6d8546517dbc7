package flowmap

import "pncd/dataplane/roce"

// Observe learns from one packet. It keeps nothing of the packet.
func (m *Map) Observe(o *Observation) {
	p := o.Packet
	if !p.Src.IsValid() || !p.Dst.IsValid() {
		return
	}
	at := o.At.UnixNano()
	key, from := m.pairOf(p.Src, p.Dst, o.Context, p.VLAN)
	sh := m.shardOf(&key)
	sh.mu.Lock()
	sh.observe(o, &key, from, at)
	sh.mu.Unlock()
	if m.total.Load() > m.maxEntries.Load() {
		m.evict(at)
	}
}

func (sh *shard) observe(o *Observation, key *pairKey, from uint8, at int64) {
	p := o.Packet
	sh.c.Packets++
	sh.checkICRC(p)
	t := p.BTH.Opcode.Transport()
	switch t {
	case roce.TransportCNP:
		sh.c.CNP++
		return
	case roce.TransportRD:
		sh.c.UnsupportedDC++
	case roce.TransportXRC:
		sh.c.UnsupportedXRC++
	case roce.TransportVendor1, roce.TransportVendor2:
		sh.c.UnsupportedVendor++
	case roce.TransportUD:
		if p.IsMAD() {
			sh.observeCM(o, *key, from, at)
			return
		}
		if p.BTH.DestQP <= roce.QP1 { // management: no flow
			return
		}
	}
	s := sh.streamOf(o, key, from, t, at)
	if s == nil {
		return
	}
	sh.met(s, o)
	if !sh.admit(s, o, at) {
		s.tap.misled = o.Before != nil && !o.Before.Foreign
		return
	}
	if s.transport != t {
		sh.changeTransport(s, t, at)
	}
	sh.swept(s, at)
	if s.closedAt != 0 && !sh.reopen(s, at) {
		return
	}
	if t == roce.TransportRC || t == roce.TransportUC {
		sh.newPort(s, p.SrcPort, at)
		if s.pos < 0 {
			s.pair.join(s)
		}
		if p.FlowLabel != 0 {
			s.flowLabel = p.FlowLabel
		}
	}
	sh.touch(s, at)
	if at-s.notedAt >= noteStep {
		sh.note(s, at)
	}
	was := s.packets
	sh.catchUp(s, o, at)
	s.packets++
	sh.m.setMeta(s, dataMeta(p, o.Before != nil))
	switch t {
	case roce.TransportRC:
		sh.observeRC(s, p, at)
	case roce.TransportUC:
		sh.observeUC(s, p, was, at)
	case roce.TransportUD:
		sh.observeUD(s, p, at)
	}
	if o.Before != nil {
		sh.review(s)
		if s.link != nil {
			sh.review(s.link.partner(s))
		}
	}
}

// streamOf finds or makes the stream of a packet from a side; nil when the packet is of a settled pair and changes
// nothing.
func (sh *shard) streamOf(o *Observation, key *pairKey, from uint8, t roce.Transport, at int64) *stream {
	k := key.streamKey(1-from, o.Packet.BTH.DestQP)
	if s := sh.streams[k]; s != nil {
		return s
	}
	if e, ok := sh.m.settled.find(&k); ok {
		if sh.pass(e, o, at) {
			return nil
		}
		return sh.unsettle(e).streams[e.side()]
	}
	p := sh.pairs[*key]
	if p == nil {
		p = sh.newPair(*key, o.Packet.Src, o.Packet.Dst)
	}
	return sh.streamTo(p, 1-from, k.flow.destQP, t, at)
}

// reopen says whether a packet to a closed or aged stream may open it again: packets that were under way
// when the connection closed must not.
func (sh *shard) reopen(s *stream, at int64) bool {
	if a := s.answer.Load(); a.state == StateClosed && at-s.closedAt < liveFor {
		return false
	}
	s.closedAt = 0
	sh.publish(s, StateUndecided, SourceNone, nil, at, "traffic again")
	return true
}

// checkICRC verifies a sample. A wrong ICRC changes nothing: middleboxes that rewrite source ports break it.
func (sh *shard) checkICRC(p *roce.Packet) {
	n := sh.m.icrcSample.Load()
	if n <= 0 || p.Truncated || len(p.IP) == 0 || sh.c.Packets%uint64(n) != 0 {
		return
	}
	ok, err := roce.VerifyICRC(p.IP)
	if err != nil {
		return
	}
	sh.c.ICRCVerified++
	if !ok {
		sh.c.BadICRC++
	}
}
