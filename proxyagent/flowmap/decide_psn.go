package flowmap

// decidesByPSN applies rule 6.
func (sh *shard) decidesByPSN(c *candidate) bool {
	x, y := c.streams[0], c.streams[1]
	p := x.pair
	if c.hx < isolatedHX || !c.enough(c.hx) || 4*c.bestRival() > c.hx || !c.spans() {
		return false
	}
	if p.ports.symmetric() && x.port != y.port {
		return false
	}
	return c.complete(sh) || c.isolated()
}

// complete is the second case of rule 6: every stream is seen, so each has its peer among them.
func (c *candidate) complete(sh *shard) bool {
	p := c.streams[0].pair
	if !sh.m.tapComplete.Load() || p.rc[0] != p.rc[1] {
		return false
	}
	switch {
	case c.hx >= completeHX:
		return true
	case c.hx >= completeLowHX && p.votes.chanceOf() <= 1.0/32 && p.votes.trials >= completeTrials && c.beyondChance():
		return true
	}
	return p.rc[0] == 1 && c.hx >= isolatedHX
}

// beyondChance says whether strangers would hardly ever get so many votes: the chance that any of the pairs
// here does, from as many responses, is at most chanceLeft (the binomial's leading term times the pairs).
func (c *candidate) beyondChance() bool {
	p := c.streams[0].pair
	responses, b := float64(c.streams[0].acks+c.streams[1].acks), p.votes.chanceOf()
	left := float64(p.rc[0] * p.rc[1])
	for i := range c.hx {
		left *= b * max(responses-float64(i), 1) / float64(i+1)
	}
	return left <= chanceLeft
}

// isolated is the first case of rule 6: both streams started at a random PSN, and no other stream is near.
func (c *candidate) isolated() bool {
	x, y := c.streams[0], c.streams[1]
	p := x.pair
	n := max(p.rc[0], p.rc[1])
	if n > 1 && p.votes.chanceOf() > 1.0/32 {
		return false
	}
	if !c.startedHigh() || c.hits < c.wait {
		return false
	}
	reach := int32(min(siblingReach, siblingTotal/n))
	if x.hasSibling(reach) || y.hasSibling(reach) {
		c.wait = 2 * c.hits // looking costs a pass over the streams: not at each vote
		return false
	}
	return true
}

// startedHigh says whether no PSN space that the two streams share began near zero, where the counters of
// applications that start from zero are.
func (c *candidate) startedHigh() bool {
	shared := false
	for i, s := range c.streams {
		o := c.streams[1-i] // it answers the requests of s
		if !s.req.seen || !o.resp.seen {
			continue
		}
		if s.req.first < lowPSN || !o.answersHigh() {
			return false
		}
		shared = true
	}
	return shared
}

// answersHigh says whether the PSNs that s answers began above lowPSN. That the first one seen is above is not
// enough: a tap that comes late finds counters from zero anywhere, and of two connections in step the halves
// that it sees look like one. The MSN counts the messages that the responder has completed (IBTA volume 1,
// section 9.7.5.1.5): it must have been low, and so many messages of the size seen since, and several times
// that size, must not reach back to lowPSN.
func (s *stream) answersHigh() bool {
	if !s.msnSeen || s.firstMSN >= msnLow {
		return false
	}
	messages, psns := psnDiff(s.msn, s.firstMSN), psnDiff(s.resp.high, s.resp.first)
	if messages <= 0 {
		return false
	}
	before := startFactor * int64(s.firstMSN) * int64(psns) / int64(messages)
	return int64(s.resp.first)-before >= lowPSN
}

// hasSibling says whether another stream of this direction is, in one of its PSN spaces, within reach.
func (s *stream) hasSibling(reach int32) bool {
	near := func(a, b *half) bool {
		if !a.seen || !b.seen {
			return false
		}
		d := psnDiff(a.high, b.high)
		return d <= reach && d >= -reach
	}
	for _, o := range s.pair.streams[s.side] {
		if o != s && (near(&s.req, &o.req) || near(&s.resp, &o.resp)) {
			return true
		}
	}
	return false
}
