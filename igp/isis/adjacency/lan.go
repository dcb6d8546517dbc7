package adjacency

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"pncd/igp/isis/packet"
)

// MaxNeighbors bounds what a LAN can make this system remember.
const MaxNeighbors = 1000

// LAN is a LAN circuit at one level. It is not safe for concurrent use.
type LAN struct {
	cfg       Config
	level     uint8
	neighbors map[[6]byte]*Neighbor
	next      time.Time                   // hello
	sent      time.Time                   // the last hello
	election  time.Time                   // when it may begin: two hello intervals after the start
	elected   bool                        // it has begun, and whoever calls Tick knows
	restart   map[[6]byte]packet.SystemID // whose restart the next hello acknowledges
	refused   [reasonCount]uint64
	events    []Event
}

// NewLAN makes a circuit that sends its first hello at once.
func NewLAN(c Config, level uint8, now time.Time) *LAN {
	c = c.withDefaults()
	return &LAN{cfg: c, level: level, neighbors: map[[6]byte]*Neighbor{}, restart: map[[6]byte]packet.SystemID{}, next: now, election: now.Add(2 * c.Hello)}
}

// Neighbors lists the neighbours by MAC address.
func (l *LAN) Neighbors() (all []Neighbor) {
	for _, mac := range l.macs() {
		all = append(all, *l.neighbors[mac])
	}
	return all
}

func (l *LAN) macs() [][6]byte {
	return slices.SortedFunc(maps.Keys(l.neighbors), func(a, b [6]byte) int { return bytes.Compare(a[:], b[:]) })
}

// Refused counts the hellos that were refused, by reason.
func (l *LAN) Refused(r Reason) uint64 { return l.refused[r] }

// Events gives what changed since the last call.
func (l *LAN) Events() []Event {
	out := l.events
	l.events = nil
	return out
}

// helloType is the type of the level's hellos.
func (l *LAN) helloType() packet.PDUType {
	if l.level == packet.Level1 {
		return packet.L1LANHello
	}
	return packet.L2LANHello
}

// Receive takes a hello of the circuit's level that came from a MAC address.
func (l *LAN) Receive(now time.Time, h packet.Hello, mac [6]byte) Reason {
	why := l.receive(now, h, mac)
	if why != ReasonNone {
		l.refused[why]++
	}
	return why
}

func (l *LAN) receive(now time.Time, h packet.Hello, mac [6]byte) Reason {
	if h.Type != l.helloType() {
		return ReasonWrongKind
	}
	old := l.neighbors[mac]
	n, why := l.cfg.read(h, l.level)
	if why != ReasonNone {
		if why != ReasonMalformed && old != nil {
			l.down(mac, why)
		}
		return why
	}
	heard, err := h.TLVs.LANNeighbors()
	if err != nil {
		return ReasonMalformed
	}
	if old != nil && old.System != n.System {
		l.down(mac, ReasonReplaced)
		old = nil
	}
	if old == nil && len(l.neighbors) >= l.room(now) {
		return ReasonTooManyNeighbors
	}
	n.MAC, n.Expires, n.Priority, n.LANID = mac, now.Add(seconds(h.HoldingTime)), h.Priority&0x7F, h.LANID
	n.State, n.Since = Initializing, now
	if slices.Contains(heard, l.cfg.MAC) {
		n.State = Up
	}
	was := Down
	if old != nil {
		was = old.State
	}
	if r := h.TLVs.Restart(); r != nil {
		n.Suppressed = r.Suppress
		if r.Request && was == Up {
			n.restarts(old)
			l.restart[mac] = n.System
			l.next = soon(now, l.sent)
			l.events = append(l.events, Event{Neighbor: n, Up: true, Resync: true})
		}
	}
	if n.State == was {
		n.Since = old.Since
	} else {
		l.next = soon(now, l.sent) // so that a neighbour soon sees itself heard (FRR #14640: stuck after fast restarts)
	}
	switch {
	case was == Up && n.State != Up:
		l.events = append(l.events, Event{Neighbor: *old, Reason: ReasonNotSeen})
	case was != Up && n.State == Up:
		l.events = append(l.events, Event{Neighbor: n, Up: true})
	}
	l.neighbors[mac] = &n
	return ReasonNone
}

