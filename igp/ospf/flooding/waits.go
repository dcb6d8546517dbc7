package flooding

import (
	"maps"
	"slices"
	"time"

	"pncd/igp/due"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// peer is a neighbour with its link state retransmission list (RFC 2328 section 10).
type peer struct {
	Peer
	waits map[packet.Key]waiting
	again *due.Queue[packet.Key] // when what was sent goes out again
	// A burst that is not acknowledged ends at hold: more goes out then, or when half of it is acknowledged.
	burst map[packet.Key]struct{}
	hold  time.Time
}

// waiting is an instance that the neighbour has yet to acknowledge.
type waiting struct {
	packet.Header
	changed bool // it is no periodic refresh of what the neighbour has
}

func newPeer(p Peer) *peer {
	return &peer{Peer: p, waits: map[packet.Key]waiting{}, again: due.New(packet.Key.Compare), burst: map[packet.Key]struct{}{}}
}

// drop takes an LSA off the list.
func (p *peer) drop(k packet.Key) {
	delete(p.waits, k)
	delete(p.burst, k)
	p.again.Drop(k)
}

// held reports whether the neighbour has so much of a burst to acknowledge that it gets no more before p.hold.
func (p *peer) held(burst int) bool { return len(p.burst) > burst/2 }

// next is when something goes out again; zero: never.
func (p *peer) next(burst int) time.Time {
	at := p.again.Next()
	if !at.IsZero() && at.Before(p.hold) && p.held(burst) {
		return p.hold
	}
	return at
}

// acknowledged takes an LSA off a neighbour's list, which may be what the LSA's end waits for.
func (m *Machine) acknowledged(l *link, p *peer, k packet.Key) {
	p.drop(k)
	if w, ok := m.where(l, k.Type); ok {
		m.check(w, k)
	}
}

// Retransmit puts LSAs on a neighbour's retransmission list that it was not told of: those at MaxAge, which
// descriptions leave out (RFC 2328 section 10.3, NegotiationDone). They go out after RxmtInterval, by when the
// neighbour takes updates, too. Those that are not there are passed over.
func (m *Machine) Retransmit(now time.Time, id InterfaceID, router packet.ID, keys []packet.Key) error {
	m.now = now
	l, p, err := m.peerOf(id, router)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if e := m.entry(l, k); e != nil && !k.ASExtendedPrefix(m.cfg.Version) {
			p.waits[k] = waiting{e.Header, true}
			p.again.Set(k, now.Add(l.retransmit))
		}
	}
	return nil
}

// Waiting is the length of a neighbour's retransmission list.
func (m *Machine) Waiting(id InterfaceID, router packet.ID) int {
	if l := m.links[id]; l != nil && l.peers[router] != nil {
		return len(l.peers[router].waits)
	}
	return 0
}

// Changed reports whether a neighbour has yet to acknowledge an LSA that says how the network is made, and is no
// periodic refresh: one that asks to be helped through a restart must be refused then (RFC 3623 section 3.1 (2),
// RFC 5187 section 3.1).
func (m *Machine) Changed(id InterfaceID, router packet.ID) bool {
	l := m.links[id]
	if l == nil || l.peers[router] == nil {
		return false
	}
	for k, w := range l.peers[router].waits {
		if w.changed && k.Type.Topology(m.cfg.Version) {
			return true
		}
	}
	return false
}

// Pending reports whether an LSA waits to be flushed or sent, or a neighbour has one yet to acknowledge.
func (m *Machine) Pending() bool {
	for _, o := range m.own {
		if o.leaving {
			return true
		}
	}
	for _, l := range m.links {
		if len(l.queue) > 0 {
			return true
		}
		for _, p := range l.peers {
			if len(p.waits) > 0 {
				return true
			}
		}
	}
	return false
}

func (m *Machine) waits(w Where, k packet.Key) (yes bool) {
	m.eachLink(w, func(l *link) {
		for _, p := range l.peers {
			_, waits := p.waits[k]
			yes = yes || waits
		}
	})
	return yes
}

// retransmit sends again what a neighbour has not acknowledged, a burst of it at most (RFC 2328 section 13.6: more
// goes out when something is acknowledged, or at the next interval).
func (m *Machine) retransmit(now time.Time, l *link) {
	for _, router := range slices.Sorted(maps.Keys(l.peers)) {
		p := l.peers[router]
		if at := p.next(m.cfg.Burst); at.IsZero() || at.After(now) {
			continue
		}
		var list []*lsdb.Entry
		clear(p.burst)
		for _, k := range p.again.Take(now, m.cfg.Burst) {
			e := m.entry(l, k)
			if e == nil {
				p.drop(k)
				continue
			}
			list = append(list, e)
			p.burst[k] = struct{}{}
			p.again.Set(k, now.Add(l.retransmit))
		}
		p.hold = now.Add(l.retransmit)
		m.count.Retransmitted += uint64(len(list))
		m.sendLSAs(now, l, router, list)
	}
}
