package flooding

import (
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// ReceiveUpdate takes a link state update of a neighbour. The error is ErrBadRequest, or says that the neighbour
// may send none.
func (m *Machine) ReceiveUpdate(now time.Time, id InterfaceID, from packet.ID, u *packet.Update) error {
	l, p, err := m.peerOf(id, from)
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

// acknowledge sends direct acknowledgments.
func (m *Machine) acknowledge(l *link, to packet.ID, list []packet.Header) {
	for room := max(l.size/packet.HeaderLen, 1); len(list) > 0; {
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
	own := lsa.Adv == m.cfg.Router
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
			delete(p.waits, lsa.Key) // an implied acknowledgment
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
	e, change, err := db.Install(now, lsa, own)
	if err != nil {
		m.count.Full++
		return
	}
	m.count.Stored++
	m.installed(w, e)
	back := m.flood(now, w, e, l, p)
	if !back {
		if l.acks == nil {
			l.ackAt = now.Add(m.cfg.AckDelay)
		}
		l.acks = append(l.acks, lsa.Header)
	}
	if change != lsdb.Refreshed {
		m.seen(w, lsa.Key)
	}
	if own {
		m.ownReceived(now, w, e)
	}
}

// installed takes older instances off all retransmission lists, and notes whether the LSA is to be removed.
func (m *Machine) installed(w Where, e *lsdb.Entry) {
	m.eachLink(w, func(l *link) {
		for _, p := range l.peers {
			delete(p.waits, e.Key)
		}
	})
	if e.AgeSeconds() == packet.MaxAge {
		m.dying[dying{w, e.Key}] = struct{}{}
	} else {
		delete(m.dying, dying{w, e.Key})
	}
}

// flood passes an LSA on (RFC 2328 section 13.3); on and from say how it came, nil for an own one. It reports
// whether the LSA went out on the interface that it came from.
func (m *Machine) flood(now time.Time, w Where, e *lsdb.Entry, on *link, from *peer) (back bool) {
	m.eachLink(w, func(l *link) {
		added := false
		for _, p := range l.peers {
			if !p.Flooding() || p == from || e.Type.Opaque() && m.cfg.Version == packet.V2 && !p.Opaque() {
				if p == from {
					p.satisfied(e.Header)
				}
				continue
			}
			if !p.Full() && p.satisfied(e.Header) {
				continue
			}
			if len(p.waits) == 0 {
				p.again = now.Add(m.cfg.Retransmit)
			}
			p.waits[e.Key] = e.Header
			added = true
		}
		if !added || l == on && from.Designated() {
			return // nobody wants it; or the Designated Router has told all others
		}
		m.sendLSAs(now, l, 0, []*lsdb.Entry{e})
		back = back || l == on
	})
	return back
}

// satisfied takes an LSA off a neighbour's request list, unless the one asked for is newer. It reports whether
// the neighbour needs it no more.
func (p *peer) satisfied(h packet.Header) bool {
	asked, yes := p.Requested(h.Key)
	if !yes {
		return false
	}
	newer := h.Newer(asked)
	if newer >= 0 {
		p.Satisfy(h.Key)
	}
	return newer <= 0
}

// ReceiveAck takes acknowledgments of a neighbour (RFC 2328 section 13.7).
func (m *Machine) ReceiveAck(_ time.Time, id InterfaceID, from packet.ID, a *packet.Ack) error {
	_, p, err := m.peerOf(id, from)
	if err != nil {
		return err
	}
	for _, h := range a.Headers {
		if waits, yes := p.waits[h.Key]; yes && waits.Newer(h) == 0 {
			delete(p.waits, h.Key)
			m.count.Acknowledged++
		} else {
			m.count.UnexpectedAcks++
		}
	}
	return nil
}

// sendLSAs sends LSAs in as few updates as the interface's MTU allows.
func (m *Machine) sendLSAs(now time.Time, l *link, to packet.ID, list []*lsdb.Entry) {
	lsas := make([]packet.LSA, len(list))
	for i, e := range list {
		raw := e.AppendTo(nil, now, m.cfg.TransmitDelay)
		lsas[i] = packet.LSA{Raw: raw}
		lsas[i].Header, _ = packet.ParseHeader(m.cfg.Version, raw)
	}
	for _, u := range packet.Updates(lsas, l.size) {
		m.send(l.id, to, u)
	}
}
