package flowmap

// Votes that let a pair by the formula off rule 11's span: a burst shorter than a millisecond decides when
// at least so many votes, and at least half of the responses, agree. A blind forger meets that with the
// share of the PSN space that is in flight to this power.
const burstHits = 4

// decidesByPort applies rule 5.
func (sh *shard) decidesByPort(c *candidate) bool {
	x, y := c.streams[0], c.streams[1]
	if !x.hasPort || x.port != y.port || c.hits < 2 || !c.enough(c.hits) || 5*c.hits < 2*c.bestRival() {
		return false
	}
	if c.byFormula() {
		return c.spans() || c.hits >= burstHits && 2*c.hits >= max(x.acks, y.acks)
	}
	if !c.spans() {
		return false
	}
	p := x.pair
	return p.ports.unique(x.port) && p.ports.symmetric() &&
		(sh.m.tapComplete.Load() || p.rc[0]*p.rc[1] <= fewPairs)
}

// formulaPairs bounds the pairs of streams with one port among which the formula is believed: it holds for
// a stranger once in 8,192 times, so among the 4,096 pairs of 64 streams that all have the adapter's
// default port it would hold for some of them.
const formulaPairs = 16

// telling says whether a port may tell connections apart here: few streams have it, and not most of them.
func (t *portTable) telling(port uint16) bool {
	i, ok := t.find(port)
	if !ok {
		return false
	}
	c := t.count[i].n
	if int(c[0])*int(c[1]) > formulaPairs {
		return false
	}
	for side, n := range c {
		if n > 1 && 2*int32(n) > t.streams[side] {
			return false
		}
	}
	return true
}

// byFormula says whether exactly one candidate with this port, among those of both streams, satisfies the
// kernel's port formula, and it is this one. Among several the IPv6 flow label breaks the tie (rule 9).
func (c *candidate) byFormula() bool {
	if !c.satisfies() || !c.streams[0].pair.ports.telling(c.streams[0].port) {
		return false
	}
	label := c.sameLabel()
	for _, s := range c.streams {
		for _, r := range s.cands {
			if r != c && !r.ended && r.satisfies() && (!label || r.sameLabel()) {
				return false
			}
		}
	}
	return true
}

func (c *candidate) satisfies() bool {
	x, y := c.streams[0], c.streams[1]
	return x.hasPort && y.hasPort && x.port == y.port && portMatches(x.qp, y.qp, x.port)
}

// sameLabel says whether both directions have the same non-zero IPv6 flow label.
func (c *candidate) sameLabel() bool {
	x, y := c.streams[0], c.streams[1]
	return x.flowLabel != 0 && x.flowLabel == y.flowLabel
}
