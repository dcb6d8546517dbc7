package flowmap

import "testing"

// scoring is a candidate as the votes may have left it, for the numbers in rules 5 and 6.
type scoring struct {
	hits, hx, acks uint32
	rival          uint32  // the best rival's hx
	ended          bool    // rule 4 ended that rival
	span           int64   // between the first and the last vote
	streams        int     // on each side
	extra          int     // more on one side
	chance, trials float64 // rule 3's sums
	ports          [2]uint16
	symmetric      bool
	low            bool // first PSNs under 65,536
	firstMSN       uint32
	messages, psns uint32 // completed since, and the PSNs that they took
	complete       bool
}

// build makes the candidate among streams of its own.
func (c scoring) build() (*shard, *candidate) {
	m := New(Config{TapComplete: c.complete})
	sh := &m.shards[0]
	p := &addrPair{votes: &voteState{chance: c.chance, trials: c.trials}, rc: [2]int{c.streams, c.streams + c.extra}}
	first := uint32(highStart)
	if c.low {
		first = 9
	}
	mk := func(side uint8, qp uint32, port uint16) *stream {
		s := &stream{pair: p, side: side, qp: qp, port: port, hasPort: true, acks: c.acks}
		s.req, s.resp = half{seen: true, first: first, high: first}, half{seen: true, first: first, high: first + c.psns}
		s.msnSeen, s.firstMSN, s.msn = true, c.firstMSN, c.firstMSN+c.messages
		p.ports.add(port, side, 1)
		return s
	}
	x, y := mk(1, 0x22, c.ports[0]), mk(0, 0x11, c.ports[1])
	if c.symmetric {
		for i := range uint16(2) {
			p.ports.add(50000+i, 0, 1)
			p.ports.add(50000+i, 1, 1)
		}
	}
	cand := sh.newCandidate(x, y)
	cand.hits, cand.hx, cand.first, cand.last = c.hits, c.hx, 0, c.span
	if c.rival > 0 {
		r := sh.newCandidate(mk(1, 0x33, 60000), y)
		r.hits, r.hx, r.ended = c.rival, c.rival, c.ended
	}
	return sh, cand
}

