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
	var newer []packet.Key
	for _, lsa := range u.LSAs {
		var what answer
		if what, err = m.receive(now, l, p, lsa); err != nil {
			break
		}
		switch what {
		case acknowledge:
			direct = append(direct, lsa.Header)
		case sendNewer:
			newer = append(newer, lsa.Key)
		}
	}
	m.acknowledge(l, from, direct)
	list := make([]*lsdb.Entry, 0, len(newer))
	for _, k := range newer {
		list = append(list, m.entry(l, k)) // as it is after the whole update
	}
	m.sendLSAs(now, l, from, list)
	return err
}

// answer is what a neighbour gets at once for an LSA.
type answer uint8

const (
	nothing     answer = iota
	acknowledge        // a direct acknowledgment
	sendNewer          // the instance that is here
)

// acknowledge sends acknowledgments: direct ones to a neighbour, delayed ones to all.
func (m *Machine) acknowledge(l *link, to packet.ID, list []packet.Header) {
	for room := l.acksFit(); len(list) > 0; {
		n := min(len(list), room)
		m.send(l.id, to, &packet.Ack{Headers: list[:n:n]})
		list = list[n:]
	}
}

// receive is RFC 2328 section 13 for one LSA.
func (m *Machine) receive(now time.Time, l *link, p *peer, lsa packet.LSA) (answer, error) {
	if !lsa.ChecksumOK() {
		m.count.BadChecksum++
		return nothing, nil
	}
	w, ok := m.where(l, lsa.Type)
	if !ok {
		m.count.Unsupported++
		return nothing, nil
	}
	db := m.DB(w)
	have := db.Get(lsa.Key)
	maxAge := lsa.AgeSeconds() == packet.MaxAge
	if maxAge && have == nil && !m.exchanging(w) {
		m.count.UnknownMaxAge++
		return acknowledge, nil
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
			return nothing, nil
		}
		m.install(now, l, p, w, lsa, own)
		return nothing, nil
	case p.requested(lsa.Key):
		m.count.BadRequest++
		return nothing, ErrBadRequest
	case newer == 0:
		m.count.Duplicate++
		if h, waits := p.waits[lsa.Key]; waits && h.Newer(lsa.Header) == 0 {
			m.acknowledged(l, p, lsa.Key) // implied
			return nothing, nil
		}
		return acknowledge, nil
	}
	m.count.Outdated++
	if have.Age(now) == packet.MaxAge && have.Sequence == packet.MaxSequence {
		return nothing, nil // its number wraps: nobody is to have it back
	}
	if now.Sub(have.Installed) < m.cfg.MinLSArrival || now.Sub(have.Sent) < m.cfg.MinLSArrival {
		return nothing, nil // it has it, or is about to
	}
	have.Sent = now // not twice for an update that has it twice
	return sendNewer, nil
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
