package flooding

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"pncd/igp/backoff"
	"pncd/igp/isis/lsdb"
	"pncd/igp/isis/packet"
)

// Defaults of ISO 10589 (clause 7.3.21 and table 2).
const (
	DefaultLSPLifetime = lsdb.DefaultMaxAge
	DefaultRefresh     = 900 * time.Second
	DefaultRetransmit  = 5 * time.Second
	DefaultPSNP        = 2 * time.Second
	DefaultCSNP        = 10 * time.Second
)

// Config says how the machine behaves. Zero durations are the defaults.
type Config struct {
	System packet.SystemID
	Level  int // packet.Level1 or packet.Level2

	LSPLifetime   time.Duration  // of own LSPs
	Refresh       time.Duration  // own LSPs are made again within this, less up to a quarter
	ZeroAge       time.Duration  // how long a purge is remembered
	Generation    backoff.Config // of the versions of each own LSP
	Retransmit    time.Duration  // point-to-point
	PSNPInterval  time.Duration
	CSNPInterval  time.Duration
	Burst         int           // LSPs sent on a circuit at once, and then none for BurstInterval: 100
	BurstInterval time.Duration // 100 ms
	MaxLSPs       int           // of the database
	MaxSSN        int           // LSPs that a circuit's next PSNPs name: 4,096

	// Sign adds authentication to a PDU without its checksum; nil: none.
	Sign func(pdu []byte) ([]byte, error)
	// Jitter gives numbers in [0, 1); nil: random ones.
	Jitter func() float64
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.LSPLifetime, DefaultLSPLifetime)
	def(&c.Refresh, DefaultRefresh)
	def(&c.ZeroAge, lsdb.DefaultZeroAge)
	def(&c.Retransmit, DefaultRetransmit)
	def(&c.PSNPInterval, DefaultPSNP)
	def(&c.CSNPInterval, DefaultCSNP)
	c.Generation = c.Generation.OrDefault()
	def(&c.BurstInterval, 100*time.Millisecond)
	if c.Burst == 0 {
		c.Burst = 100
	}
	if c.MaxSSN == 0 {
		c.MaxSSN = 4096
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	return c
}

// CircuitID names a circuit.
type CircuitID int

// Send is a PDU to send.
type Send struct {
	Circuit CircuitID
	PDU     []byte
}

// Counters count what the machine did.
type Counters struct {
	Stored, Duplicate, Outdated uint64 // LSPs received
	BadChecksum, ZeroSequence   uint64 // LSPs dropped
	UnknownPurges               uint64 // acknowledged, not stored
	Full                        uint64 // LSPs dropped because the database is full
	TooLong                     uint64 // LSPs not sent on a circuit whose PDUs are shorter
	Confused                    uint64 // LSPs that were the same instance with other contents
	OwnNewer                    uint64 // own LSPs seen with a sequence number of another life
	OwnPurged                   uint64 // own LSPs seen that aren't wanted
	NotMade                     uint64 // own LSPs that couldn't be made or stored
	SignFailed                  uint64
	Unnamed                     uint64 // LSPs that a PSNP had no room for
}

// Machine is the update process. It is not safe for concurrent use.
type Machine struct {
	cfg      Config
	db       *lsdb.DB
	circuits map[CircuitID]*circuit
	own      map[packet.LSPID]*own
	changed  []packet.LSPID
	counters Counters
}

// New makes a machine with an empty database.
func New(c Config) *Machine {
	c = c.withDefaults()
	return &Machine{
		cfg:      c,
		db:       lsdb.New(lsdb.Config{MaxAge: c.LSPLifetime, ZeroAge: c.ZeroAge, MaxLSPs: c.MaxLSPs}),
		circuits: map[CircuitID]*circuit{},
		own:      map[packet.LSPID]*own{},
	}
}

// DB gives the database, to read.
func (m *Machine) DB() *lsdb.DB { return m.db }

// Counters gives the counters.
func (m *Machine) Counters() Counters { return m.counters }

// Changed gives the LSPs that were stored, purged or forgotten since the last call.
func (m *Machine) Changed() []packet.LSPID {
	out := m.changed
	m.changed = nil
	slices.SortFunc(out, packet.LSPID.Compare)
	return slices.Compact(out)
}