func TestRule5Thresholds(t *testing.T) {
	base := scoring{hits: 2, acks: 64, span: 1_000_000, streams: 2, symmetric: true, ports: [2]uint16{51000, 51000}}
	for _, c := range []struct {
		name string
		edit func(*scoring)
		want bool
	}{
		{"as it must be", func(*scoring) {}, true},
		{"one hit", func(c *scoring) { c.hits = 1 }, false},
		{"hits under ACKs / 32", func(c *scoring) { c.acks = 65 }, false},
		{"ports differ", func(c *scoring) { c.ports[1]++ }, false},
		{"hits 0.4 x the rival's hx", func(c *scoring) { c.rival = 5 }, true},
		{"hits under 0.4 x the rival's hx", func(c *scoring) { c.rival = 6 }, false},
		{"that rival was ended", func(c *scoring) { c.rival, c.ended = 6, true }, true},
		{"votes within a millisecond", func(c *scoring) { c.span-- }, false},
		{"ports not symmetric", func(c *scoring) { c.symmetric = false }, false},
		{"more than 128 pairs", func(c *scoring) { c.streams = 12 }, false},
		{"more than 128 pairs, complete tap", func(c *scoring) { c.streams, c.complete = 12, true }, true},
	} {
		x := base
		c.edit(&x)
		sh, cand := x.build()
		if got := sh.decidesByPort(cand); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRule5FormulaBurst(t *testing.T) {
	port := formulaPort(0x11 * 0x22)
	base := scoring{hits: 4, acks: 8, streams: 1, ports: [2]uint16{port, port}}
	for _, c := range []struct {
		name string
		edit func(*scoring)
		want bool
	}{
		{"four votes, half of the ACKs", func(*scoring) {}, true},
		{"three votes", func(c *scoring) { c.hits, c.acks = 3, 3 }, false},
		{"under half of the ACKs", func(c *scoring) { c.acks = 9 }, false},
		{"under half of the ACKs, over a millisecond", func(c *scoring) { c.acks, c.span = 9, 1_000_000 }, true},
		{"two votes over a millisecond", func(c *scoring) { c.hits, c.span = 2, 1_000_000 }, true},
	} {
		x := base
		c.edit(&x)
		sh, cand := x.build()
		if got := sh.decidesByPort(cand); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRule6Thresholds(t *testing.T) {
	isolated := scoring{hits: 3, hx: 3, acks: 96, span: 1_000_000, streams: 2, trials: 64, ports: [2]uint16{49152, 49153},
		firstMSN: 1, messages: 3, psns: 3}
	low := isolated
	low.low, low.complete = true, true
	for _, c := range []struct {
		name string
		base scoring
		edit func(*scoring)
		want bool
	}{
		{"isolated", isolated, func(*scoring) {}, true},
		{"hx 2", isolated, func(c *scoring) { c.hx, c.acks = 2, 2 }, false},
		{"hx under ACKs / 32", isolated, func(c *scoring) { c.acks = 97 }, false},
		{"votes within a millisecond", isolated, func(c *scoring) { c.span-- }, false},
		{"runner-up at hx / 4", isolated, func(c *scoring) { c.hx, c.hits, c.rival = 8, 8, 2 }, true},
		{"runner-up over hx / 4", isolated, func(c *scoring) { c.hx, c.hits, c.rival = 8, 8, 3 }, false},
		{"b over 1/32", isolated, func(c *scoring) { c.chance = 2 }, false},
		{"b over 1/32, n = 1", isolated, func(c *scoring) { c.chance, c.streams = 2, 1 }, true},
		{"first MSN 63", isolated, func(c *scoring) { c.firstMSN = 63 }, true},
		{"first MSN 64", isolated, func(c *scoring) { c.firstMSN = 64 }, false},
		{"no message completed since", isolated, func(c *scoring) { c.messages = 0 }, false},
		{"messages like those seen reach back to 65,536", isolated, func(c *scoring) { c.firstMSN, c.psns = 40, 3*(highStart-65_536)/160 }, true},
		{"messages like those seen reach under 65,536", isolated, func(c *scoring) { c.firstMSN, c.psns = 40, 3*(highStart-65_536)/160+3 }, false},
		{"low starts", isolated, func(c *scoring) { c.low = true }, false},
		{"ports symmetric but different here", isolated, func(c *scoring) { c.symmetric = true }, false},
		{"complete, hx 16", low, func(c *scoring) { c.hx, c.hits, c.chance = 16, 16, 30 }, true},
		{"complete, hx 15, b over 1/32", low, func(c *scoring) { c.hx, c.hits, c.chance = 15, 15, 30 }, false},
		{"complete, hx 4, b small, 64 trials", low, func(c *scoring) { c.hx, c.hits, c.acks = 4, 4, 4 }, true},
		{"complete, hx 4, b small, 64 trials, of so many responses that strangers get them", low, func(c *scoring) { c.hx, c.hits, c.acks = 4, 4, 5 }, false},
		{"complete, hx 3, b small, 64 trials", low, func(c *scoring) { c.acks = 3 }, false},
		{"complete, hx 4, 63 trials", low, func(c *scoring) { c.hx, c.hits, c.acks, c.trials = 4, 4, 4, 63 }, false},
		{"complete, n = 1, hx 3", low, func(c *scoring) { c.streams = 1 }, true},
		{"complete, nX and nY differ", low, func(c *scoring) { c.hx, c.hits, c.extra = 16, 16, 1 }, false},
		{"not declared, hx 16", low, func(c *scoring) { c.hx, c.hits, c.complete = 16, 16, false }, false},
	} {
		x := c.base
		c.edit(&x)
		sh, cand := x.build()
		if got := sh.decidesByPSN(cand); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRule5PortsThatTellConnectionsApart(t *testing.T) {
	for _, c := range []struct {
		name        string
		x, y, other int // streams with the port on each side, and with ports of their own
		want        bool
	}{
		{"one stream each way", 1, 1, 0, true},
		{"a collision among others", 2, 2, 2, true},
		{"most streams have it", 2, 2, 1, false},
		{"four each way among many", 4, 4, 60, true},
		{"five and four among many", 5, 4, 60, false},
		{"not seen", 0, 0, 5, false},
	} {
		var p portTable
		for range c.x {
			p.add(49152, 0, 1)
		}
		for range c.y {
			p.add(49152, 1, 1)
		}
		for i := range uint16(c.other) {
			p.add(50000+i, 0, 1)
			p.add(50000+i, 1, 1)
		}
		if got := p.telling(49152); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
