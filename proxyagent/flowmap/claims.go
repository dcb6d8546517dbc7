package flowmap

import "sync"

// claims holds which link has an (address, QP): one RC peer at a time (rule 10). It spans all address
// pairs, so it has a lock of its own, taken after a shard's.
type claims struct {
	mu      sync.Mutex
	held    map[claimKey]*link
	revoked []*link // not yet swept
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
	for i, k := range ends {
		other := c.held[k]
		if other == nil || other == l || other.revoked.Load() || sameEnds(other, l) {
			continue
		}
		if !exact && m.live(other, now) {
			return [2]*link{}, false
		}
		lost[i] = other
	}
	if c.held == nil {
		c.held = make(map[claimKey]*link)
	}
	for i, k := range ends {
		if lost[i] != nil {
			c.lose(lost[i])
		}
		c.held[k] = l
	}
	return lost, true
}

// lose makes a link answer nothing from now on. Its shard ends it later.
func (c *claims) lose(l *link) {
	if !l.revoked.Swap(true) {
		c.revoked = append(c.revoked, l)
	}
}

// revoke takes a link's ends away because their owner is known to use one anew.
func (c *claims) revoke(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose(l)
}

// takeRevoked returns the links revoked since the last call, for the sweep.
func (c *claims) takeRevoked() []*link {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.revoked
	c.revoked = nil
	return list
}

// holder returns the link that holds an (address, QP), if any.
func (c *claims) holder(k claimKey) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[k]
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
