package neighbor

import (
	"iter"
	"time"

	"pncd/igp/ospf/packet"
)

// Defaults of RFC 2328 appendix C.3.
const (
	DefaultRetransmit = 5 * time.Second
	DefaultDead       = 40 * time.Second
)

// MaxRequests bounds the link state request list: a neighbour can describe more than it ever sends.
const MaxRequests = 1 << 17

// restartGap is the least time between two exchanges that begin because of an error, so that two ends that
// don't agree don't fill the link.
const restartGap = time.Second

// Database is what the exchange needs of the databases of the interface: its area's, the link's, and the
// domain's where the area takes those LSAs.
type Database interface {
	// Summary iterates over the LSAs to describe, with the age that they have now.
	Summary(now time.Time) iter.Seq[packet.Header]
	// Lookup gives the instance that is there, with the age that it has now.
	Lookup(now time.Time, k packet.Key) (packet.Header, bool)
	// Append writes an LSA as it is to be sent over the interface now, with the transmission delay in its age.
	Append(dst []byte, now time.Time, k packet.Key) ([]byte, bool)
}

// Config is what a neighbour's machine takes from its interface. Zero durations are the defaults of RFC 2328.
type Config struct {
	Version packet.Version
	Router  packet.ID // this system
	// Options are the area's, as in hellos: E is clear in stub areas and NSSAs. Descriptions add the O bit.
	Options uint32
	// MTU is the longest IP packet that the interface takes, octets.
	MTU int
	// MTUIgnore takes descriptions of neighbours with a larger MTU, too.
	MTUIgnore  bool
	Retransmit time.Duration // RxmtInterval
	Dead       time.Duration // RouterDeadInterval
	// Overhead is how many octets authentication adds to a packet.
	Overhead int
	// Sequence is the first DD sequence number; 0: of the clock (RFC 2328 section 10.8).
	Sequence uint32
}

func (c Config) withDefaults() Config {
	if c.Retransmit == 0 {
		c.Retransmit = DefaultRetransmit
	}
	if c.Dead == 0 {
		c.Dead = DefaultDead
	}
	return c
}

// Lengths of the IP headers, octets.
const (
	ipv4HeaderLen = 20
	ipv6HeaderLen = 40
)

// Room is how many octets of body a packet may have.
func (c *Config) Room() int {
	ip := ipv6HeaderLen
	if c.Version == packet.V2 {
		ip = ipv4HeaderLen
	}
	return c.MTU - ip - c.Version.HeaderLen() - c.Overhead
}

// mtu is that of descriptions, which have 16 bits for it.
func (c *Config) mtu() uint16 { return uint16(min(c.MTU, 0xFFFF)) }

// headersFit is how many LSA headers a description may have.
func (c *Config) headersFit() int {
	return max((c.Room()-packet.DescriptionLen(c.Version))/packet.HeaderLen, 1)
}

func (c *Config) keysFit() int { return max(c.Room()/packet.RequestLen, 1) }

// options are those of descriptions: the O bit is set there and nowhere else (RFC 5250 section 4.1).
func (c *Config) options() uint32 {
	if c.Version == packet.V2 {
		return c.Options&^packet.V2OptL | packet.V2OptO
	}
	return c.Options &^ packet.V3OptL
}
