package flowmap

// judge looks at a candidate that has got a vote: whether it decides its streams, or contests a decision.
func (sh *shard) judge(c *candidate, at int64) {
	x, y := c.streams[0], c.streams[1]
	if x.link != nil || y.link != nil {
		sh.contest(c, at)
		return
	}
	if c.hits < 2 {
		return
	}
	switch {
	case sh.decidesByPort(c):
		sh.decide(c, SourcePort, at)
	case sh.decidesByPSN(c):
		sh.decide(c, SourcePSN, at)
	}
}

// contest applies the end of rule 8: a pair by PSN alone goes back to undecided when a rival has hx >= 3
// and more than half of its own.
func (sh *shard) contest(c *candidate, at int64) {
	if c.hx < rivalHX {
		return
	}
	for _, s := range c.streams {
		if l := s.link; l != nil && l.cand != nil && l.cand != c && 2*c.hx > l.cand.hx {
			sh.unlink(l, StateUndecided, at, "a rival has more than half of its votes")
			return
		}
	}
}

// spans says whether the votes are spread far enough in time (rule 11).
func (c *candidate) spans() bool { return c.last-c.first >= voteSpan }

// decide makes the candidate's streams a pair, unless one of their QPs has a live peer (rule 10).
func (sh *shard) decide(c *candidate, source Source, at int64) {
	l := &link{streams: c.streams, source: source, votes: c.hits, context: c.streams[0].pair.key.context}
	if source == SourcePSN {
		l.cand = c
	}
	l.hits = min(c.hits, linkHitsMax/2)
	lost, ok := sh.m.claim(l, at, false)
	if !ok {
		sh.c.Refused++
		return
	}
	sh.sweepLost(lost, at)
	detail := "votes by PSN alone"
	if source == SourcePort {
		detail = "votes, and equal UDP source ports"
	}
	sh.establish(l, at, detail)
}

// sweepLost ends the revoked links of this shard at once; those of others see it at their next packet.
func (sh *shard) sweepLost(lost [2]*link, at int64) {
	for _, o := range lost {
		if o != nil && sh.m.shardOf(&o.streams[0].pair.key) == sh && o.streams[0].link == o {
			sh.contradict(o, at, "its QP was taken by a newer connection")
		}
	}
}
