package adjacency

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"pncd/igp/isis/packet"
)

// Padding says which hellos are padded to the circuit's MTU (ISO 10589 clause 8.2.3): that shows two ends
// with different ones.
type Padding uint8

// The choices.
const (
	PadNever Padding = iota
	PadUntilUp
	PadAlways
)

// Defaults of ISO 10589.
const (
	DefaultHello    = 10 * time.Second
	DefaultMultiple = 3
)

// Config is one circuit. Zero durations and counts are the defaults of ISO 10589.
type Config struct {
	System  packet.SystemID
	Areas   []packet.Area
	Levels  uint8  // packet.Level1, packet.Level2 or packet.Level12
	Circuit uint32 // extended local circuit ID; its last octet is the local circuit ID
	// MTU is the longest PDU that the circuit takes, octets.
	MTU      int
	Padding  Padding
	Hello    time.Duration
	Multiple int // holding time as a multiple of Hello
	// IPv4 and IPv6 are the addresses of the circuit; a protocol without one is not spoken. IPv6 ones are
	// link-local (RFC 5308 section 3).
	IPv4, IPv6 []netip.Addr
	// MAC is this system's address on the LAN, and Priority its priority there.
	MAC      [6]byte
	Priority uint8
	// Topologies are announced when they are more than the standard one (RFC 5120).
	Topologies []packet.Topology

	// Overhead is how many octets authentication adds to a hello.
	Overhead int
	// Jitter gives numbers in [0, 1); nil: random ones.
	Jitter func() float64
}

func (c Config) withDefaults() Config {
	if c.Hello == 0 {
		c.Hello = DefaultHello
	}
	if c.Multiple == 0 {
		c.Multiple = DefaultMultiple
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	return c
}

// interval is the time to the next hello: up to a quarter less than configured (ISO 10589 clause 10.1).
func (c *Config) interval() time.Duration {
	return c.Hello - time.Duration(float64(c.Hello)/4*c.Jitter())
}

// minGap keeps hellos that answer hellos from becoming a storm.
const minGap = 50 * time.Millisecond

// soon is when a hello that isn't periodic goes out.
func soon(now, sent time.Time) time.Time {
	if at := sent.Add(minGap); at.After(now) {
		return at
	}
	return now
}

// holding is the time that neighbours keep the adjacency without a hello, seconds.
func (c *Config) holding() uint16 {
	s := (c.Hello*time.Duration(c.Multiple) + time.Second - 1) / time.Second
	return uint16(min(max(s, 1), 0xFFFF))
}

// common are the TLVs that hellos of both kinds have.
func (c *Config) common() packet.TLVs {
	tlvs := packet.TLVs{packet.AreasTLV(c.Areas...)}
	var nlpids []byte
	if len(c.IPv4) > 0 {
		nlpids = append(nlpids, packet.NLPIDIPv4)
	}
	if len(c.IPv6) > 0 {
		nlpids = append(nlpids, packet.NLPIDIPv6)
	}
	tlvs = append(tlvs, packet.TLV{Type: packet.TLVProtocolsSupported, Value: nlpids})
	if len(c.IPv4) > 0 {
		tlvs = append(tlvs, packet.AddressesTLV(c.IPv4...))
	}
	if len(c.IPv6) > 0 {
		tlvs = append(tlvs, packet.AddressesTLV(c.IPv6...))
	}
	if len(c.Topologies) > 0 {
		tlvs = append(tlvs, packet.TopologiesTLV(c.Topologies...))
	}
	return tlvs
}

// pad fills a hello up to the MTU, less what authentication will add.
func (c *Config) pad(h packet.Hello, up bool) packet.Hello {
	if c.Padding == PadNever || c.Padding == PadUntilUp && up {
		return h
	}
	raw, err := h.Append(nil)
	if err == nil {
		h.TLVs = append(h.TLVs, packet.PaddingTLVs(c.MTU-len(raw)-c.Overhead)...)
	}
	return h
}
