package neighbor

import (
	"time"

	"pncd/igp/ospf/packet"
)

// requests is the link state request list (RFC 2328 section 10.9): what is asked for, in the order in which it
// was described.
type requests struct {
	list  map[packet.Key]packet.Header
	order []packet.Key            // not asked for yet; may name what was satisfied meanwhile
	asked map[packet.Key]struct{} // in the request that is out
	last  []packet.Key            // the same in order
	askAt time.Time               // when to ask, first or again
}

func (r *requests) clear() { *r = requests{} }

// request puts an LSA on the list. It reports whether there was room.
func (r *requests) request(h packet.Header, now time.Time) bool {
	if old, ok := r.list[h.Key]; ok {
		if h.Newer(old) > 0 {
			r.list[h.Key] = h
		}
		return true
	}
	if len(r.order) >= MaxRequests {
		return false
	}
	if r.list == nil {
		r.list = map[packet.Key]packet.Header{}
	}
	r.list[h.Key] = h
	r.order = append(r.order, h.Key)
	if r.askAt.IsZero() {
		r.askAt = now
	}
	return true
}

// Requested gives the instance of an LSA that the neighbour described and that is asked for.
func (m *Machine) Requested(k packet.Key) (packet.Header, bool) {
	h, ok := m.list[k]
	return h, ok
}

// Requests is the length of the link state request list.
func (m *Machine) Requests() int { return len(m.list) }

// Satisfy takes an LSA off the link state request list: it arrived, as new as it was described or newer.
// With the last one the adjacency is full.
func (m *Machine) Satisfy(k packet.Key) {
	if _, ok := m.list[k]; !ok {
		return
	}
	delete(m.list, k)
	delete(m.asked, k)
	if len(m.asked) == 0 {
		m.askAt = m.now // ask for the next ones at once
	}
	if len(m.list) == 0 {
		m.requests.clear()
	}
	m.loaded()
}

// loaded is Loading Done.
func (m *Machine) loaded() {
	if m.state == Loading && len(m.list) == 0 {
		m.become(Full, ReasonNone)
	}
}

// tickRequest asks for what is on the list, one packet at a time, again after RxmtInterval.
func (m *Machine) tickRequest() packet.Body {
	if m.state < Exchange || len(m.list) == 0 || !due(m.askAt, m.now) {
		return nil
	}
	if len(m.asked) == 0 {
		m.asked, m.last = map[packet.Key]struct{}{}, nil
		for len(m.order) > 0 && len(m.asked) < m.cfg.keysFit() {
			k := m.order[0]
			m.order = m.order[1:]
			if _, ok := m.list[k]; ok {
				m.asked[k] = struct{}{}
				m.last = append(m.last, k)
			}
		}
	}
	m.askAt = m.now.Add(m.cfg.Retransmit)
	r := &packet.Request{}
	for _, k := range m.last {
		if _, ok := m.asked[k]; ok {
			r.Keys = append(r.Keys, k)
		}
	}
	return r
}

// answers is what the neighbour asked for and has not been sent yet.
type answers struct {
	queue []packet.Key
	asks  map[packet.Key]struct{}
}

func (a *answers) clear() { *a = answers{} }

// receiveRequest takes a link state request (RFC 2328 section 10.7).
func (m *Machine) receiveRequest(r *packet.Request) Reason {
	if m.state < Exchange {
		return m.drop(ReasonState)
	}
	for _, k := range r.Keys {
		if _, ok := m.db.Lookup(m.now, k); !ok {
			return m.again(ReasonBadRequest)
		}
	}
	if m.asks == nil {
		m.asks = map[packet.Key]struct{}{}
	}
	for _, k := range r.Keys {
		if _, ok := m.asks[k]; !ok {
			m.asks[k] = struct{}{}
			m.queue = append(m.queue, k)
		}
	}
	return ReasonNone
}

// tickAnswers gives the updates with what was asked for. They are not retransmitted: the neighbour asks again.
func (m *Machine) tickAnswers() (out []packet.Body) {
	var list []packet.LSA
	for _, k := range m.queue {
		raw, ok := m.db.Append(nil, m.now, k)
		if !ok {
			continue
		}
		if l, err := packet.ParseLSA(m.cfg.Version, raw); err == nil {
			list = append(list, l)
		}
	}
	for _, u := range packet.Updates(list, m.cfg.Room()) {
		out = append(out, u)
	}
	m.answers.clear()
	return out
}
