package flooding

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"pncd/igp/due"
	"pncd/igp/isis/packet"
)

// CircuitConfig is a circuit on which an adjacency of the level is up.
type CircuitConfig struct {
	LAN bool
	// Designated says that this system is the LAN's designated one, and sends its CSNPs.
	Designated bool
	// MTU is the longest PDU that the circuit takes, octets.
	MTU int
}

// circuit has the flags of its LSPs (ISO 10589 clause 7.3.4): SRM, the LSP is to be sent; SSN, it is to be
// named in a PSNP.
type circuit struct {
	CircuitConfig
	id   CircuitID
	srm  *due.Queue[packet.LSPID]      // when it is to be sent (again)
	ssn  map[packet.LSPID]packet.Entry // what the PSNP says; sequence 0 asks
	psnp time.Time                     // when the PSNP is due; zero: nothing to say
	csnp time.Time                     // when the next CSNP is due; zero: none is sent
	next time.Time                     // no LSP is sent before

	unnamed *uint64 // counts what SSN had no room for
}

// CircuitUp begins to flood on a circuit whose first adjacency has come up, or changes what is known of it.
func (m *Machine) CircuitUp(now time.Time, id CircuitID, c CircuitConfig) {
	if old := m.circuits[id]; old != nil {
		if c.Designated && !old.Designated {
			old.csnp = now
		}
		old.CircuitConfig = c
		return
	}
	n := &circuit{CircuitConfig: c, id: id, srm: due.New(packet.LSPID.Compare), ssn: map[packet.LSPID]packet.Entry{}, unnamed: &m.counters.Unnamed}
	m.circuits[id] = n
	switch {
	case !c.LAN:
		m.Resync(now, id)
	case c.Designated:
		n.csnp = now
	}
}

// Resync sends everything on a circuit, and a CSNP, which spares the neighbour what it has: a point-to-point
// circuit has come up (ISO 10589 clause 7.3.17), or a neighbour restarts (RFC 8706 section 3.2.1 c).
func (m *Machine) Resync(now time.Time, id CircuitID) {
	c := m.circuits[id]
	if c == nil {
		return
	}
	for e := range m.db.All() {
		c.srm.Set(e.ID, now)
	}
	c.csnp = now
}

// CircuitDown ends flooding on a circuit: its last adjacency is gone.
func (m *Machine) CircuitDown(id CircuitID) { delete(m.circuits, id) }

func (m *Machine) sortedCircuits() []CircuitID { return slices.Sorted(maps.Keys(m.circuits)) }

// flood sets SRM, and clears SSN.
func (c *circuit) flood(now time.Time, id packet.LSPID) {
	c.srm.Set(id, now)
	delete(c.ssn, id)
}

// acknowledged clears SRM: the neighbour has it. On a LAN one system says nothing of the others.
func (c *circuit) acknowledged(id packet.LSPID) {
	if !c.LAN {
		c.srm.Drop(id)
	}
}

// received is for an LSP that came on the circuit and is in the database: all there have it now, and on a
// point-to-point circuit it is acknowledged.
func (c *circuit) received(now time.Time, cfg Config, e packet.Entry) {
	c.srm.Drop(e.ID)
	delete(c.ssn, e.ID)
	if !c.LAN {
		c.acknowledge(now, cfg, e)
	}
}

// acknowledge sets SSN for what came.
func (c *circuit) acknowledge(now time.Time, cfg Config, e packet.Entry) {
	if c.LAN {
		return // the designated system's CSNP acknowledges
	}
	c.setSSN(now, cfg, e)
}

// ask sets SSN for what the neighbour has in a newer version.
func (c *circuit) ask(now time.Time, cfg Config, id packet.LSPID) {
	c.setSSN(now, cfg, packet.Entry{ID: id})
}

// setSSN names an LSP in the next PSNP. SNPs that name ever more LSPs must not fill the memory: half of what
// fits is sent without a wait, and what doesn't fit is left out. It is sent, or named by a CSNP, again.
func (c *circuit) setSSN(now time.Time, cfg Config, e packet.Entry) {
	if _, there := c.ssn[e.ID]; !there && len(c.ssn) >= cfg.MaxSSN {
		*c.unnamed++
		return
	}
	c.ssn[e.ID] = e
	if len(c.ssn) >= cfg.MaxSSN/2 {
		c.psnp = now
	}
	if c.psnp.IsZero() {
		c.psnp = now.Add(cfg.PSNPInterval)
	}
}

func (c *circuit) forget(id packet.LSPID) {
	c.srm.Drop(id)
	delete(c.ssn, id)
}

