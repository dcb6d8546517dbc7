package adjacency

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"pncd/igp/isis/packet"
)

// State is how far an adjacency is.
type State uint8

// The states.
const (
	Down State = iota
	Initializing
	Up
)

// String gives the name in lower case.
func (s State) String() string { return [...]string{"down", "initializing", "up"}[s] }

// Neighbor is a system on the other side.
type Neighbor struct {
	System   packet.SystemID
	Levels   uint8 // what the adjacency is used for
	State    State
	Since    time.Time // of State
	Expires  time.Time // without another hello
	Areas    []packet.Area
	IPv4     []netip.Addr
	IPv6     []netip.Addr
	ThreeWay bool   // point-to-point: the neighbour speaks RFC 5303
	Circuit  uint32 // point-to-point, with ThreeWay: the neighbour's extended circuit ID
	MAC      [6]byte
	Priority uint8         // LAN
	LANID    packet.NodeID // LAN: whom the neighbour takes for the designated system
	// Suppressed says that the neighbour asks not to be announced as one yet (RFC 8706 section 3.2.2).
	Suppressed bool
	// Restarting says that the neighbour restarts: its last hello asked to keep the adjacency (RFC 8706
	// section 3.2.1), whose holding time is not refreshed until it is done.
	Restarting bool
	// Topologies are those that the neighbour announces; none: the standard one (RFC 5120).
	Topologies []packet.Topology
}

// Reason says why a hello was refused, or an adjacency ended.
type Reason uint8

// The reasons.
const (
	ReasonNone             Reason = iota
	ReasonMalformed               // a TLV of the hello can't be read
	ReasonSystemID                // the neighbour has this system's ID
	ReasonMaxAreas                // the maximum of area addresses is another (ISO 10589 clause 8.2.5.2)
	ReasonArea                    // no area in common, and not both of level 2
	ReasonLevel                   // no level in common
	ReasonProtocol                // no network protocol in common (RFC 1195 section 4.3)
	ReasonNotForUs                // the three-way handshake names another system or circuit (RFC 5303 section 3.2)
	ReasonHandshake               // the neighbour has begun the handshake anew
	ReasonHeldTooLong             // no hello within the holding time
	ReasonReplaced                // another system is on the point-to-point circuit now
	ReasonNotSeen                 // LAN: the neighbour no longer hears this system
	ReasonCircuit                 // the circuit went down
	ReasonWrongKind               // a LAN hello on a point-to-point circuit, or the other way round
	ReasonTooManyNeighbors        // LAN: more than MaxNeighbors, or than a hello can name
	reasonCount
)

var reasonNames = [reasonCount]string{
	"none", "malformed", "own-system-id", "max-areas", "area", "level", "protocol", "not-for-us", "handshake",
	"hold-time", "replaced", "not-seen", "circuit-down", "wrong-kind", "too-many-neighbors",
}

// String gives the name that counters use.
func (r Reason) String() string { return reasonNames[r] }

// Reasons lists all reasons that count something.
func Reasons() (all []Reason) {
	for r := ReasonNone + 1; r < reasonCount; r++ {
		all = append(all, r)
	}
	return all
}

// Event is a change of an adjacency.
type Event struct {
	Neighbor Neighbor // as it is now, or was
	Up       bool     // came up; else it went down for the reason
	Reason   Reason
	// Resync asks to send the whole database again: the neighbour restarts and keeps its adjacency
	// (RFC 8706). Up is true, and was before.
	Resync bool
}

// read takes what both kinds of hellos say, and decides what the adjacency can be used for (ISO 10589 clauses
// 8.2.5.2 and 8.4.2). level is packet.Level12 on point-to-point circuits, else that of the hello.
func (c *Config) read(h packet.Hello, level uint8) (n Neighbor, why Reason) {
	if h.Source == c.System {
		return n, ReasonSystemID
	}
	if h.MaxAreas != 0 && h.MaxAreas != 3 {
		return n, ReasonMaxAreas
	}
	n = Neighbor{System: h.Source, Levels: c.Levels & h.CircuitType & packet.Level12 & level}
	var errs [4]error
	n.Areas, errs[0] = h.TLVs.Areas()
	n.IPv4, errs[1] = h.TLVs.IPv4Interfaces()
	n.IPv6, errs[2] = h.TLVs.IPv6Interfaces()
	n.Topologies, errs[3] = h.TLVs.Topologies()
	for _, err := range errs {
		if err != nil {
			return n, ReasonMalformed
		}
	}
	n.keep()
	if n.Levels == 0 {
		return n, ReasonLevel
	}
	if !shareArea(c.Areas, n.Areas) {
		if n.Levels &^= packet.Level1; n.Levels == 0 {
			return n, ReasonArea
		}
	}
	nlpids, _ := h.TLVs.Protocols()
	v4 := len(c.IPv4) > 0 && bytes.IndexByte(nlpids, packet.NLPIDIPv4) >= 0
	v6 := len(c.IPv6) > 0 && bytes.IndexByte(nlpids, packet.NLPIDIPv6) >= 0
	if !v4 && !v6 {
		return n, ReasonProtocol
	}
	return n, ReasonNone
}

// restarts is for a hello that asks to keep an adjacency that is up (RFC 8706 section 3.2.1 a): only the first such
// one refreshes the holding time, or a neighbour that never gets ready would stay.
func (n *Neighbor) restarts(old *Neighbor) {
	n.State = Up
	n.Restarting = true
	if old.Restarting {
		n.Expires = old.Expires
	}
}

// keep makes the neighbour independent of the PDU's memory.
func (n *Neighbor) keep() {
	areas := make([]packet.Area, len(n.Areas))
	for i, a := range n.Areas {
		areas[i] = slices.Clone(a)
	}
	n.Areas = areas
}

func shareArea(a, b []packet.Area) bool {
	for _, x := range a {
		for _, y := range b {
			if bytes.Equal(x, y) {
				return true
			}
		}
	}
	return false
}

func seconds(n uint16) time.Duration { return time.Duration(n) * time.Second }