func (m *Machine) lspType() packet.PDUType {
	if m.cfg.Level == packet.Level1 {
		return packet.L1LSP
	}
	return packet.L2LSP
}

// ReceiveLSP takes an LSP that arrived (ISO 10589 clause 7.3.15.1). What follows it in b is ignored; the
// machine keeps no part of b. An error says why it was dropped.
func (m *Machine) ReceiveLSP(now time.Time, from CircuitID, b []byte) error {
	c := m.circuits[from]
	if c == nil {
		return errors.New("isis: LSP from a circuit that is not up")
	}
	p, err := packet.ParseLSP(b)
	if err != nil {
		return err
	}
	if p.Type != m.lspType() {
		return errors.New("isis: LSP of another level")
	}
	raw, _ := packet.Trim(b)
	// The checksum of a purge is not looked at: old systems send it as zero (ISO 10589 clause 7.3.16.4).
	if p.Lifetime != 0 && !packet.ChecksumOK(raw) {
		m.counters.BadChecksum++
		return errors.New("isis: LSP " + p.ID.String() + ": the checksum is wrong (ISO 10589 clause 7.3.15.1)")
	}
	if p.Sequence == 0 {
		m.counters.ZeroSequence++
		return lsdb.ErrZeroSequence
	}
	received := lsdb.Version{Sequence: p.Sequence, Checksum: p.Checksum, Purged: p.Lifetime == 0}
	if p.ID.Node().System() == m.cfg.System {
		return m.receiveOwn(now, c, p, raw, received)
	}
	return m.receiveOther(now, c, p, raw, received)
}

func (m *Machine) receiveOther(now time.Time, c *circuit, p packet.LSP, raw []byte, received lsdb.Version) error {
	have := m.db.Get(p.ID)
	if have == nil && received.Purged {
		// Nothing to purge: acknowledge, so that the sender stops, and forget.
		m.counters.UnknownPurges++
		c.acknowledge(now, m.cfg, packet.Entry{ID: p.ID, Sequence: p.Sequence, Checksum: p.Checksum})
		return nil
	}
	order := lsdb.Newer
	if have != nil {
		order = received.Compare(have.Version)
	}
	switch order {
	case lsdb.Confused:
		// The instance here is taken for expired, so that its originator makes a new one (clause 7.3.16.2).
		m.counters.Confused++
		return m.purge(now, p.ID, p.Sequence, p.Flags)
	case lsdb.Newer:
		return m.store(now, c, p, slices.Clone(raw))
	case lsdb.Same:
		m.counters.Duplicate++
		c.received(now, m.cfg, have.Summary(now))
	case lsdb.Older:
		m.counters.Outdated++
		c.flood(now, p.ID)
	}
	return nil
}

// store puts a newer instance in the database and floods it everywhere but where it came from.
func (m *Machine) store(now time.Time, from *circuit, p packet.LSP, raw []byte) error {
	e, err := m.db.Put(now, p, raw, false)
	if err != nil {
		if errors.Is(err, lsdb.ErrFull) {
			m.counters.Full++
		}
		return err
	}
	m.counters.Stored++
	m.changed = append(m.changed, p.ID)
	for _, c := range m.circuits {
		if c == from {
			c.received(now, m.cfg, e.Summary(now))
		} else {
			c.flood(now, p.ID)
		}
	}
	return nil
}

// purge makes and floods a purge of one instance of an LSP: its header, with a checksum of zero, and who
// made the purge (ISO 10589 clause 7.3.16.4, RFC 6232).
func (m *Machine) purge(now time.Time, id packet.LSPID, sequence uint32, flags uint8) error {
	p := packet.LSP{
		Header: packet.Header{Type: m.lspType()}, ID: id, Sequence: sequence, Flags: flags,
		TLVs: packet.TLVs{packet.PurgeOriginator{Originator: m.cfg.System}.TLV()},
	}
	raw, err := p.Append(nil)
	if err == nil {
		raw, err = m.sign(raw)
	}
	if err != nil {
		return err
	}
	if _, err = m.db.Put(now, p, raw, true); err != nil {
		return err
	}
	m.changed = append(m.changed, id)
	m.floodAll(now, id)
	return nil
}

func (m *Machine) floodAll(now time.Time, id packet.LSPID) {
	for _, c := range m.circuits {
		c.flood(now, id)
	}
}

