package flowmap

import (
	"time"

	"pncd/dataplane/roce"
)

// settleAfter is how long a tap must have followed a pair before it is settled: what was under way is over then.
const settleAfter = int64(time.Second)

// settling remembers that a pair may be settled soon; Tick looks.
func (sh *shard) settling(l *link) {
	if l != nil && !l.settling && l.settles() {
		l.settling = true
		sh.toSettle = append(sh.toSettle, l)
	}
}

// settles says whether nothing of a pair is needed but its answer, as long as the tap shows no step.
func (l *link) settles() bool {
	// Connections by CM need their exchange, and those of VPN contexts are found by their ports, too.
	if l.source != SourcePort && l.source != SourcePSN || l.context != 0 || l.revoked.Load() {
		return false
	}
	for _, s := range l.streams {
		if s.link != l || s.gone || s.transport != roce.TransportRC || s.tap.sight != Followed || s.tap.due || s.tap.again ||
			s.tap.misled || !s.selected() || s.want() != Followed {
			return false
		}
	}
	return true
}

// settleDue settles the pairs whose time has come.
func (sh *shard) settleDue(now int64) {
	kept := sh.toSettle[:0]
	for _, l := range sh.toSettle {
		switch {
		case !l.settles():
			l.settling = false // it is remembered anew when the tap is told again
		case now-max(l.streams[0].tap.toldAt, l.streams[1].tap.toldAt) < sh.m.settleAfter:
			kept = append(kept, l)
		default:
			l.settling = false
			sh.settle(l)
		}
	}
	clear(sh.toSettle[len(kept):])
	if sh.toSettle = kept; len(kept) == 0 {
		sh.toSettle = nil
	}
	sh.shrink()
}

// settle makes a settled pair of a link. A look-up finds one of the two at any time.
func (sh *shard) settle(l *link) {
	m := sh.m
	st := &m.settled
	e, ok := st.take(l.learned)
	if !ok {
		return
	}
	st.fill(st.at(e), l)
	c := &m.claims
	c.mu.Lock()
	if l.revoked.Load() { // meanwhile, by another shard
		c.mu.Unlock()
		st.at(e).seq.Add(1)
		st.give(e)
		return
	}
	st.count.Add(1)
	st.enter(e)
	st.enter(e | 1)
	for _, k := range l.ends() {
		if c.held[k] == l {
			delete(c.held, k)
		}
	}
	c.mu.Unlock()
	sh.pushSettled(e)
	l.streams[0].pair.settled++
	for _, s := range l.streams {
		sh.dropCandidates(s)
		s.pair.shelve(s)
		s.gone = true
		sh.lru.remove(s)
		k := s.pair.key.streamKey(s.side, s.qp)
		delete(sh.streams, k)
		m.hideStream(s, k.flow)
		s.settledOrNot(m)
	}
	sh.noteStale()
}

// fill fills a free pair from a link and makes it readable.
func (st *settledStore) fill(r *settledPair, l *link) {
	x, y := l.streams[0], l.streams[1]
	a, b := x.answer.Load(), y.answer.Load()
	mx, my := x.meta.Load(), y.meta.Load()
	r.pair.Store(x.pair)
	r.qps.Store(uint64(x.qp) | uint64(y.qp)<<settledQPBits | uint64(l.source)<<settledSourceShift |
		(mx&metaSeen|my&metaSeen<<1)>>32*settledSeen | uint64(min(l.votes, settledVotesMax))<<settledVotesShift)
	r.meta.Store(mx&0xFFFF | my&0xFFFF<<16 | mx>>metaPortShift&0xFFFF<<32 | my>>metaPortShift&0xFFFF<<48)
	r.extra.Store(uint32(mx>>metaVLANShift&vlanMask) | uint32(my>>metaVLANShift&vlanMask)<<settledVLANBits |
		st.detailNumber(a.detail)<<settledDetailShift)
	r.seen[0].Store(st.tick(x.lastAt))
	r.seen[1].Store(st.tick(y.lastAt))
	r.learned.Store(st.tick(l.learned))
	r.changed.Store(st.tick(a.changed))
	const most = 1<<(64-settledVersionBits) - 1
	r.version.Store(a.version&(1<<settledVersionBits-1) | min(b.version-a.version, most)<<settledVersionBits)
	r.seq.Add(1)
}

