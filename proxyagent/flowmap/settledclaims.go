package flowmap

// Settled pairs hold the QPs of their ends as links do (rule 10); that they are in the index of the settled says
// so. What follows is called with the lock of the claims, under which pairs enter and leave the index.

// lostPair is a settled pair that lost an end, as long as its seq is the same.
type lostPair struct {
	pair settledRef
	seq  uint32
}

// holder returns the settled pair that holds an (address, QP), if any.
func (st *settledStore) holder(k claimKey) (found settledRef, ok bool) {
	if st.count.Load() == 0 {
		return 0, false
	}
	st.candidates(settledHash(&k.addr, k.context, k.qp), func(e settledRef, r *settledPair) bool {
		ok = !r.revoked() && r.goesTo(e.side(), k.addr, k.context, k.qp)
		found = e
		return !ok
	})
	return found, ok
}

// ends returns the two (address, QP) of a settled pair.
func (st *settledStore) ends(e settledRef) (k [2]claimKey) {
	r := st.at(e)
	key := &r.pair.Load().key
	for side := range uint8(2) {
		k[side] = claimKey{*key.side(side), key.context, r.qp(side)}
	}
	return k
}

// loseSettled makes a settled pair answer nothing from now on. Its shard ends it later.
func (m *Map) loseSettled(e settledRef) {
	r := m.settled.at(e)
	r.qps.Or(settledRevoked)
	m.claims.settled = append(m.claims.settled, lostPair{e, r.seq.Load()})
	m.settledChanged(e)
}

// liveSettled is live for a settled pair.
func (m *Map) liveSettled(e settledRef, now int64) bool {
	r := m.settled.at(e)
	return now-m.settled.seenAt(r) <= liveFor || now-m.settledTapSeen(r) <= liveFor
}

// sweepSettled makes links of the settled pairs that lost an end since the last call, which are revoked then.
func (m *Map) sweepSettled() {
	m.claims.mu.Lock()
	list := m.claims.settled
	m.claims.settled = nil
	m.claims.mu.Unlock()
	for _, lost := range list {
		r := m.settled.at(lost.pair)
		p := r.pair.Load()
		if p == nil {
			continue
		}
		sh := m.shardOf(&p.key)
		sh.mu.Lock()
		if r.seq.Load() == lost.seq {
			sh.unsettle(lost.pair)
		}
		sh.mu.Unlock()
	}
}
