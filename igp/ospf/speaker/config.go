// Package speaker is an OSPF router that carries no traffic, OSPFv2 or OSPFv3: it forms adjacencies with routers,
// holds their databases, marks sender prefixes with the P flag, and learns what others marked.
//
// Machine is pure: packets that arrived, changes of links and the time go in; packets to send and what was
// learned come out. Speaker is the shell around it, with sockets, a clock and one goroutine.
package speaker

import (
	"fmt"
	"net/netip"
	"time"

	"pncd/igp/backoff"
	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// Config is one router. Zero durations are the defaults of RFC 2328 appendix C.
type Config struct {
	Version packet.Version
	Router  packet.ID
	Areas   []AreaConfig // those that are not normal; an area of a link that is not named here is
	Links   []LinkConfig
	Carrier marks.Carrier

	// LinkMetric is that of the links in the router LSA of OSPFv2; 0: packet.MaxLinkMetric, so that no path
	// goes through (RFC 6987). In OSPFv3 the R bit is clear besides.
	LinkMetric    uint16
	MaxLSAs       int           // of each database
	MinLSInterval time.Duration // between two instances of an own LSA
	MinLSArrival  time.Duration // and of another's
	Refresh       time.Duration // own LSAs are made again after this
	AckDelay      time.Duration // of delayed acknowledgments
	SPF           backoff.Config
	// NoHelp: neighbours that restart are not helped (RFC 3623 section 3.1: local policy).
	NoHelp bool
	// Reoriginate makes the router an area border's helper: what is marked in one of its areas it marks in
	// the others, as a border router does with prefixes.
	Reoriginate bool

	transit bool // tests: as a router that is routed through
}

// AreaKind is what an area takes.
type AreaKind uint8

// The kinds (RFC 2328 section 3.6, RFC 3101).
const (
	Normal AreaKind = iota
	Stub
	NSSA
)

// String gives the kind's name.
func (k AreaKind) String() string { return [...]string{"normal", "stub", "nssa"}[k] }

// AreaConfig is one area.
type AreaConfig struct {
	ID   packet.ID
	Kind AreaKind
}

// LinkConfig is one interface towards routers.
type LinkConfig struct {
	Name           string // of the interface
	Area           packet.ID
	Instance       uint8 // OSPFv3
	Broadcast      bool
	Hello          time.Duration
	Dead           time.Duration
	Retransmit     time.Duration
	TransmitDelay  uint16 // InfTransDelay, seconds
	MTUIgnore      bool
	MaxNeighbors   int
	Authentication auth.Chain
}

// WithDefaults gives the configuration with the defaults in place of what is zero.
func (c Config) WithDefaults() Config {
	if c.LinkMetric == 0 {
		c.LinkMetric = packet.MaxLinkMetric
	}
	if c.MaxLSAs == 0 {
		c.MaxLSAs = lsdb.DefaultMaxLSAs
	}
	c.SPF = c.SPF.OrDefault()
	return c
}

// withDefaults is the same for a link.
func (x LinkConfig) withDefaults() LinkConfig {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&x.Hello, iface.DefaultHello)
	def(&x.Dead, neighbor.DefaultDead)
	def(&x.Retransmit, neighbor.DefaultRetransmit)
	x.TransmitDelay = max(x.TransmitDelay, 1)
	return x
}

