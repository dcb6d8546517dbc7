// Package kernel is the learner's tap in the kernel: an eBPF program on TCX ingress or XDP that counts every RoCEv2
// packet that enters an interface, keeps an entry for each flow, and hands to user space only what the Source-QP
// map learns from. It changes no packet, drops none and sends none. It is not for the detector, which looks at what
// leaves.
//
// Handed up are, by the rules of package flowmap:
//
//   - management datagrams to QP 1, whole (up to 512 octets);
//   - the first packet of each flow (addresses, UDP source port, Destination QP, VLAN);
//   - of a flow that is Watched, as all are at first: each RC and UC request and response but the MIDDLE ones that ask
//     for no ACK, which only carry data: of those each 256th PSN, so that the sequence is known; and UD packets;
//   - of a flow that is Followed, which user space has decided: a packet that may end the answer, by rule 8 of package
//     flowmap: a request that steps by more than 1,024 PSNs ahead (and the READ before it) or 64 back, a
//     response that steps by more than 16,384 ahead or 1,024 back, or 64 back after 100 ms of idling, an MSN that starts
//     again, another transport, another source QP of UD, another interface, source MAC or TTL. All but the last
//     three make the flow Watched again by themselves, and so do another transport and source QP: user space
//     sees what follows, and decides anew. Another UDP source port makes another flow.
//   - of any flow, one packet in Config.Interval, so that a map that has forgotten it learns of it again;
//   - of a flow that is Quiet (user space knows that it can't be decided; DC, RD, XRC and vendors' transports from the
//     start) only that.
//
// With each packet comes what the kernel knew of the flow before it: a map that has seen a part of the packets takes
// the highest PSNs from there, or it would take what it missed for a jump.
//
// All interfaces share one ring buffer, whose records are in the order of their reservations: a question is reserved
// before it is forwarded, and so before its answer can come in, on whatever processor and interface.
//
// What is a RoCEv2 packet is what roce.ParseEthernet, or with Config.Tunnels their ParseThrough, takes of the first 512 octets of the frame, the same as behind
// the packet ring; other than there, IPv6 packets with options headers are seen too. XDP runs before the
// kernel takes a VLAN tag off; where the adapter does that itself (ethtool: rx-vlan-offload), XDP sees no VLAN.
// Where UDP GRO joins packets for forwarding (ethtool: rx-udp-gro-forwarding, off by default), TCX does not see
// each of them.
//
// Memory is bounded: the flows of IPv4 and of IPv6 are in a table each, of Config.MaxFlows and MaxFlows6 places, allocated at Open.
// A flow that finds no place evicts another, which is counted. The tables are arrays that user space has mapped
// (flows.h, table.go): it sees the program's writes, and sets states, without a system call. With Config.Pins it keeps a word
// about the flow in each place, for the next process (pairs.go): a flow never changes its place.
//
// Source: the kernel's Documentation/bpf; TCX since Linux 6.6, XDP as used here since 5.18, the rest since 5.12.
package kernel
