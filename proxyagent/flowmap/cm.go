package flowmap

import (
	"errors"
	"net/netip"
	"time"

	"pncd/dataplane/roce"
)

// exchangeExpiry is how long an exchange may stay without REP: longer than the longest CM response
// timeouts with their retries that stacks use (Linux rdma_cm: 15 tries of about 1 s).
const exchangeExpiry = int64(30 * time.Second)

// observeCM takes a datagram to QP 1. Those of connection management make and end pairs exactly; they win
// over votes.
func (sh *shard) observeCM(o *Observation, key pairKey, from uint8, at int64) {
	mad, err := roce.ParseMAD(o.Packet.Body)
	if err != nil {
		if errors.Is(err, roce.ErrNotCM) {
			sh.c.CMOther++
		} else {
			sh.c.Malformed++
		}
		return
	}
	cm := &mad.CM
	switch cm.Kind {
	case roce.CMREQ:
		sh.c.CMREQ++
		sh.cmREQ(o, key, from, cm, at)
		return
	case roce.CMSIDRREQ: // SIDR resolves UD QPs, whose packets name their source QP themselves
		sh.c.CMSIDRREQ++
		return
	case roce.CMSIDRREP:
		sh.c.CMSIDRREP++
		return
	case roce.CMLAP: // alternate paths: the QPs stay
		sh.c.CMLAP++
		return
	case roce.CMAPR:
		sh.c.CMAPR++
		return
	}
	p := sh.pairs[key]
	var e *exchange
	if p != nil {
		e = p.exchangeOf(from, cm.LocalCommID, cm.RemoteCommID)
	}
	sh.cmAnswer(o, p, e, from, cm, at)
}

// cmAnswer takes the messages that refer to an exchange; e is nil when its REQ was not seen.
func (sh *shard) cmAnswer(o *Observation, p *addrPair, e *exchange, from uint8, cm *roce.CM, at int64) {
	if e != nil {
		e.at = at
	}
	switch cm.Kind {
	case roce.CMMRA: // the peer asks for time
		sh.c.CMMRA++
	case roce.CMREP:
		sh.c.CMREP++
		switch {
		case e == nil || e.side == from:
		case !e.replied && !sh.cmFree(o, p.key.context, o.Packet.Src, cm.LocalQPN, at):
			sh.c.CMMismatch++
		default:
			sh.cmREP(e, cm, at)
		}
	case roce.CMRTU:
		sh.c.CMRTU++
		if e != nil && e.side == from && e.link != nil && !e.link.suspended {
			sh.confirm(e.link, at, "CM, ready to use")
		}
	case roce.CMREJ:
		sh.c.CMREJ++
		sh.cmEnd(e, at, "rejected (REJ)")
	case roce.CMDREQ:
		sh.c.CMDREQ++
		sh.cmDREQ(p, e, from, cm, at)
	case roce.CMDREP:
		sh.c.CMDREP++
		sh.cmEnd(e, at, "disconnected (DREP)")
	}
}

// cmREQ starts an exchange. When it names a QP that has a peer, that connection is over.
func (sh *shard) cmREQ(o *Observation, key pairKey, from uint8, cm *roce.CM, at int64) {
	transport := roce.TransportRC
	switch cm.Transport {
	case roce.CMTransportRC:
	case roce.CMTransportUC:
		transport = roce.TransportUC
	case roce.CMTransportExtended:
		sh.c.UnsupportedXRC++
		return
	default:
		sh.c.UnsupportedDC++
		return
	}
	if !gidIs(cm.LocalGID, o.Packet.Src) || !gidIs(cm.RemoteGID, o.Packet.Dst) {
		sh.c.CMMismatch++
		return
	}
	if p := sh.pairs[key]; p != nil {
		if e := p.exch[exchangeKey{from, cm.LocalCommID}]; e != nil {
			if e.reqQPN == cm.LocalQPN && e.reqPSN == cm.StartingPSN {
				e.at = at // a retransmission
				return
			}
			sh.cmReplaced(e, at)
		}
	}
	if !sh.cmFree(o, key.context, o.Packet.Src, cm.LocalQPN, at) {
		sh.c.CMMismatch++
		return
	}
	p := sh.pairs[key]
	if p == nil {
		p = sh.newPair(key, o.Packet.Src, o.Packet.Dst)
	}
	if mtu := cm.PathMTU; mtu >= 1 && mtu <= 5 {
		p.mtu = 128 << mtu
	}
	sh.addExchange(&exchange{pair: p, side: from, reqID: cm.LocalCommID, reqQPN: cm.LocalQPN, reqPSN: cm.StartingPSN,
		pkey: cm.PKey, transport: transport, at: at})
}

// cmReplaced ends an exchange whose requester uses its id for a new one.
func (sh *shard) cmReplaced(e *exchange, at int64) {
	if l := e.link; l != nil {
		sh.contradict(l, at, "a newer CM exchange")
		return
	}
	sh.dropExchange(e)
}

