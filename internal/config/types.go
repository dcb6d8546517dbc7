package config

import (
	"fmt"
	"net/netip"
	"time"

	"go.yaml.in/yaml/v3"
)

// Addr is an IP address; the zero value means that none is given.
type Addr struct{ netip.Addr }

// UnmarshalYAML implements yaml.Unmarshaler. An empty string is no address.
func (a *Addr) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "" {
		*a = Addr{}
		return nil
	}
	v, err := netip.ParseAddr(n.Value)
	if err != nil || v.Zone() != "" || v.Is4In6() {
		return lineError(n, "%q is not an IPv4 or IPv6 address", n.Value)
	}
	a.Addr = v
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (a Addr) MarshalYAML() (any, error) {
	if !a.IsValid() {
		return "", nil
	}
	return a.String(), nil
}

// NeighborAddr is the address of a neighbour: as Addr, or a link-local one with its interface, as in fe80::1%eth1
// (RFC 4007 section 11).
type NeighborAddr struct{ netip.Addr }

// UnmarshalYAML implements yaml.Unmarshaler. An empty string is no address.
func (a *NeighborAddr) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "" {
		*a = NeighborAddr{}
		return nil
	}
	v, err := netip.ParseAddr(n.Value)
	if err != nil || v.Is4In6() {
		return lineError(n, "%q is not an IPv4 or IPv6 address", n.Value)
	}
	a.Addr = v
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (a NeighborAddr) MarshalYAML() (any, error) { return Addr(a).MarshalYAML() }

// Prefix is an IP prefix without host bits.
type Prefix struct{ netip.Prefix }

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *Prefix) UnmarshalYAML(n *yaml.Node) error {
	v, err := netip.ParsePrefix(n.Value)
	if err != nil || v.Addr().Is4In6() {
		return lineError(n, "%q is not a prefix such as 192.0.2.0/24", n.Value)
	}
	if v != v.Masked() {
		return lineError(n, "%q has host bits set; did you mean %s?", n.Value, v.Masked())
	}
	p.Prefix = v
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (p Prefix) MarshalYAML() (any, error) {
	if !p.IsValid() {
		return "", nil
	}
	return p.String(), nil
}

// InterfaceAddr is the address of an interface with its prefix length, as in 192.0.2.10/31.
type InterfaceAddr struct{ netip.Prefix }

// UnmarshalYAML implements yaml.Unmarshaler.
func (a *InterfaceAddr) UnmarshalYAML(n *yaml.Node) error {
	v, err := netip.ParsePrefix(n.Value)
	if err != nil || v.Addr().Is4In6() {
		return lineError(n, "%q is not an address with its prefix length such as 192.0.2.10/31", n.Value)
	}
	a.Prefix = v
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (a InterfaceAddr) MarshalYAML() (any, error) { return Prefix(a).MarshalYAML() }

// Duration is a time span, written as in 50us, 90s or 5m.
type Duration struct{ time.Duration }

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return lineError(n, "%q is not a duration such as 50us, 90s or 5m", n.Value)
	}
	d.Duration = v
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// lineError is the form that yaml itself uses for type errors, so that the decoder collects it with
// the others instead of stopping at the first.
func lineError(n *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, fmt.Sprintf(format, shortened(args)...))}}
}
