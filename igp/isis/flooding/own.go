package flooding

import (
	"math"
	"time"

	"pncd/igp/backoff"
	"pncd/igp/isis/packet"
)

// own is an LSP that this system says of itself.
type own struct {
	id       packet.LSPID
	flags    uint8
	tlvs     packet.TLVs
	wanted   bool // false: it is purged, and its sequence number remembered
	sequence uint32
	made     time.Time // when the last version was made
	pace     backoff.State
	outdoing bool          // the next version outdoes one that was seen
	outdone  backoff.State // of such versions
	due      time.Time     // when the next one is made; zero: never
	waiting  bool          // until due, for the end of the sequence space to be forgotten
}

// Originate says what one of this system's LSPs holds from now on. Its next version is made in a Tick, as
// soon as the generation's back-off lets it. The TLVs must not be changed afterwards.
func (m *Machine) Originate(now time.Time, id packet.LSPID, flags uint8, tlvs packet.TLVs) {
	o := m.own[id]
	if o == nil {
		o = &own{id: id}
		m.own[id] = o
	}
	o.flags, o.tlvs, o.wanted = flags, tlvs, true
	m.schedule(now, o)
}

// SetSign changes how PDUs are authenticated; the own LSPs are made again, as soon as the generation's back-off
// lets them.
func (m *Machine) SetSign(now time.Time, sign func([]byte) ([]byte, error)) {
	m.cfg.Sign = sign
	for _, o := range m.own {
		if o.wanted {
			m.schedule(now, o)
		}
	}
}

// Retime changes lifetimes and intervals; the system, its level, its authentication and the database's bound
// stay. A refresh that is due sooner now is made sooner.
func (m *Machine) Retime(now time.Time, c Config) {
	old := m.cfg
	c.System, c.Level, c.MaxLSPs, c.Sign, c.Jitter = old.System, old.Level, old.MaxLSPs, old.Sign, old.Jitter
	m.cfg = c.withDefaults()
	m.db.SetMaxAge(m.cfg.LSPLifetime)
	for _, o := range m.own {
		if o.waiting || !o.wanted || o.made.IsZero() {
			continue
		}
		if latest := o.made.Add(m.refreshAfter()); latest.Before(o.due) {
			o.due = latest
			if o.due.Before(now) {
				o.due = now
			}
		}
	}
}

// refreshAfter is how long after a version the next one is made without a change.
func (m *Machine) refreshAfter() time.Duration {
	return m.cfg.Refresh - time.Duration(float64(m.cfg.Refresh)/4*m.cfg.Jitter())
}

// Withdraw purges one of this system's LSPs; one that doesn't exist is left alone.
func (m *Machine) Withdraw(now time.Time, id packet.LSPID) error {
	o := m.own[id]
	if o == nil || !o.wanted {
		return nil
	}
	o.wanted, o.tlvs = false, nil
	if !o.waiting {
		o.due = time.Time{}
	}
	return m.purgeOwn(now, id)
}

// WithdrawAll purges all of this system's LSPs: the end of a clean stop.
func (m *Machine) WithdrawAll(now time.Time) (err error) {
	for id := range m.own {
		if e := m.Withdraw(now, id); e != nil {
			err = e
		}
	}
	return err
}

// schedule plans the next version, the later the more there were of late.
func (m *Machine) schedule(now time.Time, o *own) {
	if o.waiting {
		return
	}
	at := o.pace.Next(now, m.cfg.Generation)
	if o.due.IsZero() || at.Before(o.due) {
		o.due = at
	}
}

// generate makes the versions that are due.
func (m *Machine) generate(now time.Time) {
	for _, o := range m.own {
		if o.due.IsZero() || o.due.After(now) {
			continue
		}
		o.waiting = false
		if !o.wanted {
			o.due = time.Time{}
			continue
		}
		m.makeVersion(now, o)
	}
}

// makeVersion makes and floods the next version of an own LSP.
func (m *Machine) makeVersion(now time.Time, o *own) {
	if have := m.db.Get(o.id); have != nil {
		o.sequence = max(o.sequence, have.Sequence) // of this system's life before
	}
	o.made = now
	if o.outdoing {
		o.outdoing = false
		o.outdone.Ran(now, m.cfg.Generation)
	}
	o.pace.Ran(now, m.cfg.Generation)
	if o.sequence == math.MaxUint32 {
		m.wrap(now, o)
		return
	}
	o.sequence++
	p := packet.LSP{
		Header: packet.Header{Type: m.lspType()}, ID: o.id, Sequence: o.sequence, Flags: o.flags, TLVs: o.tlvs,
		Lifetime: uint16(m.cfg.LSPLifetime / time.Second),
	}
	raw, err := p.Append(nil)
	if err == nil {
		raw, err = m.sign(raw)
	}
	if err == nil {
		p.Checksum = packet.SetChecksum(raw)
		_, err = m.db.Put(now, p, raw, true)
	}
	if err != nil {
		m.counters.NotMade++
		o.due = now.Add(m.cfg.Generation.Max)
		return
	}
	o.due = now.Add(m.refreshAfter())
	m.changed = append(m.changed, o.id)
	m.floodAll(now, o.id)
}

// wrap ends the sequence space: the last version is purged, and the next one begins at 1 when nobody has it
// any more (ISO 10589 clause 7.3.16.1).
func (m *Machine) wrap(now time.Time, o *own) {
	_ = m.purge(now, o.id, o.sequence, o.flags) // what can't be purged runs out within the wait
	o.sequence = 0
	m.await(now, o)
}

// await lets an own LSP rest until every instance of it has run out everywhere.
func (m *Machine) await(now time.Time, o *own) {
	o.waiting, o.due = true, now.Add(m.cfg.LSPLifetime+m.cfg.ZeroAge)
}

// purgeOwn floods a purge of the newest instance that is known.
func (m *Machine) purgeOwn(now time.Time, id packet.LSPID) error {
	have := m.db.Get(id)
	if have == nil || have.Purged {
		return nil
	}
	return m.purge(now, id, have.Sequence, have.Flags)
}
