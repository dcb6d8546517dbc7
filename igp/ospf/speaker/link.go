package speaker

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// link is an interface with its neighbours.
type link struct {
	cfg      LinkConfig
	id       flooding.InterfaceID
	state    Link
	iface    *iface.Machine // nil while the link is down
	sequence auth.Sequence  // goes on when the link was down meanwhile
	replays  map[packet.ID]*auth.Replay
	said     []adjacency // what the own router LSA says of the link
	dropped  [dropCount]uint64
	last     refusal
}

// adjacency is what the own router LSA says of a neighbour or network. It is comparable.
type adjacency struct {
	kind     uint8
	neighbor packet.ID // OSPFv2: what the link's ID is; OSPFv3: router ID
	linkID   uint32    // OSPFv3: the neighbour's or the Designated Router's interface ID
}

func (l *link) running() bool { return l.iface != nil }

// options are those of an area, as hellos and LSAs have them. OSPFv3: the R bit is clear, so that nothing is
// routed through this router (RFC 5340 section 4.8.1).
func (c Config) options(k AreaKind) (o uint32) {
	switch k {
	case Normal:
		o = packet.OptionE
	case NSSA:
		o = packet.OptionN
	}
	if c.Version == packet.V3 {
		o |= packet.V3OptV6
		if c.transit {
			o |= packet.V3OptR
		}
	}
	return o
}

// ifaceConfig is that of the link as its interface is now.
func (m *Machine) ifaceConfig(l *link) iface.Config {
	x := l.cfg
	return iface.Config{
		Config: neighbor.Config{
			Version: m.cfg.Version, Router: m.cfg.Router, Options: m.cfg.options(m.cfg.kind(x.Area)), MTU: l.state.MTU,
			MTUIgnore: x.MTUIgnore, Retransmit: x.Retransmit, Dead: x.Dead, Overhead: x.Authentication.Overhead(m.cfg.Version),
		},
		Area: x.Area, Instance: x.Instance, Broadcast: x.Broadcast,
		Prefix:    netip.PrefixFrom(unzoned(l.state.Address), l.state.Address.Bits()),
		Interface: uint32(l.state.Index), Hello: x.Hello, MaxNeighbors: x.MaxNeighbors,
	}
}

// up begins to send hellos, if the interface can be used.
func (m *Machine) up(now time.Time, l *link) {
	if !l.state.usable(m.cfg.Version) || m.stopped {
		return
	}
	m.attach(l)
	l.iface = iface.New(m.ifaceConfig(l), database{m.flood, m.cfg.Version, l})
	l.replays = map[packet.ID]*auth.Replay{}
	l.iface.Up(now)
	if m.cfg.Version == packet.V3 {
		w := flooding.Where{Scope: packet.ScopeLink, Link: l.id}
		m.originate(now, w, packet.V3Link, packet.ID(l.state.Index), m.linkLSA(l))
	}
	m.refreshLink(now, l)
	m.refreshMarks(now)
}

// attach makes the link known to the update process, or changes what that knows of it.
func (m *Machine) attach(l *link) {
	kind := m.cfg.kind(l.cfg.Area)
	c := m.ifaceConfig(l)
	m.flood.SetInterface(l.id, flooding.Area{ID: l.cfg.Area, Stub: kind == Stub, NSSA: kind == NSSA}, c.Room())
	m.flood.SetTimes(l.id, l.cfg.TransmitDelay, l.cfg.Retransmit)
	if m.cfg.Version == packet.V2 {
		m.flood.SetAddress(l.id, packet.IDOf(unzoned(l.state.Address)))
	}
	if m.areas[l.cfg.Area] == nil {
		m.areas[l.cfg.Area] = newArea(m.cfg, l.cfg.Area)
	}
}

// down ends the adjacencies. What was learned in the area is forgotten with its last link.
func (m *Machine) down(now time.Time, l *link) {
	if !l.running() {
		return
	}
	l.iface.Down(now)
	m.take(now, l)
	l.iface, l.replays, l.said = nil, nil, nil
	m.flood.RemoveInterface(l.id)
	if m.flood.DB(flooding.Where{Scope: packet.ScopeArea, Area: l.cfg.Area}) == nil {
		m.leave(l.cfg.Area)
	}
	m.refreshArea(now, l.cfg.Area)
	m.refreshMarks(now)
}

// open checks a packet's authentication and reads it. The sequence number of an unknown neighbour is
// remembered once an interface takes its hello.
func (l *link) open(v packet.Version, b []byte, a auth.Addresses) (*packet.Packet, *auth.Replay, Drop, error) {
	if err := packet.Check(v, b); err != nil {
		return nil, nil, DropMalformed, err
	}
	router := packet.PeekRouter(b)
	replay := l.replays[router]
	if replay == nil {
		replay = &auth.Replay{}
	}
	switch _, err := l.cfg.Authentication.Verify(v, b, a, replay); {
	case errors.Is(err, auth.ErrPacket):
		return nil, nil, DropMalformed, err
	case errors.Is(err, auth.ErrChecksum):
		return nil, nil, DropChecksum, err
	case errors.Is(err, auth.ErrReplay):
		return nil, nil, DropReplay, err
	case err != nil:
		return nil, nil, DropAuthentication, err
	}
	p, err := packet.Parse(v, b)
	if err != nil {
		return nil, nil, DropMalformed, err
	}
	return p, replay, 0, nil
}

// refusal is the last packet of a link that was not used before a neighbour could be asked.
type refusal struct {
	from netip.Addr
	why  fmt.Stringer // Drop or iface.Reason
	err  error        // more about it; nil: nothing
}

// String says it for an operator.
func (r refusal) String() string {
	switch {
	case r.why == nil:
		return ""
	case r.err == nil:
		return fmt.Sprintf("%s, from %s", r.why, r.from)
	}
	return fmt.Sprintf("%s, from %s: %v", r.why, r.from, r.err)
}

// Change is that of a neighbour's state.
type Change struct {
	Link string
	iface.Event
}

// seal appends a packet as it goes on the wire.
func (l *link) seal(m *Machine, now time.Time, out []Datagram, to netip.Addr, body packet.Body) []Datagram {
	p := &packet.Packet{Version: m.cfg.Version, Router: m.cfg.Router, Area: l.cfg.Area, Instance: l.cfg.Instance, Body: body}
	from := unzoned(l.state.Address)
	raw, err := l.cfg.Authentication.Seal(p, auth.Addresses{Source: from, Destination: to}, &l.sequence, now)
	if err != nil {
		return out // keys, lengths and addresses are held to before
	}
	return append(out, Datagram{Link: l.cfg.Name, Source: from, Destination: to, Payload: raw})
}

// take brings what changed at the link's neighbours to the update process and to the own LSAs.
func (m *Machine) take(now time.Time, l *link) {
	if !l.running() {
		return
	}
	for _, e := range l.iface.Events() {
		m.changes = append(m.changes, Change{l.cfg.Name, e})
		was, is := e.From >= neighbor.Exchange, e.To >= neighbor.Exchange
		if was && !is {
			m.flood.RemovePeer(l.id, e.Router)
		}
		if n := l.iface.Neighbor(e.Router); !was && is && n != nil {
			m.flood.SetPeer(l.id, n)
			m.flood.Retransmit(now, l.id, e.Router, n.MaxAge())
		}
		if e.To == neighbor.Down {
			delete(l.replays, e.Router)
		}
	}
	m.refreshLink(now, l)
}
