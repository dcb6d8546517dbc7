package speaker

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/packet"
)

// Machine is the whole router. It is not safe for concurrent use.
type Machine struct {
	cfg      Config
	flood    *flooding.Machine
	links    map[string]*link
	order    []string // names of the links, sorted
	areas    map[packet.ID]*area
	ads      []igp.Advertisement
	marking  marking
	touched  []touch // by the update process, not settled yet
	stopped  bool
	left     bool                   // the last hellos are out
	parting  []Datagram             // to be sent on links that are taken away
	received map[packet.Type]uint64 // 0: unreadable
	used     uint64
	drops    map[Drop]uint64
	learned  []igp.Learned
	changes  []Change

	malformed   uint64 // LSAs whose body breaks the format of their type
	graceErrors uint64 // grace LSAs whose body couldn't be read
}

// New makes a router whose links are all down. The configuration must pass Check.
func New(c Config, now time.Time) (*Machine, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg: c.WithDefaults(), links: map[string]*link{}, areas: map[packet.ID]*area{}, marking: marking{numbers: map[netip.Prefix]uint32{}},
		received: map[packet.Type]uint64{}, drops: map[Drop]uint64{},
	}
	m.flood = flooding.New(m.cfg.flooding())
	m.flood.OnChange(m.changed)
	m.setLinks(now, c.Links)
	return m, nil
}

// flooding is the configuration of the update process.
func (c Config) flooding() flooding.Config {
	return flooding.Config{
		Version: c.Version, Router: c.Router, MinLSInterval: c.MinLSInterval, MinLSArrival: c.MinLSArrival,
		Refresh: c.Refresh, AckDelay: c.AckDelay, MaxLSAs: c.MaxLSAs,
	}
}

// Advertise marks exactly these prefixes from now on: those of the version's family whose proxy's address is
// of that family, too (RFC 9084 section 2.2).
func (m *Machine) Advertise(now time.Time, ads []igp.Advertisement) {
	m.ads = slices.DeleteFunc(slices.Clone(ads), func(a igp.Advertisement) bool { return !m.carries(a) })
	m.refreshMarks(now)
}

func (m *Machine) carries(a igp.Advertisement) bool {
	v4 := m.cfg.Version == packet.V2
	return a.Prefix.IsValid() && a.Proxy.IsValid() && a.Prefix.Addr().Is4() == v4 && a.Proxy.Is4() == v4
}

// Replay makes Learned give everything once more.
func (m *Machine) Replay() {
	for _, id := range m.areaIDs() {
		m.learned = append(m.learned, m.areas[id].Replay()...)
	}
}

// LinkChanged takes the state of a link's interface.
func (m *Machine) LinkChanged(now time.Time, name string, state Link) {
	l := m.links[name]
	if l == nil || l.state == state {
		return
	}
	was := l.state
	l.state = state
	was.MTU = state.MTU
	if was == state && l.running() {
		l.iface.Reconfigure(m.ifaceConfig(l))
		m.attach(l)
		return
	}
	m.down(now, l)
	m.up(now, l)
}

// Receive takes a packet that arrived. It keeps no part of it. Each is counted by its type, and once more as
// used or dropped.
func (m *Machine) Receive(now time.Time, d Datagram) {
	typ := packet.PeekType(d.Payload)
	if packet.Check(m.cfg.Version, d.Payload) != nil {
		typ = 0
	}
	m.received[typ]++
	if why := m.receive(now, d); why != 0 {
		m.drops[why]++
	} else {
		m.used++
	}
	m.settle(now)
}

