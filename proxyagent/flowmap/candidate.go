package flowmap

// candidate is the score of one possible pair of streams. It has a slot in both.
type candidate struct {
	streams     [2]*stream // by the side they go to
	hits        uint32     // matches
	hx          uint32     // matches among at most exclusiveMax (rule 2)
	against     uint32     // rule 4
	ended       bool       // rule 4 ended it; it keeps its slot until that is needed
	first, last int64      // time of the first and the last match
	wait        uint32     // hits before the siblings are looked at again (rule 6)
}

func (c *candidate) other(s *stream) *stream { return c.streams[1-s.side] }

func findCandidate(a, b *stream) *candidate {
	for _, c := range a.cands {
		if c.other(a) == b {
			return c
		}
	}
	return nil
}

// newCandidate makes the candidate of two streams, or returns nil when one of them has no slot to give
// (rule 9).
func (sh *shard) newCandidate(a, b *stream) *candidate {
	slots := maxCandidates
	if a.port == b.port {
		slots += samePortSlots
	}
	if !sh.makeRoom(a, slots) || !sh.makeRoom(b, slots) {
		return nil
	}
	c := sh.spare
	if c == nil {
		c = new(candidate)
	}
	sh.spare = nil
	*c = candidate{}
	c.streams[a.side], c.streams[b.side] = a, b
	a.cands = append(a.cands, c)
	b.cands = append(b.cands, c)
	if l := a.link; l != nil && l == b.link && l.source == SourcePSN {
		l.cand = c // the one before was dropped with a stream's votes; what speaks against it must go on
	}
	return c
}

// makeRoom frees a slot when all are taken. Only rivals with at most one vote, or ended ones, give way;
// among those an ended one first, then the one that was silent longest.
func (sh *shard) makeRoom(s *stream, slots int) bool {
	if len(s.cands) < slots {
		return true
	}
	var victim *candidate
	for _, c := range s.cands {
		switch {
		case !c.ended && c.hits > 1:
		case victim == nil, c.ended && !victim.ended, c.ended == victim.ended && c.last < victim.last:
			victim = c
		}
	}
	if victim == nil {
		return false
	}
	victim.drop()
	sh.spare = victim
	return true
}

// drop takes the candidate out of both streams.
func (c *candidate) drop() {
	for _, s := range c.streams {
		for i, x := range s.cands {
			if x == c {
				last := len(s.cands) - 1
				s.cands[i], s.cands[last] = s.cands[last], nil
				s.cands = s.cands[:last]
				break
			}
		}
		if s.link != nil && s.link.cand == c {
			s.link.cand = nil
		}
	}
}

func (sh *shard) dropCandidates(s *stream) {
	for len(s.cands) > 0 {
		s.cands[len(s.cands)-1].drop()
	}
	s.cands = nil
}

// bestRival is the highest hx among the other candidates of both streams that still stand.
func (c *candidate) bestRival() uint32 {
	var best uint32
	for _, s := range c.streams {
		for _, r := range s.cands {
			if r != c && !r.ended {
				best = max(best, r.hx)
			}
		}
	}
	return best
}

// enough says whether hits is at least the share of the ACKs that rules 5 and 6 ask for, whichever of
// the two streams is taken for Y.
func (c *candidate) enough(hits uint32) bool {
	return uint64(hits)*ackShare >= uint64(max(c.streams[0].acks, c.streams[1].acks))
}
