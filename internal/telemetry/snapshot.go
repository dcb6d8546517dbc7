package telemetry

import "time"

// Snapshot is everything that is exported, as plain values at one time. Counters count since the start
// of the process and never decrease.
type Snapshot struct {
	Version   string    // the program's version
	Node      string    // the node's name
	StartedAt time.Time // when the process started; zero when not known
	Enabled   bool      // the mechanism is switched on
	Ready     bool      // the node can do its part now

	Parts     []Part
	Outcomes  []Outcome
	Neighbors []Neighbor
	Ranges    []ListenRange
	Senders   []Sender

	RouterID       string // our own; empty without BGP
	Advertisements []Advertisements
	Sources        []SenderSource

	Taps     []Tap
	Tables   []Table
	Records  Records
	API      API
	Counters []Counter
}

// Part is one part of the daemon and what it is doing.
type Part struct {
	Name  string // as in bgp, tap:eth0, translator
	State string // off, disabled, starting, ready or failed
}

// Outcome is the exact counter of one outcome.
type Outcome struct {
	Part    string // congestion-node or proxy
	Outcome string // as in sent, map-miss
	Value   uint64
}

// ListenRange is where BGP neighbours come from by themselves.
type ListenRange struct {
	Prefix    string
	Limit     int
	Neighbors int    // that are there
	Refused   uint64 // connections that were not taken
}

// Neighbor is one BGP neighbour.
type Neighbor struct {
	Address      string // without a port
	PeerAS       uint32
	State        string    // RFC 4271 section 8.2.2, in lower case
	Since        time.Time // since when it is in that state; zero when not known
	Flaps        uint64    // times that the session was established
	Received     uint64    // paths held from it
	Advertised   uint64    // paths advertised to it
	NHCReceived  uint64    // paths held from it that carry an NHC attribute
	PNCBelieved  uint64    // paths held from it whose PNC is believed
	Stale        uint64    // paths kept through a restart of it
	Disregarded  map[string]uint64
	Malformed    map[string]uint64 // what was wrong in its messages and didn't end the session, by kind
	Faults       uint64            // connections ended for what it sent
	SessionError bool              // the last session ended with an error

	LocalAS     uint32
	RouterID    string   // its own; empty while not known
	Families    []string // configured, as in ipv4-unicast
	Shutdown    bool     // kept down by the configuration
	MD5         bool
	Range       string // where it has come from by itself; empty for a configured one
	SentUpdates uint64
	Refused     uint64 // announcements that its prefix list did not take
}

// Tap is one packet ring.
type Tap struct {
	Interface string
	Role      string // learner or detector
	Packets   uint64
	Drops     uint64
	Freezes   uint64 // times that the ring was full
	LinkDowns uint64 // times that the interface went down
}

// Table is one bounded table and its fill.
type Table struct {
	Name     string // as in capability-routes, flows
	State    string // a class of entries within the table, as in learned; may be empty
	Entries  uint64
	Capacity uint64 // zero when it has no bound
	Version  uint64 // zero when it has none
}

// Records is the fill of the evidence ring.
type Records struct {
	Made        uint64 // records made
	Overwritten uint64 // records that left the ring
	Dropped     uint64 // records that could not be kept
}

// API is what the gRPC server counts.
type API struct {
	Calls         map[string]uint64 // finished calls and streams by gRPC code
	Panics        uint64            // handlers that panicked
	StreamDropped uint64            // changes that watching clients were too slow for
	Streams       int               // streams open now
}

// Counter is a counter of one part which has no family of its own here; it is exported as
// pncd_<part>_<name>_total, a gauge without _total. Counters of one part and name must have the same label names.
type Counter struct {
	Part   string
	Name   string
	Help   string
	Labels []Label
	Value  uint64
	Gauge  bool // it can fall
}

// Label is one label of a Counter.
type Label struct{ Name, Value string }

// Source gives the snapshot that a scrape exports. It is called once a scrape, from any goroutine, and
// must not block on the packet path.
type Source interface {
	Snapshot() Snapshot
}

// Readiness says whether the node can do its part now, and if not, what keeps it from that.
type Readiness interface {
	Ready() (ready bool, reasons []string)
}