func (m *Machine) receive(now time.Time, d Datagram) Drop {
	l := m.links[d.Link]
	if l == nil || !l.running() {
		return DropLink
	}
	from, to := d.Source.WithZone(""), d.Destination.WithZone("")
	p, replay, why, err := l.open(m.cfg.Version, d.Payload, auth.Addresses{Source: from, Destination: to})
	if why != 0 {
		l.dropped[why]++
		l.last = refusal{from, why, err}
		return why
	}
	n, reason := l.iface.Receive(now, from, to, p)
	if n != nil {
		l.replays[p.Router] = replay
	}
	m.take(now, l)
	if reason != iface.ReasonNone {
		l.last = refusal{from: from, why: reason}
		return DropInterface
	}
	switch b := p.Body.(type) {
	case *packet.Update:
		m.keepWellFormed(n, b)
		err = m.flood.ReceiveUpdate(now, l.id, p.Router, b)
	case *packet.Ack:
		err = m.flood.ReceiveAck(now, l.id, p.Router, b)
	default:
		return 0
	}
	if errors.Is(err, flooding.ErrBadRequest) {
		n.BadRequest(now)
		m.take(now, l)
		return DropBadRequest
	}
	m.take(now, l) // the last LSA asked for makes the neighbour full
	if err != nil {
		return DropState
	}
	return 0
}

// keepWellFormed takes the LSAs out of an update whose body breaks the format of their type: passed on, one would keep
// FRR from taking all others that go out in the same packet. They are not acknowledged, as in BIRD; nor asked for
// again, or the adjacency would never be full.
func (m *Machine) keepWellFormed(n *iface.Neighbor, u *packet.Update) {
	u.LSAs = slices.DeleteFunc(u.LSAs, func(l packet.LSA) bool {
		if l.CheckBody(m.cfg.Version) == nil || !l.ChecksumOK() { // that is counted as what it is
			return false
		}
		m.malformed++
		n.Satisfy(l.Key)
		return true
	})
}

// Tick does what is due and gives the packets to send now.
func (m *Machine) Tick(now time.Time) (out []Datagram) {
	out, m.parting = m.parting, nil
	for _, name := range m.order {
		l := m.links[name]
		if !l.running() {
			continue
		}
		if !m.stopped {
			for _, s := range l.iface.Tick(now) {
				out = l.seal(m, now, out, s.To, s.Body)
			}
		}
		m.take(now, l)
	}
	for _, s := range m.flood.Tick(now) {
		l := m.byID(s.Interface)
		if l == nil || !l.running() {
			continue
		}
		to := l.iface.Flood()
		if s.To != 0 {
			n := l.iface.Neighbor(s.To)
			if n == nil {
				continue
			}
			to = l.iface.Direct(n)
		}
		out = l.seal(m, now, out, to, s.Body)
	}
	if m.stopped && !m.left && m.Purged() {
		m.left = true
		for _, name := range m.order {
			if l := m.links[name]; l.running() { // neighbours need not wait for the dead interval
				out = l.seal(m, now, out, iface.AllSPFRouters(m.cfg.Version), l.iface.Leaving())
			}
		}
	}
	m.settle(now)
	m.learn(now)
	return out
}

// Wake is when Tick has something to do.
func (m *Machine) Wake() time.Time {
	at := m.flood.Wake()
	for _, l := range m.links {
		if l.running() && !m.stopped {
			at = earlier(at, l.iface.Wake())
		}
	}
	for _, a := range m.areas {
		at = earlier(at, a.Wake())
	}
	return at
}

// earlier is the one that comes first; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Learned gives what changed since the last call.
func (m *Machine) Learned() []igp.Learned {
	out := m.learned
	m.learned = nil
	return out
}

// Changes gives what changed at the neighbours since the last call.
func (m *Machine) Changes() []Change {
	out := m.changes
	m.changes = nil
	return out
}

// Stop flushes what this router announced. What follows from Tick is to be sent before the links are left.
func (m *Machine) Stop(now time.Time) error {
	m.stopped = true
	m.flood.WithdrawAll(now)
	return nil
}

// Purged reports whether every neighbour has acknowledged what was flushed, after Stop.
func (m *Machine) Purged() bool { return !m.flood.Pending() }

// byID gives the link with a number; nil when there is none.
func (m *Machine) byID(id flooding.InterfaceID) *link {
	for _, l := range m.links {
		if l.id == id {
			return l
		}
	}
	return nil
}

// areaIDs lists the areas in order.
func (m *Machine) areaIDs() []packet.ID { return slices.Sorted(maps.Keys(m.areas)) }

// unzoned is an address as packets have it.
func unzoned(p netip.Prefix) netip.Addr { return p.Addr().WithZone("") }
