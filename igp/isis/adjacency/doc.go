// Package adjacency forms adjacencies with IS-IS neighbours: on point-to-point circuits (ISO/IEC 10589:2002
// clause 8.2) with the three-way handshake (RFC 5303), and on LANs (clause 8.4).
//
// It is pure: hellos that arrived and the time go in, hellos to send and what changed come out. Hellos have
// passed authentication before. This system helps neighbours through a restart (RFC 8706), and never becomes
// a LAN's designated system: there is no pseudonode here.
package adjacency
