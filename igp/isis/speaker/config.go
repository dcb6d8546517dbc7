// Package speaker is an IS-IS system that carries no traffic: it forms adjacencies with routers, holds their
// database, marks sender prefixes with the P flag, and learns what others marked.
//
// Machine is pure: frames that arrived, changes of links and the time go in; frames to send and what was
// learned come out. Speaker is the shell around it, with sockets, a clock and one goroutine.
package speaker

import (
	"fmt"
	"net/netip"
	"time"

	"pncd/igp/backoff"
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/auth"
	"pncd/igp/isis/flooding"
	"pncd/igp/isis/lsdb"
	"pncd/igp/isis/packet"
)

// Defaults of a leaf. A prefix with a metric above packet.MaxMetric is announced and never routed (RFC 5305
// section 4), and a link with one below 2^24-1 counts in SPF and is never chosen.
const (
	DefaultPrefixMetric = packet.MaxMetric + 1
	DefaultLinkMetric   = packet.MaxLinkMetric - 1
	DefaultLSPSize      = 1492
)

// Config is one system. Zero durations are the defaults of ISO 10589.
type Config struct {
	System   packet.SystemID
	Areas    []packet.Area
	Levels   uint8  // packet.Level1, packet.Level2 or packet.Level12
	Hostname string // RFC 5301; empty: none
	Circuits []CircuitConfig

	// Flag is the P flag's bit of the Prefix Attribute Flags.
	Flag           uint8
	LinkMetric     uint32
	PrefixMetric   uint32
	LSPSize        int  // octets
	MultiTopology  bool // IPv6 in a topology of its own (RFC 5120)
	MaxLSPs        int
	LSPLifetime    time.Duration
	Refresh        time.Duration
	Generation     backoff.Config // of the versions of each own LSP
	SPF            backoff.Config // of the runs of SPF at a level
	Retransmit     time.Duration
	PSNP, CSNP     time.Duration
	Authentication map[uint8]auth.Chain // LSPs and SNPs, by level

	Jitter func() float64 // numbers in [0, 1); nil: random ones

	transit bool // tests: without overload, as a router
}

// CircuitConfig is one interface towards routers.
type CircuitConfig struct {
	Name           string // of the interface
	LAN            bool
	Levels         uint8 // of the system's; 0: all of them
	Padding        adjacency.Padding
	Hello          time.Duration
	Multiple       int
	Priority       uint8      // LAN
	Authentication auth.Chain // hellos
}

// WithDefaults gives the configuration with the defaults in place of what is zero.
func (c Config) WithDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.LSPLifetime, flooding.DefaultLSPLifetime)
	def(&c.Refresh, flooding.DefaultRefresh)
	def(&c.Retransmit, flooding.DefaultRetransmit)
	def(&c.PSNP, flooding.DefaultPSNP)
	def(&c.CSNP, flooding.DefaultCSNP)
	c.Generation, c.SPF = c.Generation.OrDefault(), c.SPF.OrDefault()
	if c.MaxLSPs == 0 {
		c.MaxLSPs = lsdb.DefaultMaxLSPs
	}
	if c.LinkMetric == 0 {
		c.LinkMetric = DefaultLinkMetric
	}
	if c.PrefixMetric == 0 {
		c.PrefixMetric = DefaultPrefixMetric
	}
	if c.LSPSize == 0 {
		c.LSPSize = DefaultLSPSize
	}
	return c
}

// Check says what is wrong with a configuration, naming the field.
func (c Config) Check() error {
	c = c.WithDefaults()
	switch {
	case c.System == packet.SystemID{}:
		return fmt.Errorf("isis: net: the system ID must not be zero")
	case len(c.Areas) < 1 || len(c.Areas) > 3:
		return fmt.Errorf("isis: areas: %d, must be 1 to 3 (ISO 10589 clause 7.1.5)", len(c.Areas))
	case c.Levels == 0 || c.Levels > packet.Level12:
		return fmt.Errorf("isis: level: must be level-1, level-2 or level-1-2")
	case c.PrefixMetric <= packet.MaxMetric:
		return fmt.Errorf("isis: prefix metric %#x: must be above %#x, or routers send traffic here (RFC 5305 section 4)", c.PrefixMetric, uint32(packet.MaxMetric))
	case c.LinkMetric >= packet.MaxLinkMetric:
		return fmt.Errorf("isis: link metric %#x: must be below %#x, or this system is not reachable (RFC 5305 section 3)", c.LinkMetric, packet.MaxLinkMetric)
	case c.LSPSize < 256 || c.LSPSize > 9000:
		return fmt.Errorf("isis: LSP size %d: must be 256 to 9000 octets", c.LSPSize)
	case c.Refresh >= c.LSPLifetime:
		return fmt.Errorf("isis: refresh %s: must be less than the LSP lifetime of %s", c.Refresh, c.LSPLifetime)
	case c.LSPLifetime > 65535*time.Second:
		return fmt.Errorf("isis: LSP lifetime %s: at most 65535 s", c.LSPLifetime)
	}
	if err := c.Generation.Check(); err != nil {
		return fmt.Errorf("isis: generation: %w", err)
	}
	if err := c.SPF.Check(); err != nil {
		return fmt.Errorf("isis: SPF: %w", err)
	}
	seen := map[string]bool{}
	for _, x := range c.Circuits {
		switch {
		case x.Name == "":
			return fmt.Errorf("isis: circuits: an interface without a name")
		case seen[x.Name]:
			return fmt.Errorf("isis: circuits: %s is there twice", x.Name)
		case x.Levels&^c.Levels != 0:
			return fmt.Errorf("isis: circuit %s: its level is not one of the system's", x.Name)
		case x.Priority > 127:
			return fmt.Errorf("isis: circuit %s: priority %d: at most 127", x.Name, x.Priority)
		}
		seen[x.Name] = true
	}
	return nil
}

// Link is the state of a circuit's interface.
type Link struct {
	Up    bool
	Index int // of the interface: one that was made anew has another
	MAC   [6]byte
	MTU   int          // of the interface, octets
	IPv4  []netip.Addr // addresses on it
	IPv6  []netip.Addr // link-local ones
}

// llcLen is the length of the LLC header that a frame spends of the MTU.
const llcLen = 3

// Frame is a PDU on a circuit.
type Frame struct {
	Circuit string
	MAC     [6]byte // group that it goes to, or address that it came from
	PDU     []byte
}

// The groups (ISO 10589 clause 8.4.8; RFC 5309 section 2 for point-to-point).
var (
	AllL1ISs = [6]byte{0x01, 0x80, 0xC2, 0x00, 0x00, 0x14}
	AllL2ISs = [6]byte{0x01, 0x80, 0xC2, 0x00, 0x00, 0x15}
	AllISs   = [6]byte{0x09, 0x00, 0x2B, 0x00, 0x00, 0x05}
)
