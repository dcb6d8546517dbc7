package flowmap

// Counters are the map's counters since it was made, as they stood at one time.
type Counters struct {
	Packets      uint64 // packets observed
	Learned      uint64 // entries that got a Source QP
	Confirmed    uint64 // entries confirmed by RTU or by data
	Contradicted uint64 // entries whose sources disagreed, or whose QP was reused
	Withdrawn    uint64 // entries by votes that went back to undecided
	Aged         uint64 // entries without traffic for AgeAfter
	Closed       uint64 // entries closed by DREQ, DREP or REJ
	Evicted      uint64 // entries removed to keep the bound
	Refused      uint64 // claims refused because a live pair names another peer

	BadICRC      uint64 // packets with a wrong ICRC among those verified; they are used all the same
	ICRCVerified uint64 // packets whose ICRC was verified
	Malformed    uint64 // packets too short for their opcode, and CM datagrams that don't parse
	Foreign      uint64 // packets whose interface, source MAC or TTL differs from their stream's

	UnsupportedDC, UnsupportedXRC, UnsupportedRoCEv1, UnsupportedVendor uint64 // packets by transport; RD counts as DC (same opcodes)
	CNP                                                                 uint64 // CNPs seen and ignored

	CMREQ, CMMRA, CMREJ, CMREP, CMRTU, CMDREQ, CMDREP, CMSIDRREQ, CMSIDRREP, CMLAP, CMAPR, CMOther uint64 // MADs by kind
	CMMismatch                                                                                     uint64 // CM datagrams whose GIDs, QP or way here is not that of the connection
	CMEvicted                                                                                      uint64 // unfinished CM exchanges dropped to keep the bound
}

// Counters reads the counters.
func (m *Map) Counters() Counters {
	var sum Counters
	for i := range m.shards {
		sh := &m.shards[i]
		sh.mu.Lock()
		sum.add(&sh.c)
		sh.mu.Unlock()
	}
	sum.UnsupportedRoCEv1 = m.rocev1.Load()
	return sum
}

func (c *Counters) add(o *Counters) {
	c.Packets += o.Packets
	c.Learned += o.Learned
	c.Confirmed += o.Confirmed
	c.Contradicted += o.Contradicted
	c.Withdrawn += o.Withdrawn
	c.Aged += o.Aged
	c.Closed += o.Closed
	c.Evicted += o.Evicted
	c.Refused += o.Refused
	c.BadICRC += o.BadICRC
	c.ICRCVerified += o.ICRCVerified
	c.Malformed += o.Malformed
	c.Foreign += o.Foreign
	c.UnsupportedDC += o.UnsupportedDC
	c.UnsupportedXRC += o.UnsupportedXRC
	c.UnsupportedRoCEv1 += o.UnsupportedRoCEv1
	c.UnsupportedVendor += o.UnsupportedVendor
	c.CNP += o.CNP
	c.CMREQ += o.CMREQ
	c.CMMRA += o.CMMRA
	c.CMREJ += o.CMREJ
	c.CMREP += o.CMREP
	c.CMRTU += o.CMRTU
	c.CMDREQ += o.CMDREQ
	c.CMDREP += o.CMDREP
	c.CMSIDRREQ += o.CMSIDRREQ
	c.CMSIDRREP += o.CMSIDRREP
	c.CMLAP += o.CMLAP
	c.CMAPR += o.CMAPR
	c.CMOther += o.CMOther
	c.CMMismatch += o.CMMismatch
	c.CMEvicted += o.CMEvicted
}