// Check says what is wrong with a configuration, naming the field.
func (c Config) Check() error {
	c = c.WithDefaults()
	name := c.Version.String()
	switch {
	case c.Version != packet.V2 && c.Version != packet.V3:
		return fmt.Errorf("ospf: version %d: must be 2 or 3", c.Version)
	case c.Router == 0:
		return fmt.Errorf("%s: router ID: must not be 0.0.0.0 (RFC 5340 section 4.2.2)", name)
	case c.Version == packet.V3 && c.Carrier.TLVFlags != 0:
		return fmt.Errorf("%s: carrier: the flags octet of the TLV is OSPFv2's", name)
	case min(c.MinLSInterval, c.MinLSArrival, c.Refresh, c.AckDelay) < 0:
		return fmt.Errorf("%s: MinLSInterval %s, MinLSArrival %s, refresh %s, acknowledgment delay %s: must not be negative", name, c.MinLSInterval, c.MinLSArrival, c.Refresh, c.AckDelay)
	case c.MaxLSAs < 0:
		return fmt.Errorf("%s: at most %d LSAs: must not be negative", name, c.MaxLSAs)
	case c.Refresh >= packet.MaxAge*time.Second:
		return fmt.Errorf("%s: refresh %s: must be less than MaxAge, 3600 s (RFC 2328 appendix B)", name, c.Refresh)
	}
	if err := c.SPF.Check(); err != nil {
		return fmt.Errorf("%s: SPF: %w", name, err)
	}
	areas := map[packet.ID]bool{}
	for _, a := range c.Areas {
		switch {
		case areas[a.ID]:
			return fmt.Errorf("%s: area %s is there twice", name, a.ID)
		case a.ID == packet.Backbone && a.Kind != Normal:
			return fmt.Errorf("%s: area %s: the backbone is neither a stub area nor an NSSA (RFC 2328 section 3.6)", name, a.ID)
		}
		areas[a.ID] = true
	}
	links := map[string]bool{}
	for _, x := range c.Links {
		x = x.withDefaults()
		switch {
		case x.Name == "":
			return fmt.Errorf("%s: links: an interface without a name", name)
		case links[x.Name]:
			return fmt.Errorf("%s: link %s is there twice", name, x.Name)
		case c.Version == packet.V2 && x.Instance != 0:
			return fmt.Errorf("%s: link %s: instance IDs are OSPFv3's", name, x.Name)
		case x.Hello < time.Second || x.Hello%time.Second != 0 || x.Hello > 65535*time.Second:
			return fmt.Errorf("%s: link %s: hello interval %s: must be whole seconds, 1 to 65535 (RFC 2328 section A.3.2)", name, x.Name, x.Hello)
		case x.Dead <= x.Hello || x.Dead%time.Second != 0 || x.Dead > 65535*time.Second:
			return fmt.Errorf("%s: link %s: dead interval %s: must be whole seconds, more than the hello interval, at most 65535", name, x.Name, x.Dead)
		case x.Retransmit < 0:
			return fmt.Errorf("%s: link %s: retransmit interval %s: must not be negative", name, x.Name, x.Retransmit)
		case x.TransmitDelay >= packet.MaxAge:
			return fmt.Errorf("%s: link %s: transmit delay %d s: must be less than MaxAge, 3600 s (RFC 2328 section C.3)", name, x.Name, x.TransmitDelay)
		case x.MaxNeighbors < 0:
			return fmt.Errorf("%s: link %s: at most %d neighbours: must not be negative", name, x.Name, x.MaxNeighbors)
		}
		if err := x.Authentication.Check(c.Version); err != nil {
			return fmt.Errorf("%s: link %s: %w", name, x.Name, err)
		}
		links[x.Name] = true
	}
	return nil
}

// kind is that of an area.
func (c Config) kind(id packet.ID) AreaKind {
	for _, a := range c.Areas {
		if a.ID == id {
			return a.Kind
		}
	}
	return Normal
}

// Link is the state of a link's interface.
type Link struct {
	Up    bool
	Index int // of the interface: one that was made anew has another
	MTU   int // of the interface, octets
	// Address is the interface's with its network's length: IPv4 in OSPFv2, link-local in OSPFv3. Without one
	// the link can't be used.
	Address netip.Prefix
}

// usable reports whether packets of a version can be sent and received.
func (l Link) usable(v packet.Version) bool {
	return l.Up && l.Address.IsValid() && l.Address.Addr().Is4() == (v == packet.V2)
}

// Datagram is an OSPF packet on a link, without its IP header.
type Datagram struct {
	Link                string
	Source, Destination netip.Addr
	Payload             []byte
}
