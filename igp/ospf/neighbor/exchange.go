package neighbor

import (
	"time"

	"pncd/igp/ospf/packet"
)

// exchange is what the exchange of descriptions keeps (RFC 2328 section 10.8).
type exchange struct {
	sequence uint32    // DD sequence number; it outlives an exchange
	failed   time.Time // when the last exchange began that followed an error; it outlives an exchange, too
	master   bool      // this system is
	options  uint32
	summary  []packet.Header     // still to be described
	sent     *packet.Description // the last one, for retransmission; nil: none, or freed
	sendAt   time.Time           // when sent goes out, first or again; zero: when the neighbour asks
	freeAt   time.Time           // slave: when sent is forgotten
	heard    seen                // the last one that was taken
	aged     []packet.Key        // MaxAge LSAs that the owner has to retransmit
}

// seen is what tells duplicates (RFC 2328 section 10.6).
type seen struct {
	flags    uint8
	options  uint32
	sequence uint32
}

func (e *exchange) clear() {
	*e = exchange{sequence: e.sequence, failed: e.failed}
}

// Opaque reports whether the neighbour takes opaque LSAs: its descriptions have the O bit (RFC 5250 section 3).
// In OSPFv3 every neighbour takes all LSAs.
func (m *Machine) Opaque() bool {
	return m.cfg.Version == packet.V3 || m.options&packet.V2OptO != 0
}

// Options are those of the neighbour's descriptions, from Exchange on.
func (m *Machine) Options() uint32 { return m.options }

// MaxAge gives the LSAs that were not described since they have reached MaxAge: the owner puts them on the
// neighbour's retransmission list (RFC 2328 section 10.3, NegotiationDone). Each is given once.
func (m *Machine) MaxAge() []packet.Key {
	out := m.aged
	m.aged = nil
	return out
}

// start begins an exchange: this system takes itself for the master, and says so until it is settled.
func (m *Machine) start(why Reason) {
	m.become(ExStart, why)
	switch {
	case m.sequence != 0:
		m.sequence++
	case m.cfg.Sequence != 0:
		m.sequence = m.cfg.Sequence
	default:
		m.sequence = uint32(m.now.Unix())
	}
	m.sent = m.describe(packet.FlagInit | packet.FlagMore | packet.FlagMaster)
	m.sendAt = m.now
	if why == ReasonNone {
		return
	}
	if gap := m.failed.Add(restartGap); !m.failed.IsZero() && gap.After(m.now) {
		m.sendAt = gap
	}
	m.failed = m.sendAt
}

func (m *Machine) describe(flags uint8) *packet.Description {
	return &packet.Description{MTU: m.cfg.mtu(), Options: m.cfg.options(), Flags: flags, Sequence: m.sequence}
}

func (m *Machine) receiveDescription(d *packet.Description) Reason {
	// A smaller MTU is the neighbour's to refuse: it may not take what this system sends.
	if int(d.MTU) > m.cfg.MTU && !m.cfg.MTUIgnore {
		return m.drop(ReasonMTU)
	}
	if m.state == Init {
		m.TwoWay(m.now) // RFC 2328 section 10.6: it could not send this otherwise
	}
	if m.state < ExStart {
		return m.drop(ReasonState)
	}
	if (d.Options^m.cfg.Options)&packet.OptionE != 0 {
		return m.drop(ReasonEBit)
	}
	this := seen{d.Flags, d.Options, d.Sequence}
	switch m.state {
	case ExStart:
		if !m.negotiate(d) {
			return m.drop(ReasonNegotiation)
		}
	case Exchange:
		if this == m.heard {
			return m.duplicate()
		}
		if why := m.follows(d); why != ReasonNone {
			return m.again(why)
		}
	default:
		if this == m.heard && (m.master || m.sent != nil) {
			return m.duplicate()
		}
		if why := m.follows(d); why != ReasonNone {
			return m.again(why)
		}
		return m.again(ReasonSequence) // after the exchange nothing can follow
	}
	m.heard = this
	why := m.compare(d.Headers)
	if m.state == Exchange {
		m.next(d)
	}
	return why
}

