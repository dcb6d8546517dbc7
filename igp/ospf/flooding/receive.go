package flooding

import (
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// ReceiveUpdate takes a link state update of a neighbour. The error is ErrBadRequest, or says that the neighbour
// may send none.
func (m *Machine) ReceiveUpdate(now time.Time, id InterfaceID, from packet.ID, u *packet.Update) error {
	m.now = now
	l, p, err := m.senderOf(id, from)
	if err != nil {
		return err
	}
	var direct []packet.Header
	for _, lsa := range u.LSAs {
		ack, err := m.receive(now, l, p, lsa)
		if err != nil {
			m.acknowledge(l, from, direct)
			return err
		}
		if ack {
			direct = append(direct, lsa.Header)
		}
	}
	m.acknowledge(l, from, direct)
	return nil
}

// acknowledge sends acknowledgments: direct ones to a neighbour, delayed ones to all.
func (m *Machine) acknowledge(l *link, to packet.ID, list []packet.Header) {
	for room := l.acksFit(); len(list) > 0; {
		n := min(len(list), room)
		m.send(l.id, to, &packet.Ack{Headers: list[:n:n]})
		list = list[n:]
	}
}

// receive is RFC 2328 section 13 for one LSA. It reports whether a direct acknowledgment is due.
func (m *Machine) receive(now time.Time, l *link, p *peer, lsa packet.LSA) (direct bool, err error) {
	if !lsa.ChecksumOK() {
		m.count.BadChecksum++
		return false, nil
	}
	w, ok := m.where(l, lsa.Type)
	if !ok {
		m.count.Unsupported++
		return false, nil
	}
	db := m.DB(w)
	have := db.Get(lsa.Key)
	maxAge := lsa.AgeSeconds() == packet.MaxAge
	if maxAge && have == nil && !m.exchanging(w) {
		m.count.UnknownMaxAge++
		return true, nil
	}
	newer := 1
	if have != nil {
		newer = lsa.Newer(have.HeaderNow(now))
	}
	own := m.selfOriginated(lsa.Key)
	switch {
	case newer > 0:
		// One's own are never too soon: after a restart the network's copy, often one at MaxAge, may come right
		// behind the first of this life.
		if have != nil && !own && now.Sub(have.Installed) < m.cfg.MinLSArrival {
			m.count.TooSoon++
			return false, nil
		}
		m.install(now, l, p, w, lsa, own)
		return false, nil
	case p.requested(lsa.Key):
		m.count.BadRequest++
		return false, ErrBadRequest
	case newer == 0:
		m.count.Duplicate++
		if h, waits := p.waits[lsa.Key]; waits && h.Newer(lsa.Header) == 0 {
			m.acknowledged(l, p, lsa.Key) // implied
			return false, nil
		}
		return true, nil
	}
	m.count.Outdated++
	if have.Age(now) == packet.MaxAge && have.Sequence == packet.MaxSequence {
		return false, nil // its number wraps: nobody is to have it back
	}
	if now.Sub(have.Installed) >= m.cfg.MinLSArrival {
		m.sendLSAs(now, l, p.Router(), []*lsdb.Entry{have})
	}
	return false, nil
}

func (p *peer) requested(k packet.Key) bool {
	_, yes := p.Requested(k)
	return yes
}

// install takes a newer instance: step 5 of RFC 2328 section 13.
func (m *Machine) install(now time.Time, l *link, p *peer, w Where, lsa packet.LSA, own bool) {
	db := m.DB(w)
	// Own ones have room beyond the bound, so that they can be flushed: as much again, for others could make any
	// number of them in this router's name.
	force := own && (m.ownOf(w, lsa.Key) != nil || db.Len() < 2*db.Limit())
	e, change, err := db.Install(now, lsa, force)
	if err != nil {
		// RFC 1765 section 1 (2): it is neither stored nor acknowledged. Asked for again it would come again, and
		// the adjacency never be full.
		m.count.Full++
		p.Satisfy(lsa.Key)
		return
	}
	m.count.Stored++
	if back := m.installed(w, e, change, l, p); !back {
		m.delayAck(now, l, lsa.Header)
	}
	if own {
		m.ownReceived(now, w, e)
	}
}

// installed floods an instance that was stored, and tells those who read the databases when it means something new.
func (m *Machine) installed(w Where, e *lsdb.Entry, change lsdb.Change, on *link, from *peer) (back bool) {
	back = m.flood(w, e, change != lsdb.Refreshed, on, from)
	m.dying.mark(w, e)
	// Each instance of a grace LSA begins a period.
	if change != lsdb.Refreshed || e.IsGrace(m.cfg.Version) {
		m.seen(w, e.Key)
	}
	return back
}

// delayAck has an LSA acknowledged together with others: after a while, or when a packet is full of them.
func (m *Machine) delayAck(now time.Time, l *link, h packet.Header) {
	if l.acks == nil {
		l.ackAt = now.Add(m.cfg.AckDelay)
	}
	if l.acks = append(l.acks, h); len(l.acks) >= l.acksFit() {
		m.sendAcks(l)
	}
}

func (m *Machine) sendAcks(l *link) {
	m.acknowledge(l, 0, l.acks)
	l.acks = nil
}

// acksFit is how many headers an acknowledgment has room for.
func (l *link) acksFit() int { return max(l.size/packet.HeaderLen, 1) }

// ReceiveAck takes acknowledgments of a neighbour (RFC 2328 section 13.7).
func (m *Machine) ReceiveAck(now time.Time, id InterfaceID, from packet.ID, a *packet.Ack) error {
	m.now = now
	l, p, err := m.senderOf(id, from)
	if err != nil {
		return err
	}
	for _, h := range a.Headers {
		if waits, yes := p.waits[h.Key]; yes && waits.Newer(h) == 0 {
			m.acknowledged(l, p, h.Key)
			m.count.Acknowledged++
		} else {
			m.count.UnexpectedAcks++
		}
	}
	return nil
}