// unsettle makes a link of two streams again of a settled pair. How far they are comes with their next packets.
func (sh *shard) unsettle(e settledRef) *link {
	m := sh.m
	st, c := &m.settled, &m.claims
	e &^= 1
	r := st.at(e)
	p := r.pair.Load()
	l := &link{source: r.source(), votes: r.votes(), learned: st.time(r.learned.Load()), context: p.key.context,
		hits: linkHitsMax / 2, confirmed: true}
	if r.doubted() {
		l.suspended, l.doubtAt = true, st.doubtedAt(r)
	}
	for side := range uint8(2) {
		s := &stream{pair: p, qp: r.qp(side), side: side, vlan: p.key.vlan, pos: -1, transport: roce.TransportRC, link: l, packets: 1,
			hasPort: true, port: r.port(side)}
		l.streams[side] = s
	}
	for _, s := range l.streams {
		sh.revive(s, r)
	}
	p.settled--
	sh.refirm(l)
	c.mu.Lock()
	for _, k := range l.ends() {
		if c.held[k] == nil {
			c.hold(k, l)
		}
	}
	if r.revoked() {
		m.lose(l)
	}
	st.leave(e)
	st.leave(e | 1)
	st.count.Add(-1)
	c.mu.Unlock()
	sh.dropSettled(e)
	r.seq.Add(1)
	r.pair.Store(nil)
	st.give(e)
	sh.noteStale()
	if !l.suspended {
		sh.settling(l) // unless what it is made for changes it
		return l
	}
	for _, s := range l.streams { // the tap must show them
		sh.review(s)
	}
	return l
}

// refirm gives a pair by PSN alone that was firm the votes again that it must have had at least.
func (sh *shard) refirm(l *link) {
	if l.source != SourcePSN {
		return
	}
	if c := sh.newCandidate(l.streams[0], l.streams[1]); c != nil {
		c.hits, c.hx = completeHX, completeHX
		c.first, c.last = l.learned, max(l.streams[0].lastAt, l.streams[1].lastAt)
	}
}

// revive fills one stream of a pair that is settled no more and shows it to readers.
func (sh *shard) revive(s *stream, r *settledPair) {
	st, l, side := &sh.m.settled, s.link, s.side
	s.tap = selected{sight: Followed, stale: true, resumed: true}
	meta := uint64(r.pkey(side)) | uint64(r.port(side))<<metaPortShift | uint64(r.tapVLAN(side))<<metaVLANShift | metaTap
	if r.qps.Load()&(settledSeen<<side) != 0 {
		meta |= metaSeen
	}
	s.meta.Store(meta)
	s.answer.Store(&answer{link: l, sourceQP: r.qp(1 - side), votes: l.votes, state: StateConfirmed, source: l.source, suspended: l.suspended,
		version: r.versionOf(side), learned: l.learned, changed: st.time(r.changed.Load()), detail: st.detail(r.extra.Load() >> settledDetailShift)})
	s.lastAt = st.time(r.seen[side].Load())
	s.lastSeen.Store(s.lastAt)
	s.pair.unshelve(s)
	k := s.pair.key.streamKey(s.side, s.qp)
	sh.streams[k] = s
	sh.peak = max(sh.peak, len(sh.streams))
	sh.lru.push(s, max(s.lastAt, 1))
	sh.m.showStream(s, k.flow)
	s.settledOrNot(sh.m)
}

// streamAt finds a stream, which is one of a link again if it was one of a settled pair.
func (sh *shard) streamAt(k *streamKey) *stream {
	if s := sh.streams[*k]; s != nil {
		return s
	}
	if e, ok := sh.m.settled.find(k); ok {
		return sh.unsettle(e).streams[e.side()]
	}
	return nil
}

// find finds a direction of a settled pair. The caller holds its shard's lock.
func (st *settledStore) find(k *streamKey) (found settledRef, ok bool) {
	if st.count.Load() == 0 {
		return 0, false
	}
	st.candidates(settledHash(&k.flow.receiver, k.flow.context, k.flow.destQP), func(e settledRef, r *settledPair) bool {
		p := r.pair.Load()
		if r.seq.Load()&1 == 0 && p != nil && p.key.vlan == k.vlan && r.is(e.side(), &k.flow) {
			found, ok = e, true
		}
		return !ok
	})
	return found, ok
}

