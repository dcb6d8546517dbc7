// Package iface is OSPF's interface state machine (RFC 2328 section 9, RFC 5340 section 4.2.1) on
// point-to-point and broadcast networks, for a router whose priority is 0: it finds neighbours by hellos,
// computes who is Designated Router and Backup, and says with whom an adjacency is wanted.
//
// It is pure: packets that passed authentication and the time go in, packets to send and what changed come
// out. This system never becomes Designated Router or Backup. Virtual links are ignored.
package iface
