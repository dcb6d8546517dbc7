package iface

import (
	"net/netip"
	"time"

	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// DefaultHello is HelloInterval (RFC 2328 appendix C.3).
const DefaultHello = 10 * time.Second

// DefaultMaxNeighbors bounds what a network can make this system remember.
const DefaultMaxNeighbors = 256

// Config is one interface. The neighbour part holds version, router ID, options, MTU and the timers.
type Config struct {
	neighbor.Config
	Area     packet.ID
	Instance uint8 // OSPFv3
	// Broadcast says that the network is one; otherwise it is point-to-point.
	Broadcast bool
	// Prefix is the interface's address with the network's length: IPv4 in OSPFv2, link-local in OSPFv3.
	Prefix    netip.Prefix
	Interface uint32        // OSPFv3: interface ID
	Hello     time.Duration // HelloInterval; 0: DefaultHello
	// MaxNeighbors is a bound on the neighbours of a broadcast network, 0: DefaultMaxNeighbors. A hello has
	// room for them all: an MTU that is given bounds them, too. A point-to-point network has one.
	MaxNeighbors int
}

// neighborsFit is how many neighbours there may be.
func (c *Config) neighborsFit() int {
	if c.MTU == 0 {
		return c.MaxNeighbors
	}
	const idLen = 4
	return min(c.MaxNeighbors, max((c.Room()-packet.HelloLen)/idLen, 1))
}

func (c Config) withDefaults() Config {
	if c.Hello == 0 {
		c.Hello = DefaultHello
	}
	if c.Dead == 0 {
		c.Dead = neighbor.DefaultDead
	}
	if c.MaxNeighbors == 0 {
		c.MaxNeighbors = DefaultMaxNeighbors
	}
	if !c.Broadcast {
		c.MaxNeighbors = 1
	}
	return c
}

// mask is the network's as hellos name it. Point-to-point networks have none to check.
func (c *Config) mask() uint32 {
	if c.Version == packet.V3 || !c.Prefix.IsValid() {
		return 0
	}
	return uint32(uint64(0xFFFFFFFF) << (32 - c.Prefix.Bits()))
}

// The groups (RFC 2328 appendix A.1, RFC 5340 appendix A.1).
var (
	v2AllSPFRouters = netip.AddrFrom4([4]byte{224, 0, 0, 5})
	v2AllDRouters   = netip.AddrFrom4([4]byte{224, 0, 0, 6})
	v3AllSPFRouters = netip.AddrFrom16([16]byte{0: 0xFF, 1: 2, 15: 5})
	v3AllDRouters   = netip.AddrFrom16([16]byte{0: 0xFF, 1: 2, 15: 6})
)

// AllSPFRouters is the group of all OSPF routers.
func AllSPFRouters(v packet.Version) netip.Addr {
	if v == packet.V2 {
		return v2AllSPFRouters
	}
	return v3AllSPFRouters
}

// AllDRouters is the group of the Designated Router and its Backup.
func AllDRouters(v packet.Version) netip.Addr {
	if v == packet.V2 {
		return v2AllDRouters
	}
	return v3AllDRouters
}