// negotiate settles who is master (RFC 2328 section 10.6, ExStart).
func (m *Machine) negotiate(d *packet.Description) bool {
	const all = packet.FlagInit | packet.FlagMore | packet.FlagMaster
	switch {
	case d.Flags&all == all && len(d.Headers) == 0 && m.id > m.cfg.Router:
		m.master, m.sequence = false, d.Sequence
	case d.Flags&(packet.FlagInit|packet.FlagMaster) == 0 && d.Sequence == m.sequence && m.id < m.cfg.Router:
		m.master = true
	default:
		return false
	}
	m.options = d.Options
	for h := range m.db.Summary(m.now) {
		switch {
		case h.Type.Opaque() && m.cfg.Version == packet.V2 && !m.Opaque():
		case h.AgeSeconds() == packet.MaxAge:
			m.aged = append(m.aged, h.Key)
		default:
			m.summary = append(m.summary, h)
		}
	}
	m.sent, m.sendAt = nil, time.Time{}
	m.become(Exchange, ReasonNone)
	return true
}

// follows checks that a description is the next of the exchange.
func (m *Machine) follows(d *packet.Description) Reason {
	want := m.sequence
	if !m.master {
		want++
	}
	switch {
	case d.Flags&packet.FlagInit != 0:
		return ReasonInitial
	case (d.Flags&packet.FlagMaster != 0) == m.master:
		return ReasonMaster
	case d.Options != m.options:
		return ReasonOptions
	case d.Sequence != want:
		return ReasonSequence
	}
	return ReasonNone
}

// duplicate has a slave repeat its last description: the master didn't get it.
func (m *Machine) duplicate() Reason {
	if !m.master && m.sent != nil {
		m.sendAt = m.now
	}
	return m.drop(ReasonDuplicate)
}

// compare puts what the neighbour has and this system lacks on the request list (RFC 2328 section 10.6).
func (m *Machine) compare(list []packet.Header) (why Reason) {
	for _, h := range list {
		scope := h.Type.Scope(m.cfg.Version)
		stub, nssa := m.cfg.Options&packet.OptionE == 0, m.cfg.Options&packet.OptionN != 0
		switch {
		case scope == packet.ScopeReserved && m.cfg.Version == packet.V3:
			why = m.drop(ReasonScope)
			continue
		case scope == packet.ScopeReserved, scope == packet.ScopeAS && stub, h.Type.NSSA(m.cfg.Version) && !nssa:
			// What flooding doesn't take would be asked for without end.
			return m.again(ReasonLSType)
		}
		if have, ok := m.db.Lookup(m.now, h.Key); ok && have.Newer(h) >= 0 {
			continue
		}
		if !m.request(h, m.now) {
			why = m.drop(ReasonTooMany)
		}
	}
	return why
}

// next answers a description that was taken, or ends the exchange (RFC 2328 section 10.8).
func (m *Machine) next(d *packet.Description) {
	theirs := d.Flags&packet.FlagMore != 0
	if m.master {
		if m.sent != nil && m.sent.Flags&packet.FlagMore == 0 && !theirs {
			m.done()
			return
		}
		m.sequence++
		m.page(packet.FlagMaster)
		return
	}
	m.sequence = d.Sequence
	m.page(0)
	if !theirs && m.sent.Flags&packet.FlagMore == 0 {
		m.done()
	}
}

// page makes the next description of the database.
func (m *Machine) page(flags uint8) {
	n := min(m.cfg.headersFit(), len(m.summary))
	if n < len(m.summary) {
		flags |= packet.FlagMore
	}
	m.sent = m.describe(flags)
	m.sent.Headers = m.summary[:n:n]
	m.summary = m.summary[n:]
	m.sendAt = m.now
}

// done is ExchangeDone. A slave keeps its last description for RouterDeadInterval: the master may miss it.
func (m *Machine) done() {
	if m.master {
		m.sent, m.sendAt = nil, time.Time{}
	} else {
		m.freeAt = m.now.Add(m.cfg.Dead)
	}
	if len(m.list) > 0 {
		m.become(Loading, ReasonNone)
	} else {
		m.become(Full, ReasonNone)
	}
}

// tickDescription sends the last description, first or again. Only slaves wait to be asked.
func (m *Machine) tickDescription() packet.Body {
	if due(m.freeAt, m.now) {
		m.sent, m.freeAt, m.sendAt = nil, time.Time{}, time.Time{}
	}
	if m.sent == nil || !due(m.sendAt, m.now) {
		return nil
	}
	m.sendAt = time.Time{}
	if m.state == ExStart || m.master {
		m.sendAt = m.now.Add(m.cfg.Retransmit)
	}
	d := *m.sent
	return &d
}
