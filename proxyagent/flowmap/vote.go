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
	y.acks++
	p := y.pair
	v := p.voting()
	if v == nil {
		return
	}
	to := 1 - y.side // requests that y answers go there
	index, lag := &v.index[to], v.lags[to]
	if y.exact() {
		if !lag.enough() || y.acks%16 == 0 {
			if d, ok := index.lagOf(y.link.partner(y), psn, at, lagBoundStart); ok {
				v.addLag(to, d)
			}
		}
		return
	}
	var found [maxPerPSN]match
	n := index.find(psn, at, lag.limit(), &found)
	if n > 1 {
		v.chance += float64(n - 1)
	}
	if p.asking[to] > 1 {
		v.trials += float64(p.asking[to] - 1)
	}
	for _, m := range found[:n] {
		x := m.stream
		if x.exact() { // it has its peer; it was counted in |C| all the same
			continue
		}
		c := sh.candidateOf(x, y)
		if c == nil || c.ended {
			continue
		}
		if c.hits == 0 {
			c.first = at
		}
		c.last = max(c.last, at)
		c.hits++
		if n <= exclusiveMax {
			c.hx++
		}
		if x.link != nil && x.link == y.link {
			v.addLag(to, m.lag)
		}
		sh.judge(c, at)
		if y.exact() {
			return
		}
	}
}
