// Package emit sends whole IP packets as they are: CNPs and notifications, with a source address that need
// not be this host's.
//
// It hands batches to the kernel by sendmmsg on raw sockets (IP_HDRINCL, IPV6_HDRINCL). It builds no packet
// and touches none: what the ICRC of a CNP covers has been chosen by then, the IPv4 identification too.
// Routing, neighbour resolution and queueing are the kernel's.
//
// Source: raw(7), ipv6(7), sendmmsg(2).
package emit
