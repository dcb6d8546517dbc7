package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
	"pncd/pnc"
)

// ErrConfig is wrapped by every error about a configuration.
var ErrConfig = errors.New("bgp configuration")

func wrong(field, rule string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrConfig, field, fmt.Sprintf(rule, args...))
}

// Validate says everything that is wrong with a configuration, each with its field and rule.
func (c Config) Validate() error {
	_, err := c.complete()
	return err
}

// complete fills in the defaults and checks the result.
func (c Config) complete() (Config, error) {
	if c.ListenPort == 0 {
		c.ListenPort = DefaultPort
	}
	if len(c.ListenAddresses) == 0 {
		c.ListenAddresses = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	if c.PNCCode == 0 {
		c.PNCCode = nhc.DefaultPNCCode
	}
	c.Restart.complete()
	c.Neighbors = slices.Clone(c.Neighbors)
	for i := range c.Neighbors {
		c.Neighbors[i].complete(c)
	}
	c.Ranges = slices.Clone(c.Ranges)
	for i := range c.Ranges {
		c.Ranges[i].complete(c)
	}
	c.Originate = slices.Clone(c.Originate)
	return c, c.check()
}

func (n *NeighborConfig) complete(c Config) {
	n.Address = n.Address.Unmap()
	if n.Port == 0 {
		n.Port = DefaultPort
	}
	if n.LocalAS == 0 {
		n.LocalAS = c.AS
	}
	if n.HoldTime == 0 {
		n.HoldTime = DefaultHoldTime
	}
	if n.Keepalive == 0 {
		n.Keepalive = n.HoldTime / 3
	}
	if n.ConnectRetry == 0 {
		n.ConnectRetry = DefaultConnectRetry
	}
	link := n.Address.Is6() && n.Address.IsLinkLocalUnicast()
	if link && n.LocalAddress.IsLinkLocalUnicast() && n.LocalAddress.Zone() == "" {
		n.LocalAddress = n.LocalAddress.WithZone(n.Address.Zone())
	}
	if !link && !n.LocalAddress.IsValid() && c.LocalAddress.IsValid() && c.LocalAddress.Is4() == n.Address.Is4() {
		n.LocalAddress = c.LocalAddress
	}
	if len(n.Families) == 0 && n.Address.IsValid() {
		n.Families = []Family{engine.FamilyOf(n.Address)}
	}
	if n.SendNHC == nil {
		ibgp := !n.ebgp()
		n.SendNHC = &ibgp
	}
}

func (n *NeighborConfig) ebgp() bool { return n.PeerAS != n.LocalAS }

func (c *Config) check() error {
	var errs []error
	bad := func(field, rule string, args ...any) { errs = append(errs, wrong(field, rule, args...)) }
	if !c.RouterID.Is4() || c.RouterID.IsUnspecified() {
		bad("router ID", "%q must be an IPv4 address other than 0.0.0.0 (RFC 4271 section 4.2)", c.RouterID)
	}
	if c.AS == 0 {
		bad("AS", "is required (RFC 7607: not 0)")
	}
	if c.ListenPort < -1 || c.ListenPort > 65535 {
		bad("listen port", "%d must be -1 or from 1 to 65535", c.ListenPort)
	}
	if c.PNCCode <= nhc.CodeBGPID {
		bad("PNC code", "%d is assigned to another characteristic or reserved", c.PNCCode)
	}
	errs = append(errs, checkBelieved("BGP", c.AcceptProxies, c.AcceptFrom)...)
	errs = append(errs, c.Restart.check()...)
	seen := map[netip.Addr]bool{}
	links := map[netip.Addr]*NeighborConfig{}
	for i := range c.Neighbors {
		n := &c.Neighbors[i]
		errs = append(errs, n.check(c)...)
		errs = append(errs, n.checkPolicy()...)
		if seen[n.Address] {
			bad("neighbor "+n.Address.String(), "is configured twice")
		}
		seen[n.Address] = true
		if n.Address.Zone() == "" {
			continue
		}
		// The kernel has keys and the filter of the listener by address, whatever the interface.
		bare := n.Address.WithZone("")
		if o := links[bare]; o != nil && (o.Password != n.Password || o.TTLMin != n.TTLMin) {
			bad("neighbor "+n.Address.String(), "password and TTL security must be those of %s, which has the same address on another interface", o.Address)
		}
		links[bare] = n
	}
	errs = append(errs, c.checkRanges()...)
	errs = append(errs, c.checkStations()...)
	errs = append(errs, c.checkContexts()...)
	places := map[PrefixKey]bool{}
	for _, o := range c.Originate {
		if err := c.checkOriginate(o); err != nil {
			errs = append(errs, err)
		}
		if places[o.key()] {
			bad("originate "+o.key().String(), "is configured twice")
		}
		places[o.key()] = true
	}
	return errors.Join(errs...)
}

// mostStatistics is the longest interval between statistics: GoBGP has 16 bits of seconds.
const mostStatistics = (1<<16 - 1) * time.Second

func (c *Config) checkStations() (errs []error) {
	seen := map[netip.AddrPort]bool{}
	for _, s := range c.Stations {
		bad := func(rule string, args ...any) {
			errs = append(errs, wrong("BMP station "+s.Address.String(), rule, args...))
		}
		if a := s.Address.Addr(); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || s.Address.Port() == 0 {
			bad("must be a unicast address with a port")
		}
		if s.Statistics < 0 || s.Statistics > mostStatistics || s.Statistics%time.Second != 0 {
			bad("statistics %s must be whole seconds, at most %s", s.Statistics, mostStatistics)
		}
		if seen[s.Address] {
			bad("is configured twice")
		}
		seen[s.Address] = true
	}
	return errs
}

func (n *NeighborConfig) check(c *Config) (errs []error) {
	bad := func(rule string, args ...any) {
		errs = append(errs, wrong("neighbor "+n.Address.String(), rule, args...))
	}
	switch a := n.Address; {
	case !a.IsValid(), a.WithZone("").IsUnspecified(), a.IsMulticast():
		bad("address must be a unicast address")
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		bad("address is link-local, so it needs its interface, as in %s%%eth1", a)
	case a.Zone() != "" && !a.IsLinkLocalUnicast():
		bad("only a link-local address has an interface")
	case a.Zone() != "" && n.EBGPMultihop != 0:
		bad("is on the link, so EBGP multihop has no use")
	case slices.Contains(c.ListenAddresses, a.WithZone("")), a == c.LocalAddress, a == n.LocalAddress:
		bad("address is our own")
	}
	if n.PeerAS == 0 {
		bad("AS is required")
	}
	if n.LocalAddress.IsValid() && n.LocalAddress.Is4() != n.Address.Is4() {
		bad("local address %s is of another family", n.LocalAddress)
	}
	if l := n.LocalAddress; l.Is6() && l.IsLinkLocalUnicast() && l.Zone() != n.Address.Zone() {
		bad("local address %s is not on the neighbour's interface", l)
	}
	if len(n.Password) > 80 {
		bad("password has %d octets, TCP MD5 takes at most 80", len(n.Password))
	}
	if n.HoldTime < 3*time.Second || n.HoldTime > 65535*time.Second {
		bad("hold time %s must be from 3 s to 65535 s (RFC 4271 section 4.2)", n.HoldTime)
	}
	if n.Keepalive < time.Second || n.Keepalive >= n.HoldTime {
		bad("keepalive %s must be at least 1 s and less than the hold time %s", n.Keepalive, n.HoldTime)
	}
	if n.ConnectRetry < time.Second {
		bad("connect retry %s must be at least 1 s", n.ConnectRetry)
	}
	if n.TTLMin != 0 && n.EBGPMultihop != 0 {
		bad("TTL security and EBGP multihop exclude each other")
	}
	if n.EBGPMultihop != 0 && !n.ebgp() {
		bad("EBGP multihop is for EBGP; an IBGP session takes any number of hops")
	}
	if n.Passive && c.ListenPort == -1 {
		bad("is passive, and the listen port is -1: the session could never come up")
	}
	if n.Passive && !slices.ContainsFunc(c.ListenAddresses, func(a netip.Addr) bool { return a.Is4() == n.Address.Is4() }) {
		bad("is passive, and no listen address is of its family")
	}
	switch d := n.LongLivedRestart; {
	case d < 0 || d > maxLongLived:
		bad("long-lived restart %s must be from 0 to %s (RFC 9494 section 3.1)", d, maxLongLived)
	case d > 0 && !n.GracefulRestart:
		bad("long-lived restart needs graceful restart (RFC 9494 section 3.1)")
	}
	for i, f := range n.Families {
		if f < IPv4Unicast || f > IPv6VPN || slices.Contains(n.Families[:i], f) {
			bad("family %d must be ipv4-unicast, ipv6-unicast, vpnv4-unicast or vpnv6-unicast, once each", f)
		}
	}
	return errs
}

func (c *Config) checkOriginate(o OriginateConfig) error {
	at := "originate " + o.key().String()
	switch nh := o.NextHop.Unmap(); {
	case !o.Prefix.IsValid(), o.Prefix != o.Prefix.Masked(), o.Prefix.Addr().Is4In6():
		return wrong(at, "must be a prefix without host bits")
	case o.Prefix.Bits() == 0:
		return wrong(at, "a default route must not be announced with PNC")
	case o.Prefix.Addr().IsMulticast(), o.Prefix.Addr().IsLoopback(), o.Prefix.Addr().IsLinkLocalUnicast():
		return wrong(at, "must be a prefix of unicast addresses")
	case int(o.Mode) >= len(modeNames):
		return wrong(at, "mode %d is unknown", o.Mode)
	case pnc.CheckProxy(o.Proxy) != nil:
		return wrong(at, "%v", pnc.CheckProxy(o.Proxy))
	case o.Mode == ModeOriginate && !nh.IsValid():
		return wrong(at, "next hop: mode originate needs one: where traffic to the prefix goes, normally the router's loopback")
	case o.Mode == ModeOriginate && (nh.IsUnspecified() || nh.IsMulticast() || nh.IsLinkLocalUnicast() || nh.IsLoopback() || nh.Zone() != ""):
		return wrong(at, "next hop %s must be a unicast address that means something beyond its link and host", o.NextHop)
	case o.Mode == ModeOriginate && o.Context == "" && o.Prefix.Addr().Is6() && nh.Is4():
		return wrong(at, "next hop %s is IPv4 and the prefix is IPv6", o.NextHop)
	case o.Mode != ModeOriginate && nh.IsValid():
		return wrong(at, "mode %s takes the router's next hop, so it must not have one", o.Mode)
	case o.Mode == ModeOriginate && o.From.IsValid():
		return wrong(at, "mode originate follows no router, so it must not name one")
	case o.From.IsValid() && c.neighbor(o.From) == nil:
		return wrong(at, "%s is no configured neighbour", o.From)
	case o.Context != "":
		return c.checkInContext(o)
	}
	return nil
}

func (c *Config) neighbor(a netip.Addr) *NeighborConfig {
	for i := range c.Neighbors {
		if c.Neighbors[i].Address == a {
			return &c.Neighbors[i]
		}
	}
	return nil
}

// peer is the neighbour as the engine wants it.
func (c *Config) peer(n NeighborConfig) engine.Peer {
	return engine.Peer{
		Address: n.Address, Port: n.Port, PeerAS: n.PeerAS, LocalAS: n.LocalAS, Passive: n.Passive, Dynamic: n.dynamic,
		Password: n.Password, TTLMin: n.TTLMin, Multihop: n.EBGPMultihop, HoldTime: n.HoldTime,
		Keepalive: n.Keepalive, ConnectRetry: n.ConnectRetry, LocalAddress: n.LocalAddress,
		Families: n.Families, AddPath: n.AddPath, Restart: n.GracefulRestart, LongLived: n.LongLivedRestart > 0, Export: *n.SendNHC, ExportPrefixes: n.ExportPrefixes,
		MaxPrefixes: n.MaxPrefixes, Shutdown: n.Shutdown,
		Description: n.Description,
	}
}

// info is the neighbour as the RIB wants it.
func (c *Config) info(n NeighborConfig) peerInfo {
	return peerInfo{addr: n.Address, name: n.Address.String(), ebgp: n.ebgp(), accept: !n.ebgp() || n.AcceptEBGP || n.Border,
		ownAS: int(n.AllowOwnAS), in: n.inbound(), helped: n.GracefulRestart, longLived: n.LongLivedRestart}
}
