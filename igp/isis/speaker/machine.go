package speaker

import (
	"errors"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/isis/packet"
)

// Machine is the whole system. It is not safe for concurrent use.
type Machine struct {
	cfg      Config
	levels   []*level // of the system, lowest first
	circuits map[string]*circuit
	order    []string // names of the circuits, sorted
	ads      []igp.Advertisement
	stopped  bool
	received map[packet.PDUType]uint64 // 0: unreadable
	used     uint64
	drops    map[Drop]uint64
	learned  []igp.Learned
}

// Drop says why a PDU was not used.
type Drop uint8

// The reasons.
const (
	DropMalformed      Drop = iota + 1 // can't be read
	DropAuthentication                 // missing or wrong
	DropLevel                          // not a level of the circuit
	DropNoAdjacency                    // LSP or SNP from a system without an adjacency that is up
	DropRefused                        // the update process refused it: checksum, sequence number, database full
	DropCircuit                        // the circuit is not configured or down
	DropHello                          // an adjacency refused the hello; why is counted there
	dropCount
)

var dropNames = [dropCount]string{"", "malformed", "authentication", "level", "no-adjacency", "refused", "circuit", "hello"}

// String gives the name that counters use.
func (d Drop) String() string { return dropNames[d] }

// New makes a system whose links are all down. The configuration must pass Check.
func New(c Config, now time.Time) (*Machine, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	m := &Machine{cfg: c, circuits: map[string]*circuit{}, received: map[packet.PDUType]uint64{}, drops: map[Drop]uint64{}}
	for _, n := range []uint8{packet.Level1, packet.Level2} {
		if c.Levels&n != 0 {
			m.levels = append(m.levels, newLevel(c, n))
		}
	}
	m.setCircuits(now, c.Circuits)
	m.refresh(now)
	return m, nil
}

// Advertise marks exactly these prefixes from now on.
func (m *Machine) Advertise(now time.Time, ads []igp.Advertisement) {
	m.ads = slices.Clone(ads)
	m.refresh(now)
}

// Replay makes Learned give everything once more.
func (m *Machine) Replay() {
	for _, l := range m.levels {
		clear(l.out)
		for id := range l.nodes {
			l.dirty[id] = true
		}
	}
}

// LinkChanged takes the state of a circuit's interface.
func (m *Machine) LinkChanged(now time.Time, name string, l Link) {
	c := m.circuits[name]
	if c == nil || c.link.equal(l) {
		return
	}
	m.circuitDown(now, c)
	c.link = l
	if l.Up && !m.stopped {
		c.start(m, now)
	}
	m.refresh(now)
}

// Receive takes a PDU that arrived. It keeps no part of it. Each is counted by its type, and once more as used
// or dropped.
func (m *Machine) Receive(now time.Time, f Frame) {
	typ, err := packet.Type(f.PDU)
	if err != nil {
		typ = 0
	}
	m.received[typ]++
	if d := m.receive(now, typ, f); d != 0 {
		m.drops[d]++
	} else {
		m.used++
	}
}

func (m *Machine) receive(now time.Time, typ packet.PDUType, f Frame) Drop {
	c := m.circuits[f.Circuit]
	if c == nil || !c.running() {
		return DropCircuit
	}
	switch typ {
	case 0:
		return DropMalformed
	case packet.P2PHello, packet.L1LANHello, packet.L2LANHello:
		return m.receiveHello(now, c, f)
	}
	n := uint8(packet.Level1)
	switch typ {
	case packet.L2LSP, packet.L2CSNP, packet.L2PSNP:
		n = packet.Level2
	}
	l := m.level(n)
	if l == nil || c.cfg.Levels&n == 0 {
		return DropLevel
	}
	if !c.hasAdjacency(n, f.MAC) {
		return DropNoAdjacency
	}
	if err := m.cfg.Authentication[n].Verify(f.PDU); err != nil {
		return authDrop(err)
	}
	var err error
	switch typ {
	case packet.L1LSP, packet.L2LSP:
		err = l.flood.ReceiveLSP(now, c.id(), f.PDU)
	default:
		err = l.flood.ReceiveSNP(now, c.id(), f.PDU)
	}
	var malformed *packet.Error
	switch {
	case errors.As(err, &malformed):
		return DropMalformed
	case err != nil:
		return DropRefused
	}
	return 0
}

func authDrop(err error) Drop {
	var malformed *packet.Error
	if errors.As(err, &malformed) {
		return DropMalformed
	}
	return DropAuthentication
}

func (m *Machine) level(n uint8) *level {
	for _, l := range m.levels {
		if l.n == n {
			return l
		}
	}
	return nil
}

// Tick does what is due and gives the frames to send now.
func (m *Machine) Tick(now time.Time) (out []Frame) {
	for _, name := range m.order {
		c := m.circuits[name]
		out = c.tick(m, now, out)
		m.take(now, c)
	}
	for _, l := range m.levels {
		for _, s := range l.flood.Tick(now) {
			if c := m.byID(s.Circuit); c != nil {
				out = append(out, Frame{c.cfg.Name, c.group(l.n), s.PDU})
			}
		}
		m.learned = append(m.learned, l.learn(m.cfg, now)...)
	}
	return out
}

// Wake is when Tick has something to do.
func (m *Machine) Wake() (at time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, c := range m.circuits {
		if !m.stopped {
			earlier(c.wake())
		}
	}
	for _, l := range m.levels {
		earlier(l.flood.Wake())
		earlier(l.spfDue)
	}
	return at
}

// Learned gives what changed since the last call.
func (m *Machine) Learned() []igp.Learned {
	out := m.learned
	m.learned = nil
	return out
}

// Stop purges what this system announced. What follows from Tick is to be sent before the circuits are left.
func (m *Machine) Stop(now time.Time) error {
	m.stopped = true
	var errs []error
	for _, l := range m.levels {
		errs = append(errs, l.flood.WithdrawAll(now))
	}
	return errors.Join(errs...)
}

// Purged reports whether every neighbour has acknowledged the purges, after Stop. On a LAN nobody does: they
// are sent once.
func (m *Machine) Purged() bool {
	for _, l := range m.levels {
		if l.flood.Pending() {
			return false
		}
	}
	return true
}