// room is how many neighbours a hello can name: one that is longer than the MTU is never sent, and all adjacencies
// would be lost.
func (l *LAN) room(now time.Time) int {
	raw, err := l.bare(now).Append(nil)
	if err != nil {
		return 0
	}
	const full = 2 + perTLV*6
	left := l.cfg.MTU - l.cfg.Overhead - len(raw) - restartLen
	return max(0, min(MaxNeighbors, left/full*perTLV+max(0, left%full-2)/6))
}

func (l *LAN) down(mac [6]byte, why Reason) {
	n := l.neighbors[mac]
	delete(l.neighbors, mac)
	delete(l.restart, mac)
	if n.State == Up {
		l.events = append(l.events, Event{Neighbor: *n, Reason: why})
	}
}

// Stop ends all adjacencies: the circuit went down.
func (l *LAN) Stop() {
	for _, mac := range l.macs() {
		l.down(mac, ReasonCircuit)
	}
}

// Tick gives the hello to send now, if one is due, and ends adjacencies that were not renewed.
func (l *LAN) Tick(now time.Time) []packet.Hello {
	for _, mac := range l.macs() {
		if !l.neighbors[mac].Expires.After(now) {
			l.down(mac, ReasonHeldTooLong)
		}
	}
	l.elected = !now.Before(l.election)
	if l.next.After(now) {
		return nil
	}
	l.sent, l.next = now, now.Add(l.cfg.interval())
	return []packet.Hello{l.hello(now)}
}

// Wake is when Tick has something to do.
func (l *LAN) Wake() time.Time {
	at := l.next
	for _, n := range l.neighbors {
		if n.Expires.Before(at) {
			at = n.Expires
		}
	}
	if !l.elected && l.election.Before(at) {
		at = l.election // who is designated is known then
	}
	return at
}

// Designated gives the neighbour that is the LAN's designated system (ISO 10589 clause 8.4.5): the highest
// priority, then the highest MAC address, among the adjacencies that are up. ours says that it would be this
// system, which has no pseudonode: the circuit can't be used then. Neither holds as long as nobody is there,
// or the election has not begun (two hello intervals after the start).
func (l *LAN) Designated(now time.Time) (dis *Neighbor, ours bool) {
	for _, mac := range l.macs() {
		n := l.neighbors[mac]
		if n.State == Up && (dis == nil || n.Priority >= dis.Priority) {
			dis = n
		}
	}
	if dis == nil || now.Before(l.election) {
		return nil, false
	}
	if l.cfg.Priority > dis.Priority || l.cfg.Priority == dis.Priority && bytes.Compare(l.cfg.MAC[:], dis.MAC[:]) > 0 {
		return nil, true
	}
	return dis, false
}

const (
	perTLV     = 42        // MAC addresses in a TLV
	restartLen = 2 + 3 + 6 // one system's restart that is acknowledged, octets
)

// bare is a hello without neighbours.
func (l *LAN) bare(now time.Time) packet.Hello {
	h := packet.Hello{
		Header: packet.Header{Type: l.helloType()}, CircuitType: l.cfg.Levels, Source: l.cfg.System,
		HoldingTime: l.cfg.holding(), Priority: l.cfg.Priority & 0x7F, LANID: l.cfg.System.Node(uint8(l.cfg.Circuit)),
		TLVs: l.cfg.common(),
	}
	if dis, _ := l.Designated(now); dis != nil {
		h.LANID = dis.LANID
	}
	return h
}

func (l *LAN) hello(now time.Time) packet.Hello {
	h := l.bare(now)
	up := false
	var heard []byte
	for _, mac := range l.macs() {
		heard = append(heard, mac[:]...)
		up = up || l.neighbors[mac].State == Up
	}
	for some := range slices.Chunk(heard, perTLV*6) {
		h.TLVs = append(h.TLVs, packet.TLV{Type: packet.TLVISNeighborsLAN, Value: some})
	}
	for _, mac := range l.macs() {
		if system, ok := l.restart[mac]; ok {
			left := uint16(max(l.neighbors[mac].Expires.Sub(now)/time.Second, 0))
			h.TLVs = append(h.TLVs, packet.Restart{Acknowledge: true, HasTime: true, RemainingTime: left, HasNeighbor: true, Neighbor: system}.TLV())
		}
	}
	clear(l.restart)
	return l.cfg.pad(h, up)
}
