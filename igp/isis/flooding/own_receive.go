package flooding

import (
	"slices"
	"time"

	"pncd/igp/isis/lsdb"
	"pncd/igp/isis/packet"
)

// receiveOwn is for an LSP that names this system as its originator (ISO 10589 clause 7.3.16.1): of a life
// before, of a system with the same system ID, or one that comes back.
func (m *Machine) receiveOwn(now time.Time, c *circuit, p packet.LSP, raw []byte, received lsdb.Version) error {
	o := m.own[p.ID]
	if o == nil || !o.wanted || o.waiting {
		return m.receiveUnwanted(now, c, p, raw, received)
	}
	have := m.db.Get(p.ID)
	if have == nil {
		if !received.Purged {
			m.outdo(now, o, p.Sequence)
		}
		c.acknowledge(now, m.cfg, packet.Entry{ID: p.ID, Sequence: p.Sequence, Checksum: p.Checksum, Lifetime: p.Lifetime})
		return nil
	}
	switch received.Compare(have.Version) {
	case lsdb.Newer, lsdb.Confused:
		m.outdo(now, o, p.Sequence)
	case lsdb.Same:
		m.counters.Duplicate++
		c.received(now, m.cfg, have.Summary(now))
	case lsdb.Older:
		m.counters.Outdated++
		c.flood(now, p.ID)
	}
	return nil
}

// outdo makes a version that is newer than one that was seen. It doesn't wait for the generation interval:
// until it is out, the network believes what this system doesn't say. Only when it comes again and again, as
// from another system with the same system ID, are the answers backed off, or they would flood the domain.
func (m *Machine) outdo(now time.Time, o *own, seen uint32) {
	m.counters.OwnNewer++
	o.sequence = max(o.sequence, seen)
	pace := m.cfg.Generation
	pace.Initial = 0
	o.outdoing = true
	if at := o.outdone.Next(now, pace); o.due.IsZero() || at.Before(o.due) {
		o.due = at
	}
}

// receiveUnwanted purges an own LSP that this system doesn't want (clause 7.3.16.4), in the version that was
// received: that is the one that the network has.
func (m *Machine) receiveUnwanted(now time.Time, c *circuit, p packet.LSP, raw []byte, received lsdb.Version) error {
	have := m.db.Get(p.ID)
	if have == nil && received.Purged {
		m.counters.UnknownPurges++
		c.acknowledge(now, m.cfg, packet.Entry{ID: p.ID, Sequence: p.Sequence, Checksum: p.Checksum})
		return nil
	}
	order := lsdb.Newer
	if have != nil {
		order = received.Compare(have.Version)
	}
	switch {
	case order == lsdb.Same:
		m.counters.Duplicate++
		c.received(now, m.cfg, have.Summary(now))
	case order == lsdb.Older:
		m.counters.Outdated++
		c.flood(now, p.ID)
	case received.Purged:
		return m.store(now, c, p, slices.Clone(raw))
	default:
		m.counters.OwnPurged++
		switch o := m.own[p.ID]; {
		case o == nil:
		case o.waiting:
			m.await(now, o) // somebody still had it
		default:
			o.sequence = max(o.sequence, p.Sequence)
		}
		return m.purge(now, p.ID, p.Sequence, p.Flags)
	}
	return nil
}