// pass takes a packet of a settled pair that changes nothing: the tap has judged it to go on. It reports false for
// any other, which needs the pair's streams.
func (sh *shard) pass(e settledRef, o *Observation, at int64) bool {
	b, p := o.Before, o.Packet
	r, side := sh.m.settled.at(e), e.side()
	if b == nil || b.Sight != Followed || b.LastSeen.IsZero() || r.revoked() || r.doubted() || p.BTH.Opcode.Transport() != roce.TransportRC ||
		p.SrcPort != r.port(side) || p.VLAN&vlanMask != r.tapVLAN(side) {
		return false
	}
	if b.Foreign {
		if at-b.LastSeen.UnixNano() > liveFor {
			return false
		}
		sh.c.Foreign++
		return true
	}
	sh.touchSettled(e, at)
	return true
}

// touchSettled records that a packet of a settled pair was seen. The list is in the order of that.
func (sh *shard) touchSettled(e settledRef, at int64) {
	st := &sh.m.settled
	r, tick := st.at(e), st.tick(at)
	was := max(r.seen[0].Load(), r.seen[1].Load())
	if seen := &r.seen[e.side()]; tick > seen.Load() {
		seen.Store(tick)
		sh.notePair(r.pair.Load(), e.side(), at)
	}
	if tick > was {
		sh.dropSettled(e)
		sh.pushSettled(e)
		sh.noteStale()
	}
}

// pushSettled puts a pair at the end of the shard's list.
func (sh *shard) pushSettled(e settledRef) {
	st := &sh.m.settled
	r, n := st.at(e), uint32(e>>1)+1
	r.older, r.newer = sh.settledNewest, 0
	if sh.settledNewest != 0 {
		st.at(settledRef(sh.settledNewest-1) << 1).newer = n
	} else {
		sh.settledOldest = n
	}
	sh.settledNewest = n
}

func (sh *shard) dropSettled(e settledRef) {
	st := &sh.m.settled
	r := st.at(e)
	if r.older != 0 {
		st.at(settledRef(r.older-1) << 1).newer = r.newer
	} else {
		sh.settledOldest = r.newer
	}
	if r.newer != 0 {
		st.at(settledRef(r.newer-1) << 1).older = r.older
	} else {
		sh.settledNewest = r.older
	}
}

// oldestSettled is the pair that was listed first; false without any.
func (sh *shard) oldestSettled() (settledRef, bool) {
	return settledRef(sh.settledOldest-1) << 1, sh.settledOldest != 0
}

// flowID names the tap's flow of a direction.
func (r *settledPair) flowID(side uint8) FlowID {
	k, _ := r.key(side)
	return FlowID{k, r.tapVLAN(side), r.port(side)}
}

// settledSideSeen is when a packet to a side of a settled pair was last seen, by the tap if not by the map.
func (m *Map) settledSideSeen(r *settledPair, side uint8) int64 {
	return max(m.settled.time(r.seen[side].Load()), m.flowSeen(r.flowID(side)))
}

// settledTapSeen is when the tap saw a settled pair last, in unix nanoseconds; 0 when it does not know.
func (m *Map) settledTapSeen(r *settledPair) int64 {
	return max(m.flowSeen(r.flowID(0)), m.flowSeen(r.flowID(1)))
}

// ageSettled makes streams again of the settled pairs that saw no traffic for ageAfter, to be aged as such.
func (sh *shard) ageSettled(now, ageAfter int64) {
	st := &sh.m.settled
	for e, ok := sh.oldestSettled(); ok && now-st.seenAt(st.at(e)) > ageAfter; e, ok = sh.oldestSettled() {
		// As the pair keeps it, to a tick: or the loop might meet the pair again, unchanged.
		if seen := sh.m.settledTapSeen(st.at(e)); now-st.time(st.tick(seen)) <= ageAfter {
			sh.touchSettled(e, seen)
		} else {
			sh.ageLink(sh.unsettle(e), now)
		}
	}
}

// evictSettled does what evictOne does when a settled pair was listed before the stream s, and reports whether it did.
func (sh *shard) evictSettled(s *stream, at int64) bool {
	st := &sh.m.settled
	e, ok := sh.oldestSettled()
	if !ok || s != nil && s.listedAt < st.seenAt(st.at(e)) {
		return false
	}
	l := sh.unsettle(e)
	sh.unlink(l, StateEvicted, at, "the map is full")
	for _, x := range l.streams {
		sh.remove(x, StateEvicted, at)
	}
	return true
}
