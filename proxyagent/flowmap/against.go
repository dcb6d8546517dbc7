package flowmap

// testAgainst applies rule 4 when x has sent psn for the first time: a stream that had acknowledged that
// PSN before does not answer x.
func (sh *shard) testAgainst(x *stream, psn uint32, at int64) {
	before := at - tapReordering
	for i := 0; i < len(x.cands); i++ {
		c := x.cands[i]
		if c.ended || !c.other(x).acked.before(psn, before) {
			continue
		}
		c.against++
		if c.against < againstNeeded || c.against*againstShare <= c.hits {
			continue
		}
		c.ended = true
		if l := x.link; l != nil && l.cand == c {
			sh.withdraw(l, at, "a response came before its request")
			return
		}
	}
	l := x.link
	if l == nil || l.source != SourcePort || !l.partner(x).acked.before(psn, before) {
		return
	}
	l.against++
	if l.against >= againstNeeded && l.against*againstShare > l.hits {
		sh.withdraw(l, at, "a response came before its request")
	}
}

// good counts a response in sequence for a pair by ports. Both counts are halved now and then, so that
// the past of a long connection does not hide that its QPs are reused.
func (l *link) good() {
	l.hits++
	if l.hits >= linkHitsMax {
		l.hits, l.against = l.hits/2, l.against/2
	}
}
