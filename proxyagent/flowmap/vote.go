package flowmap

import "pncd/dataplane/roce"

// canVote says whether a response of this kind votes: ACK, ATOMIC ACK, READ response first and only, never
// a NAK or an RNR NAK (rule 2).
func canVote(op roce.Opcode, aeth roce.AETH) bool {
	switch {
	case op.IsAck(), op.IsAtomicAck():
		return aeth.IsAck()
	case op.IsReadResponseFirst(), op.IsReadResponseOnly():
		return true
	}
	return false
}

// vote takes a response of stream y with this PSN for the requests that it may answer (rules 2 and 3).
func (sh *shard) vote(y *stream, psn uint32, at int64) {
	if y.voted && y.lastVote == psn {
		return
	}
	y.voted, y.lastVote = true, psn
	p := y.pair
	v := p.voting()
	if v == nil {
		y.acks++
		return
	}
	to := 1 - y.side // requests that y answers go there
	index, lag := &v.index[to], v.lags[to]
	if !index.samples(psn) {
		return
	}
	y.acks++
	if y.exact() {
		if !lag.enough() || y.acks%16 == 0 {
			if d, ok := index.lagOf(y.link.partner(y), psn, at, lagBoundStart); ok {
				v.addLag(to, d)
			}
		}
		return
	}
	var found matches
	n, m := index.find(psn, y.port, at, lag.limit(), &found)
	if n > 1 {
		v.chance += float64(n - 1)
	}
	if p.asking[to] > 1 {
		v.trials += float64(p.asking[to] - 1)
	}
	for _, f := range found[:m] {
		if f.stream.exact() { // it has its peer; it was counted in |C| all the same
			continue
		}
		if sh.match(f, y, n <= exclusiveMax, at); y.exact() {
			return
		}
	}
}

// match gives one match of a response of y its vote.
func (sh *shard) match(f match, y *stream, exclusive bool, at int64) {
	x := f.stream
	c := findCandidate(x, y)
	if c == nil {
		// A match in a crowd counts for nothing but rule 5: it makes a candidate only where ports may tell.
		if !exclusive && (x.port != y.port || !y.pair.ports.telling(y.port)) {
			return
		}
		if c = sh.newCandidate(x, y); c == nil {
			return
		}
		c.first = at
	}
	if c.ended {
		return
	}
	c.last = max(c.last, at)
	c.hits++
	if exclusive {
		c.hx++
	}
	if x.link != nil && x.link == y.link {
		y.pair.votes.addLag(x.side, f.lag)
	}
	sh.judge(c, at)
}