// cmFree ends the connection that a QP has, because its owner connects it anew. It reports false when the
// connection is live and the datagram does not come the way that the QP's own packets come: then it is not
// believed (rule 11). That way is not known of a settled pair: while it is live, no datagram is believed, and votes must
// find the new connection.
func (sh *shard) cmFree(o *Observation, context uint32, owner netip.Addr, qp uint32, at int64) bool {
	m, c, k := sh.m, &sh.m.claims, claimKey{owner.As16(), context, qp}
	c.mu.Lock()
	l := c.held[k]
	e, settled := m.settled.holder(k)
	free, ours := true, false
	switch {
	case l != nil:
		free, ours = !m.ownedElsewhere(l, owner, o, at), m.shardOf(&l.streams[0].pair.key) == sh
		if free && !ours {
			m.lose(l)
		}
	case settled:
		r := m.settled.at(e)
		free, ours = at-m.settledSideSeen(r, 1-e.side()) > liveFor, m.shardOf(&r.pair.Load().key) == sh
		if free && !ours {
			m.loseSettled(e)
		}
	}
	c.mu.Unlock()
	switch {
	case free && ours:
		if l == nil {
			l = sh.unsettle(e)
		}
		sh.contradict(l, at, "a newer CM exchange uses its QP")
	case free && (l != nil || settled):
		m.version.Add(1)
	}
	return free
}

// ownedElsewhere says whether the owner of one of a link's QPs sends, and another way than the packet came. It needs no
// shard's lock.
func (m *Map) ownedElsewhere(l *link, owner netip.Addr, o *Observation, at int64) bool {
	for _, s := range l.streams { // the owner's own packets go to the other side
		if s.pair.addr[1-s.side] == owner && s.meta.Load()&metaSeen != 0 && at-max(s.lastSeen.Load(), m.tapSeen(s)) <= liveFor && !s.id.sameSource(o) {
			return true
		}
	}
	return false
}

// cmREP completes an exchange: from now on the pair is usable.
func (sh *shard) cmREP(e *exchange, cm *roce.CM, at int64) {
	if e.replied {
		if l := e.link; l != nil && (e.repID != cm.LocalCommID || e.repQPN != cm.LocalQPN || e.repPSN != cm.StartingPSN) {
			sh.contradict(l, at, "two REPs to one REQ disagree")
		}
		return
	}
	e.replied = true
	e.repID, e.repQPN, e.repPSN = cm.LocalCommID, cm.LocalQPN, cm.StartingPSN
	p := e.pair
	l := &link{source: SourceCM, context: p.key.context, exch: e}
	for _, half := range [2]struct {
		side    uint8
		qp, psn uint32
	}{{e.side, e.reqQPN, e.reqPSN}, {1 - e.side, e.repQPN, e.repPSN}} {
		s := sh.streamTo(p, half.side, half.qp, e.transport, at)
		if s.link != nil {
			sh.contradict(s.link, at, "a newer CM exchange uses its QP")
		}
		sh.reset(s)
		s.closedAt = 0
		before := (half.psn - 1) & psnMask
		s.req = half0(before, at)
		sh.m.setMeta(s, pkeyMeta(e.pkey))
		l.streams[half.side] = s
	}
	lost, _ := sh.m.claim(l, at, true)
	sh.sweepLost(lost, at)
	e.link = l
	sh.pending.remove(e)
	sh.establish(l, at, "CM")
}

// half0 is a half whose first packet is yet to come: it will follow high.
func half0(high uint32, at int64) half {
	return half{seen: true, first: (high + 1) & psnMask, high: high, at: at}
}

// cmDREQ ends a connection by the exchange's ids or, when its REQ was not seen, by the QP it names.
func (sh *shard) cmDREQ(p *addrPair, e *exchange, from uint8, cm *roce.CM, at int64) {
	if e != nil {
		qp := e.repQPN
		if e.side != from {
			qp = e.reqQPN
		}
		if e.replied && qp != cm.RemoteQPN {
			sh.c.CMMismatch++
			return
		}
		sh.cmEnd(e, at, "disconnected (DREQ)")
		return
	}
	if p == nil {
		return
	}
	k := p.key.streamKey(1-from, cm.RemoteQPN)
	s := sh.streamAt(&k)
	switch {
	case s == nil || s.link == nil:
	case s.link.exch != nil: // its REQ was seen, and has other ids: this ends an older connection
		sh.c.CMMismatch++
	default:
		sh.unlink(s.link, StateClosed, at, "disconnected (DREQ)")
	}
}

// cmEnd closes an exchange and its pair; nil is fine.
func (sh *shard) cmEnd(e *exchange, at int64, why string) {
	if e == nil {
		return
	}
	if e.link != nil {
		sh.unlink(e.link, StateClosed, at, why)
		return
	}
	sh.dropExchange(e)
}

// gidIs says whether a GID is this address: RoCEv2 GIDs are IPv6 addresses, or IPv4-mapped ones (IBTA annex
// A17.3.1.2).
func gidIs(gid [16]byte, a netip.Addr) bool { return gid == a.As16() }