// signPurge authenticates what an LSP whose lifetime has ended is flooded as.
func (m *Machine) signPurge(now time.Time, e *lsdb.Entry) bool {
	p := e.LSP()
	raw, err := m.sign(e.AppendTo(nil, now))
	if err == nil {
		p.Lifetime = 0
		_, err = m.db.Put(now, p, raw, true)
	}
	return err == nil
}

func (m *Machine) sign(pdu []byte) ([]byte, error) {
	if m.cfg.Sign == nil {
		return pdu, nil
	}
	out, err := m.cfg.Sign(pdu)
	if err != nil {
		m.counters.SignFailed++
	}
	return out, err
}

// ReceiveSNP takes a CSNP or PSNP that arrived (ISO 10589 clause 7.3.15.2).
func (m *Machine) ReceiveSNP(now time.Time, from CircuitID, b []byte) error {
	c := m.circuits[from]
	if c == nil {
		return errors.New("isis: SNP from a circuit that is not up")
	}
	p, err := packet.ParseSNP(b)
	if err != nil {
		return err
	}
	if level1 := p.Type == packet.L1CSNP || p.Type == packet.L1PSNP; level1 != (m.cfg.Level == packet.Level1) {
		return errors.New("isis: SNP of another level")
	}
	entries, err := p.TLVs.Entries()
	if err != nil {
		return err
	}
	if !p.Complete() && c.LAN && !c.Designated {
		return nil // it is for the designated system, which answers (clause 7.3.15.2 a)
	}
	named := make(map[packet.LSPID]bool, len(entries))
	for _, e := range entries {
		named[e.ID] = true
		m.receiveEntry(now, c, e)
	}
	if !p.Complete() {
		return nil
	}
	for e := range m.db.Range(p.Start, p.End) {
		// What the sender doesn't have; a purge that it doesn't know needs not be told.
		if !named[e.ID] && !e.Purged {
			c.flood(now, e.ID)
		}
	}
	return nil
}

func (m *Machine) receiveEntry(now time.Time, c *circuit, e packet.Entry) {
	have := m.db.Get(e.ID)
	if have == nil {
		// Ask for what lives, and never make an LSP of an entry (FRR #8755: LSPs with sequence 0 after a CSNP).
		if e.Sequence != 0 && e.Lifetime != 0 && e.Checksum != 0 {
			c.ask(now, m.cfg, e.ID)
		}
		return
	}
	told := lsdb.Version{Sequence: e.Sequence, Checksum: e.Checksum, Purged: e.Lifetime == 0}
	switch told.Compare(have.Version) {
	case lsdb.Same:
		c.acknowledged(e.ID)
	case lsdb.Older:
		c.flood(now, e.ID)
	case lsdb.Newer:
		// One that isn't wanted, or not yet, is asked for, so that what is out there is purged.
		if o := m.own[e.ID]; o != nil && o.wanted && !o.waiting {
			m.outdo(now, o, e.Sequence)
			return
		}
		c.acknowledged(e.ID)
		c.ask(now, m.cfg, e.ID)
	case lsdb.Confused:
		// The two have to be seen side by side: ask for theirs, and send ours.
		c.flood(now, e.ID)
		c.ask(now, m.cfg, e.ID)
	}
}

// Tick does what is due and gives what is to be sent now.
func (m *Machine) Tick(now time.Time) (out []Send) {
	expired, forgotten := m.db.Expire(now)
	for _, e := range expired {
		m.changed = append(m.changed, e.ID)
		// Neighbours with keys refuse a purge that isn't authenticated (RFC 5304 section 2).
		if m.cfg.Sign != nil && !m.signPurge(now, e) {
			continue // they take it for expired by themselves
		}
		m.floodAll(now, e.ID)
	}
	for _, id := range forgotten {
		m.changed = append(m.changed, id)
		for _, c := range m.circuits {
			c.forget(id)
		}
	}
	m.generate(now)
	for _, id := range m.sortedCircuits() {
		out = m.circuits[id].send(m, now, out)
	}
	return out
}

// Wake is when Tick has something to do; zero: when a PDU comes.
func (m *Machine) Wake() time.Time {
	at := m.db.Wake()
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, o := range m.own {
		earlier(o.due)
	}
	for _, c := range m.circuits {
		earlier(c.wake())
	}
	return at
}
