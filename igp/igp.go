// Package igp is what the rest of the program knows of IS-IS and OSPF: prefixes to mark with the P flag, and
// what others marked. The protocols are in the packages below.
package igp

import "net/netip"

// Advertisement marks a sender prefix: the proxy for its senders is here.
type Advertisement struct {
	Prefix netip.Prefix
	Proxy  netip.Addr // IPv4 or IPv6, whatever the prefix is
}

// Learned is a prefix as the protocol's domain announces it, with the P flag or without. Prefix, Originator,
// Level and Area identify it: a later one replaces it.
type Learned struct {
	Prefix     netip.Prefix
	Originator string // IS-IS system ID, OSPF router ID
	Level      uint8  // IS-IS level; 0 for OSPF
	Area       uint32 // OSPF area ID; 0 for IS-IS
	Name       string // the originator's host name; empty when it is not known

	Gone  bool       // withdrawn, or its originator is not reachable any more: only the identity is set
	P     bool       // marked with the P flag
	Proxy netip.Addr // with P; invalid when the proxy's address is not said
	Cost  uint32     // of the path to the originator
	// Leaked says that the prefix came from another level or protocol (IS-IS up/down bit or R flag), so
	// that the originator is not who marked it first.
	Leaked bool
}