func (c *circuit) wake() time.Time {
	at := c.srm.Next()
	if at.Before(c.next) && !at.IsZero() {
		at = c.next
	}
	for _, t := range [...]time.Time{c.csnp, c.psnp} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// send appends what is due: the CSNP first, so that the neighbour answers with what it lacks.
func (c *circuit) send(m *Machine, now time.Time, out []Send) []Send {
	if !c.csnp.IsZero() && !c.csnp.After(now) {
		out = c.sendCSNP(m, now, out)
		c.csnp = time.Time{}
		if !c.LAN || c.Designated {
			c.csnp = now.Add(m.cfg.CSNPInterval)
		}
	}
	if !c.psnp.IsZero() && !c.psnp.After(now) {
		out = c.sendPSNP(m, now, out)
		c.psnp = time.Time{}
	}
	return c.sendLSPs(m, now, out)
}

// sendLSPs appends the LSPs that are due, at most a burst of them.
func (c *circuit) sendLSPs(m *Machine, now time.Time, out []Send) []Send {
	if now.Before(c.next) {
		return out
	}
	ready := c.srm.Take(now, m.cfg.Burst)
	if next := c.srm.Next(); !next.IsZero() && !next.After(now) {
		c.next = now.Add(m.cfg.BurstInterval)
	}
	for _, lsp := range ready {
		e := m.db.Get(lsp)
		switch {
		case e == nil:
			continue
		case e.Size() > c.MTU:
			m.counters.TooLong++
			continue
		case !c.LAN: // until it is acknowledged; on a LAN nobody does
			c.srm.Set(lsp, now.Add(m.cfg.Retransmit))
		}
		out = append(out, Send{c.id, e.AppendTo(nil, now)})
	}
	return out
}

// snp makes the PDU without entries.
func (m *Machine) snp(complete bool) packet.SNP {
	types := map[bool][2]packet.PDUType{
		true:  {packet.L1CSNP, packet.L2CSNP},
		false: {packet.L1PSNP, packet.L2PSNP},
	}[complete]
	typ := types[0]
	if m.cfg.Level == packet.Level2 {
		typ = types[1]
	}
	return packet.SNP{Header: packet.Header{Type: typ}, Source: m.cfg.System.Node(0)}
}

// reserve is what authentication may add to an SNP, octets: the TLV with a key ID and SHA-512.
const reserve = 2 + 3 + 64

// entriesPerSNP is how many entries a PDU of the circuit holds.
func (c *circuit) entriesPerSNP(complete bool) int {
	room := c.MTU - reserve - 17
	if complete {
		room -= 16
	}
	const full = 2 + 15*16 // a TLV with 15 entries
	n := room / full * 15
	return max(1, n+max(0, room%full-2)/16)
}

func (c *circuit) sendCSNP(m *Machine, now time.Time, out []Send) []Send {
	var all []packet.Entry
	for e := range m.db.All() {
		all = append(all, e.Summary(now))
	}
	most := c.entriesPerSNP(true)
	for start, last := (packet.LSPID{}), false; !last; {
		n := min(most, len(all))
		last = n == len(all)
		p := m.snp(true)
		p.Start, p.End = start, packet.MaxLSPID
		if !last {
			p.End = all[n-1].ID
			start = successor(p.End)
		}
		p.TLVs = packet.EntryTLVs(all[:n])
		all = all[n:]
		out = m.appendSNP(c.id, p, out)
	}
	return out
}

// successor is the next LSP ID.
func successor(id packet.LSPID) packet.LSPID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

func (c *circuit) sendPSNP(m *Machine, now time.Time, out []Send) []Send {
	var entries []packet.Entry
	for _, e := range c.ssn {
		if have := m.db.Get(e.ID); have != nil {
			// Both to acknowledge and to ask, say what is here (clause 7.3.15.4).
			e = have.Summary(now)
		}
		entries = append(entries, e)
	}
	clear(c.ssn)
	slices.SortFunc(entries, func(a, b packet.Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for some := range slices.Chunk(entries, c.entriesPerSNP(false)) {
		p := m.snp(false)
		p.TLVs = packet.EntryTLVs(some)
		out = m.appendSNP(c.id, p, out)
	}
	return out
}

func (m *Machine) appendSNP(id CircuitID, p packet.SNP, out []Send) []Send {
	raw, err := p.Append(nil)
	if err == nil {
		raw, err = m.sign(raw)
	}
	if err != nil {
		return out // counted; a PDU that neighbours refuse needs not be sent
	}
	return append(out, Send{id, raw})
}

// Pending reports whether an LSP waits to be sent, or to be acknowledged.
func (m *Machine) Pending() bool {
	for _, c := range m.circuits {
		if c.srm.Len() > 0 {
			return true
		}
	}
	return false
}
