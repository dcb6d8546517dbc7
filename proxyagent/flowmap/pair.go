package flowmap

import (
	"net/netip"
	"slices"

	"pncd/dataplane/roce"
)

// pairKey names two addresses, lower first, in a context and a VLAN.
type pairKey struct {
	low, high [16]byte
	context   uint32
	vlan      uint16
}

// side is the address of a side.
func (k *pairKey) side(side uint8) *[16]byte {
	if side == 0 {
		return &k.low
	}
	return &k.high
}

// addrPair is what two addresses exchange. Side 0 is the lower address. All of it is guarded by the
// shard's lock, but key and addr never change.
type addrPair struct {
	key  pairKey
	addr [2]netip.Addr
	// streams holds the RC and UC streams by the side they go to.
	streams [2][]*stream
	votes   *voteState // while a stream is open
	ports   portTable
	refs    int    // streams and CM exchanges that keep the pair
	settled int    // settled pairs: their streams count in ports, refs and rc, and are not in streams
	open    int    // RC streams that still need votes
	rc      [2]int // RC streams by the side they go to
	asking  [2]int // RC streams that carried requests and are shown in full, by the side they go to
	mtu     uint16 // the latest path MTU that data or a CM REQ showed; 0 before
	exch    map[exchangeKey]*exchange
	// traffic is that of the prefixes of the two addresses, by side, when followed was in force.
	traffic  [2]*prefixTraffic
	followed *followed
}

// voteState is what only pairs with undecided streams need.
type voteState struct {
	index  [2]psnIndex // by the side that the requests go to
	lags   [2]*lags    // likewise; made when a first lag is known
	chance float64     // rule 3: sum(|C| - 1)
	trials float64     // rule 3: sum(streams - 1)
}

func (v *voteState) addLag(to uint8, lag int64) {
	if v.lags[to] == nil {
		v.lags[to] = new(lags)
	}
	v.lags[to].add(lag)
}

// chanceOf is b of rule 3: how often a stranger matches by chance here.
func (v *voteState) chanceOf() float64 { return (v.chance + 0.5) / (v.trials + 8) }

// portTable counts the streams of a pair by UDP source port and side.
type portTable struct {
	count    []portCount // by port
	streams  [2]int32    // streams with a port, by side
	distinct [2]int      // ports seen on a side
	common   int         // ports seen on both
}

// portCount is how many streams of each side have a port. It takes little room, as a settled pair keeps its own.
type portCount struct {
	port uint16
	n    [2]uint16 // portMany: so many or more, and it stays
}

const portMany = 0xFFFF

func (t *portTable) find(port uint16) (int, bool) {
	return slices.BinarySearchFunc(t.count, port, func(c portCount, p uint16) int { return int(c.port) - int(p) })
}

// add counts a stream more (1) or less (-1).
func (t *portTable) add(port uint16, side uint8, n int32) {
	i, ok := t.find(port)
	if !ok {
		t.count = slices.Insert(t.count, i, portCount{port: port})
	}
	c := &t.count[i]
	t.streams[side] += n
	had, hadOther := c.n[side] > 0, c.n[1-side] > 0
	if c.n[side] != portMany {
		c.n[side] += uint16(n)
	}
	has := c.n[side] > 0
	switch {
	case has && !had:
		t.distinct[side]++
		if hadOther {
			t.common++
		}
	case had && !has:
		t.distinct[side]--
		if hadOther {
			t.common--
		} else {
			t.count = slices.Delete(t.count, i, i+1)
		}
	}
}

// unique says whether exactly one stream of each side has this port.
func (t *portTable) unique(port uint16) bool {
	i, ok := t.find(port)
	return ok && t.count[i].n == [2]uint16{1, 1}
}

// symmetric says whether the two directions of a connection have the same port here (rule 5): at least
// two ports of one side are also seen on the other, and not fewer than are missing there.
func (t *portTable) symmetric() bool {
	return t.common >= 2 && t.common >= max(t.distinct[0], t.distinct[1])-t.common
}

// join counts a stream in its pair, from its first packet on.
func (p *addrPair) join(s *stream) {
	p.unshelve(s)
	if s.transport == roce.TransportRC {
		p.rc[s.side]++
	}
	if s.hasPort {
		p.ports.add(s.port, s.side, 1)
	}
}

// leave takes a stream out of its pair's counts.
func (p *addrPair) leave(s *stream) {
	if s.pos < 0 {
		return
	}
	if s.transport == roce.TransportRC {
		p.rc[s.side]--
	}
	if s.hasPort {
		p.ports.add(s.port, s.side, -1)
	}
	p.shelve(s)
}

// unshelve lists a stream of a settled pair again.
func (p *addrPair) unshelve(s *stream) {
	s.pos = int32(len(p.streams[s.side]))
	p.streams[s.side] = append(p.streams[s.side], s)
	p.countOpen(s)
}

// shelve takes a stream that is settled from its pair's lists.
func (p *addrPair) shelve(s *stream) {
	list := p.streams[s.side]
	last := list[len(list)-1]
	list[s.pos], last.pos = last, s.pos
	list[len(list)-1] = nil
	p.streams[s.side] = list[:len(list)-1]
	s.pos = -1
	if len(p.streams[0])+len(p.streams[1]) == 0 {
		p.streams = [2][]*stream{}
	}
	p.countAsking(s)
	p.countOpen(s)
}

// countOpen keeps the number of streams that need votes. Without any, nothing is indexed.
func (p *addrPair) countOpen(s *stream) {
	open := s.pos >= 0 && s.transport == roce.TransportRC && !s.exact()
	if open == s.open {
		return
	}
	s.open = open
	if open {
		p.open++
		return
	}
	p.open--
	if p.open == 0 {
		p.votes = nil
	}
}

// countAsking keeps the number of streams that carried requests, of those whose requests are shown.
func (p *addrPair) countAsking(s *stream) {
	asking := s.pos >= 0 && s.transport == roce.TransportRC && s.req.seen && s.tap.sight == Watched
	if asking == s.asking {
		return
	}
	s.asking = asking
	if asking {
		p.asking[s.side]++
	} else {
		p.asking[s.side]--
	}
}

// voting returns the state of the votes, made when it is first needed, or nil when no stream needs it.
func (p *addrPair) voting() *voteState {
	if p.votes == nil && p.open > 0 {
		p.votes = new(voteState)
	}
	return p.votes
}
