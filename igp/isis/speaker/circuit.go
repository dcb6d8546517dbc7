package speaker

import (
	"slices"
	"time"

	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/flooding"
	"pncd/igp/isis/packet"
)

// circuit is an interface with its adjacencies: one machine when it is point-to-point, one for each level on a
// LAN.
type circuit struct {
	cfg    CircuitConfig
	number int
	link   Link
	p2p    *adjacency.P2P
	lans   map[uint8]*adjacency.LAN
	// designated is who was the LAN's designated system when the own LSP was made, by level.
	designated map[uint8]packet.NodeID
	refused    map[uint8]bool // this system would be it
}

func (l Link) equal(o Link) bool {
	return l.Up == o.Up && l.Index == o.Index && l.MAC == o.MAC && l.MTU == o.MTU && slices.Equal(l.IPv4, o.IPv4) && slices.Equal(l.IPv6, o.IPv6)
}

func circuitID(n int) flooding.CircuitID  { return flooding.CircuitID(n) }
func (c *circuit) id() flooding.CircuitID { return circuitID(c.number) }
func (c *circuit) running() bool          { return c.p2p != nil || c.lans != nil }

func (m *Machine) byID(id flooding.CircuitID) *circuit {
	for _, c := range m.circuits {
		if c.id() == id {
			return c
		}
	}
	return nil
}

// group is where PDUs of a level go.
func (c *circuit) group(level uint8) [6]byte {
	switch {
	case !c.cfg.LAN:
		return AllISs
	case level == packet.Level1:
		return AllL1ISs
	}
	return AllL2ISs
}

// start begins to send hellos.
func (c *circuit) start(m *Machine, now time.Time) {
	t := c.cfg.tuning()
	a := adjacency.Config{
		System: m.cfg.System, Areas: m.cfg.Areas, Levels: c.cfg.Levels, Circuit: uint32(c.number),
		MTU: c.pduLen(), Padding: t.Padding, Hello: t.Hello, Multiple: t.Multiple,
		IPv4: c.link.IPv4, IPv6: c.link.IPv6, MAC: c.link.MAC, Priority: t.Priority,
		Overhead: t.Overhead, Jitter: m.cfg.Jitter,
	}
	if m.cfg.MultiTopology {
		a.Topologies = []packet.Topology{{ID: packet.MTStandard}, {ID: packet.MTIPv6}}
	}
	c.designated, c.refused = map[uint8]packet.NodeID{}, map[uint8]bool{}
	if !c.cfg.LAN {
		c.p2p = adjacency.NewP2P(a, now)
		return
	}
	c.lans = map[uint8]*adjacency.LAN{}
	for _, n := range []uint8{packet.Level1, packet.Level2} {
		if c.cfg.Levels&n != 0 {
			c.lans[n] = adjacency.NewLAN(a, n, now)
		}
	}
}

// pduLen is the longest PDU that the circuit takes, octets.
func (c *circuit) pduLen() int { return min(c.link.MTU, 1500) - llcLen }

func (m *Machine) circuitDown(now time.Time, c *circuit) {
	if c.p2p != nil {
		c.p2p.Stop()
	}
	for _, l := range c.lans {
		l.Stop()
	}
	m.take(now, c)
	c.p2p, c.lans = nil, nil
}

func (m *Machine) receiveHello(now time.Time, c *circuit, f Frame) Drop {
	if err := c.cfg.Authentication.Verify(f.PDU); err != nil {
		return authDrop(err)
	}
	h, err := packet.ParseHello(f.PDU)
	if err != nil {
		return DropMalformed
	}
	why := adjacency.ReasonNone
	if c.p2p != nil {
		why = c.p2p.Receive(now, h, f.MAC)
	} else {
		l := c.lans[packet.Level1]
		if h.Type == packet.L2LANHello {
			l = c.lans[packet.Level2]
		}
		if l == nil {
			return DropLevel
		}
		why = l.Receive(now, h, f.MAC)
	}
	m.take(now, c)
	if why != adjacency.ReasonNone {
		return DropHello
	}
	return 0
}

// neighbors lists those of a level.
func (c *circuit) neighbors(level uint8) []adjacency.Neighbor {
	if c.p2p != nil {
		return slices.DeleteFunc(c.p2p.Neighbors(), func(n adjacency.Neighbor) bool { return n.Levels&level == 0 })
	}
	if l := c.lans[level]; l != nil {
		return l.Neighbors()
	}
	return nil
}

func (c *circuit) hasAdjacency(level uint8, mac [6]byte) bool {
	return slices.ContainsFunc(c.neighbors(level), func(n adjacency.Neighbor) bool {
		return n.State == adjacency.Up && (n.MAC == mac || !c.cfg.LAN)
	})
}

// tick appends the hellos that are due.
func (c *circuit) tick(m *Machine, now time.Time, out []Frame) []Frame {
	send := func(hellos []packet.Hello, group [6]byte) {
		for _, h := range hellos {
			raw, err := h.Append(nil)
			if err == nil {
				raw, err = c.cfg.Authentication.Sign(raw)
			}
			if err == nil { // a hello that can't be written is one with too many neighbours: they don't hear of all
				out = append(out, Frame{c.cfg.Name, group, raw})
			}
		}
	}
	if c.p2p != nil && !m.stopped {
		send(c.p2p.Tick(now), AllISs)
	}
	for _, n := range []uint8{packet.Level1, packet.Level2} {
		if l := c.lans[n]; l != nil && !m.stopped {
			send(l.Tick(now), c.group(n))
		}
	}
	return out
}

func (c *circuit) wake() (at time.Time) {
	if c.p2p != nil {
		return c.p2p.Wake()
	}
	for _, l := range c.lans {
		if t := l.Wake(); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// take brings what changed at the circuit's adjacencies to the levels.
func (m *Machine) take(now time.Time, c *circuit) {
	changed := false
	if c.p2p != nil {
		for _, e := range c.p2p.Events() {
			for _, l := range m.levels {
				if e.Neighbor.Levels&l.n == 0 {
					continue
				}
				if !e.Up { // also when another one has taken its place at once: that has nothing yet
					l.flood.CircuitDown(c.id())
				}
				m.flooding(now, c, l, e.Resync)
			}
			changed = true
		}
	}
	for _, l := range m.levels {
		lan := c.lans[l.n]
		if lan == nil {
			continue
		}
		for _, e := range lan.Events() {
			m.flooding(now, c, l, e.Resync)
			changed = true
		}
		dis, ours := lan.Designated(now)
		id := packet.NodeID{}
		if dis != nil {
			id = dis.LANID
		}
		if c.designated[l.n] != id || c.refused[l.n] != ours {
			c.designated[l.n], c.refused[l.n] = id, ours
			changed = true
		}
	}
	if changed {
		m.refresh(now)
	}
}

// flooding begins or ends it on a circuit, as there is an adjacency that is up or not.
func (m *Machine) flooding(now time.Time, c *circuit, l *level, resync bool) {
	up := c.running() && slices.ContainsFunc(c.neighbors(l.n), func(n adjacency.Neighbor) bool { return n.State == adjacency.Up })
	if !up {
		l.flood.CircuitDown(c.id())
		return
	}
	l.flood.CircuitUp(now, c.id(), flooding.CircuitConfig{LAN: c.cfg.LAN, MTU: c.pduLen()})
	if resync {
		l.flood.Resync(now, c.id())
	}
}
