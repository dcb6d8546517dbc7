package adjacency

import (
	"time"

	"pncd/igp/isis/packet"
)

// P2P is a point-to-point circuit. It is not safe for concurrent use.
type P2P struct {
	cfg      Config
	neighbor *Neighbor
	next     time.Time // hello
	sent     time.Time // the last hello
	restart  bool      // the next hello acknowledges a restart
	refused  [reasonCount]uint64
	events   []Event
}

// NewP2P makes a circuit that sends its first hello at once.
func NewP2P(c Config, now time.Time) *P2P { return &P2P{cfg: c.withDefaults(), next: now} }

// Neighbors gives the neighbour; none when there is none.
func (p *P2P) Neighbors() []Neighbor {
	if p.neighbor == nil {
		return nil
	}
	return []Neighbor{*p.neighbor}
}

// Refused counts the hellos that were refused, by reason.
func (p *P2P) Refused(r Reason) uint64 { return p.refused[r] }

// Events gives what changed since the last call.
func (p *P2P) Events() []Event {
	out := p.events
	p.events = nil
	return out
}

// handshake is the table of RFC 5303 section 3.2: from the state here and the one received, to the next.
// Down means that the neighbour's state can't be true.
var handshake = [3][3]State{
	Down:         {packet.AdjacencyUp: Down, packet.AdjacencyInitializing: Up, packet.AdjacencyDown: Initializing},
	Initializing: {packet.AdjacencyUp: Up, packet.AdjacencyInitializing: Up, packet.AdjacencyDown: Initializing},
	Up:           {packet.AdjacencyUp: Up, packet.AdjacencyInitializing: Up, packet.AdjacencyDown: Initializing},
}

// Receive takes a hello. The MAC address is where it came from.
func (p *P2P) Receive(now time.Time, h packet.Hello, mac [6]byte) Reason {
	why := p.receive(now, h, mac)
	if why != ReasonNone {
		p.refused[why]++
	}
	return why
}

func (p *P2P) receive(now time.Time, h packet.Hello, mac [6]byte) Reason {
	if h.Type != packet.P2PHello {
		return ReasonWrongKind
	}
	n, why := p.cfg.read(h, packet.Level12)
	if why != ReasonNone {
		// An adjacency that this neighbour had is over: it is not what it was (clause 8.2.5.2).
		if why != ReasonMalformed && p.neighbor != nil && p.neighbor.System == h.Source {
			p.down(why)
		}
		return why
	}
	n.MAC, n.Expires = mac, now.Add(seconds(h.HoldingTime))
	w, err := h.TLVs.ThreeWay()
	if err != nil {
		return ReasonMalformed
	}
	if w != nil && w.HasNeighbor && (w.Neighbor != p.cfg.System || w.NeighborCircuit != p.cfg.Circuit) {
		return ReasonNotForUs
	}
	if p.neighbor != nil && p.neighbor.System != n.System {
		p.down(ReasonReplaced)
	}
	was := Down
	if p.neighbor != nil {
		was, n.Since = p.neighbor.State, p.neighbor.Since
	}
	if w == nil {
		n.State = Up // two-way: ISO 10589 as it was
	} else {
		// The neighbour's circuit is taken anew each time: a restarted one has another (FRR #4783).
		n.ThreeWay, n.Circuit = true, w.Circuit
		n.State = handshake[was][w.State]
	}
	p.helpRestart(now, &n, was, h.TLVs.Restart())
	p.become(now, n, was)
	return ReasonNone
}

// helpRestart keeps an adjacency up whose neighbour restarts (RFC 8706 section 3.2.1).
func (p *P2P) helpRestart(now time.Time, n *Neighbor, was State, r *packet.Restart) {
	if r == nil {
		return
	}
	n.Suppressed = r.Suppress
	if r.Request && was == Up {
		n.restarts(p.neighbor)
		p.restart = true
		p.next = soon(now, p.sent)
		p.events = append(p.events, Event{Neighbor: *n, Up: true, Resync: true})
	}
}

// become makes n the neighbour.
func (p *P2P) become(now time.Time, n Neighbor, was State) {
	if n.State != was || p.neighbor == nil {
		n.Since = now
		p.next = soon(now, p.sent) // the handshake doesn't wait for hello intervals
	}
	levels := uint8(0)
	if p.neighbor != nil {
		levels = p.neighbor.Levels
	}
	switch {
	case was == Up && n.State == Up && levels != n.Levels:
		p.events = append(p.events, Event{Neighbor: *p.neighbor, Reason: ReasonLevel}, Event{Neighbor: n, Up: true})
	case was == Up && n.State != Up:
		p.events = append(p.events, Event{Neighbor: *p.neighbor, Reason: ReasonHandshake})
	case was != Up && n.State == Up:
		p.events = append(p.events, Event{Neighbor: n, Up: true})
	}
	if n.State == Down {
		// The neighbour believes that it is up and this system knows nothing of it: forget, so that the
		// handshake begins anew (FRR #16162: an entry that stays stuck).
		p.neighbor = nil
		return
	}
	p.neighbor = &n
}

func (p *P2P) down(why Reason) {
	if p.neighbor.State == Up {
		p.events = append(p.events, Event{Neighbor: *p.neighbor, Reason: why})
	}
	p.neighbor = nil
}

// Stop ends the adjacency: the circuit went down.
func (p *P2P) Stop() {
	if p.neighbor != nil {
		p.down(ReasonCircuit)
	}
}

// Tick gives the hello to send now, if one is due, and ends an adjacency that was not renewed.
func (p *P2P) Tick(now time.Time) []packet.Hello {
	if p.neighbor != nil && !p.neighbor.Expires.After(now) {
		p.down(ReasonHeldTooLong)
		p.next = soon(now, p.sent)
	}
	if p.next.After(now) {
		return nil
	}
	p.sent, p.next = now, now.Add(p.cfg.interval())
	return []packet.Hello{p.hello(now)}
}

// Wake is when Tick has something to do.
func (p *P2P) Wake() time.Time {
	if p.neighbor != nil && p.neighbor.Expires.Before(p.next) {
		return p.neighbor.Expires
	}
	return p.next
}

func (p *P2P) hello(now time.Time) packet.Hello {
	w := packet.ThreeWay{State: packet.AdjacencyDown, Circuit: p.cfg.Circuit}
	if n := p.neighbor; n != nil {
		w.State = packet.AdjacencyInitializing
		if n.State == Up {
			w.State = packet.AdjacencyUp
		}
		w.HasNeighbor, w.Neighbor, w.NeighborCircuit = true, n.System, n.Circuit
	}
	h := packet.Hello{
		Header: packet.Header{Type: packet.P2PHello}, CircuitType: p.cfg.Levels, Source: p.cfg.System,
		HoldingTime: p.cfg.holding(), CircuitID: uint8(p.cfg.Circuit), TLVs: append(p.cfg.common(), w.TLV()),
	}
	if p.restart && p.neighbor != nil {
		left := uint16(max(p.neighbor.Expires.Sub(now)/time.Second, 0))
		h.TLVs = append(h.TLVs, packet.Restart{Acknowledge: true, HasTime: true, RemainingTime: left, HasNeighbor: true, Neighbor: p.neighbor.System}.TLV())
	}
	p.restart = false
	return p.cfg.pad(h, p.neighbor != nil && p.neighbor.State == Up)
}
