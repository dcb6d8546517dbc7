package flowmap

import "sync"

// claims holds which link has an (address, QP): one RC peer at a time (rule 10). It spans all address
// pairs, so it has a lock of its own, taken after a shard's.
type claims struct {
	mu      sync.Mutex
	held    map[claimKey]*link
	revoked []*link // not yet swept
	settled []lostPair
	peak    int // QPs held at most since the map was made
}

type claimKey struct {
	addr        [16]byte
	context, qp uint32
}

// ends returns the two (address, QP) of a link.
func (l *link) ends() [2]claimKey {
	var k [2]claimKey
	for i, s := range l.streams {
		k[i] = claimKey{s.pair.addr[i].As16(), l.context, s.qp}
	}
	return k
}

// sameEnds says whether two links are one connection seen in two VLANs.
func sameEnds(a, b *link) bool {
	x, y := a.ends(), b.ends()
	return x == y
}

// claim takes both ends for l. By votes, a live link that names another peer refuses it; an exact claim
// always wins. Links that lose an end are revoked; it returns them and whether the claim holds.
func (m *Map) claim(l *link, now int64, exact bool) (lost [2]*link, ok bool) {
	c := &m.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := l.ends()
	var settled [2]settledRef
	for i, k := range ends {
		if other := c.held[k]; other != nil && other != l && !other.revoked.Load() && !sameEnds(other, l) {
			if !exact && m.live(other, now) {
				return [2]*link{}, false
			}
			lost[i] = other
		}
		if e, ok := m.settled.holder(k); ok && m.settled.ends(e) != ends {
			if !exact && m.liveSettled(e, now) {
				return [2]*link{}, false
			}
			settled[i] = e | 1 // never 0
		}
	}
	for i, k := range ends {
		if lost[i] != nil {
			m.lose(lost[i])
		}
		if settled[i] != 0 {
			m.loseSettled(settled[i])
		}
		c.hold(k, l)
	}
	return lost, true
}

func (c *claims) hold(k claimKey, l *link) {
	if c.held == nil {
		c.held = make(map[claimKey]*link)
	}
	c.held[k] = l
	c.peak = max(c.peak, len(c.held))
}

// lose makes a link answer nothing from now on. Its shard ends it later. The caller holds the lock of the claims.
func (m *Map) lose(l *link) {
	if !l.revoked.Swap(true) {
		m.claims.revoked = append(m.claims.revoked, l)
		m.linkRevoked(l)
	}
}

// takeRevoked returns the links revoked since the last call, for the sweep.
func (c *claims) takeRevoked() []*link {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.revoked
	c.revoked = nil
	return list
}

// release gives up what l holds.
func (c *claims) release(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range l.ends() {
		if c.held[k] == l {
			delete(c.held, k)
		}
	}
}
