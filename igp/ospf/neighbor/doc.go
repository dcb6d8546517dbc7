// Package neighbor is OSPF's neighbour state machine (RFC 2328 section 10, RFC 5340 section 4.2) for OSPFv2 and
// OSPFv3: from the first hello over the exchange of databases to the full adjacency, with its loss. It helps
// a neighbour through a graceful restart (RFC 3623, RFC 5187).
//
// It is pure: packets that arrived and the time go in, packets to send and what changed come out. Packets
// have passed authentication and the checks of the interface before. Hellos are read, and the wish for an
// adjacency is decided, by the interface; link state updates and acknowledgments are the flooding machine's.
package neighbor
