package flooding

import (
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// flood passes an LSA on (RFC 2328 section 13.3) with the next Tick; older instances are off all retransmission
// lists from now on (section 13, step 5 c). changed says that it is no periodic refresh; on and from say how it
// came, nil for an own one. It reports whether the LSA goes out on the interface that it came from.
//
// An Extended Prefix LSA of the domain's scope goes to nobody, whoever made it and at whatever age: see
// packet.Key.ASExtendedPrefix. A leaf is on no other router's only path.
func (m *Machine) flood(w Where, e *lsdb.Entry, changed bool, on *link, from *peer) (back bool) {
	withheld := e.ASExtendedPrefix(m.cfg.Version)
	if withheld {
		m.count.Withheld++
	}
	m.eachLink(w, func(l *link) {
		added := false
		for _, p := range l.peers {
			old := p.waits[e.Key]
			p.drop(e.Key)
			if !p.Flooding() || p == from || withheld || e.Type.Opaque() && m.cfg.Version == packet.V2 && !p.Opaque() {
				if p == from {
					p.satisfied(e.Header)
				}
				continue
			}
			if !p.Full() && p.satisfied(e.Header) {
				continue
			}
			// A refresh is a change for those who have yet to see the change before it.
			p.waits[e.Key] = waiting{e.Header, changed || old.changed}
			added = true
		}
		if !added || l == on && from.Designated() {
			for _, p := range l.peers {
				if _, yes := p.waits[e.Key]; yes { // the Designated Router has told it
					p.again.Set(e.Key, m.now.Add(l.retransmit))
				}
			}
			return
		}
		l.enqueue(e.Key)
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

// enqueue has an LSA go out with the next Tick.
func (l *link) enqueue(k packet.Key) {
	if _, yes := l.queued[k]; !yes {
		l.queued[k] = struct{}{}
		l.queue = append(l.queue, k)
	}
}

// sendQueue sends what is to be flooded on a link, in as few updates as its MTU allows. Neither the link nor the
// neighbours' buffers should have to take more than a burst at once.
func (m *Machine) sendQueue(now time.Time, l *link) {
	if len(l.queue) == 0 || now.Before(l.next) {
		return
	}
	n := min(len(l.queue), m.cfg.Burst)
	var list []*lsdb.Entry
	for _, k := range l.queue[:n] {
		delete(l.queued, k)
		e := m.entry(l, k)
		if e != nil {
			list = append(list, e)
		}
		for _, p := range l.peers {
			switch _, yes := p.waits[k]; {
			case !yes:
			case e == nil:
				p.drop(k)
			default:
				p.again.Set(k, now.Add(l.retransmit))
			}
		}
	}
	if l.queue = l.queue[n:]; len(l.queue) > 0 {
		l.next = now.Add(m.cfg.BurstInterval)
	} else {
		l.queue = nil
	}
	m.sendLSAs(now, l, 0, list)
}

// sendLSAs sends LSAs in as few updates as the interface's MTU allows.
func (m *Machine) sendLSAs(now time.Time, l *link, to packet.ID, list []*lsdb.Entry) {
	lsas := make([]packet.LSA, 0, len(list))
	for _, e := range list {
		if e.ASExtendedPrefix(m.cfg.Version) {
			continue
		}
		e.Sent = now
		raw := e.AppendTo(nil, now, l.delay)
		if w, ok := m.where(l, e.Type); ok {
			m.Told(now, w, e.Key)
		}
		lsa := packet.LSA{Raw: raw}
		lsa.Header, _ = packet.ParseHeader(m.cfg.Version, raw)
		lsas = append(lsas, lsa)
	}
	for _, u := range packet.Updates(lsas, l.size) {
		m.send(l.id, to, u)
	}
}
