// Package translate is the translator in the kernel: an XDP program that turns notifications into CNPs,
// from answers that user space gave it, without user space. It decides what it can decide as package
// proxyagent/translator does, which is the reference, and lets everything else pass untouched, so that it comes to that one by its socket.
//
// Decided here are, in the reference's order: not-our-domain, ttl-too-low, not-rocev2, not-our-prefix, paced, rate-limited
// and translated. To user space go, counted by Reason:
//
//   - notifications while the policy is not in force, and once nobody has looked after the answers for a second;
//   - a UDP checksum that is wrong or, over IPv6, missing;
//   - another length than those of the port's format, and addresses that no flow has;
//   - flows without an answer here, or with one that is too old;
//   - senders for whom the kernel has no route as for a forwarded packet, no neighbour, or a way by another interface
//     than those attached: without forwarding on the loopback interface (net.ipv4.ip_forward, net.ipv6.conf.all.forwarding) that
//     is all of them;
//   - what is to be recorded while the ring buffer is full, unless records are a sample;
//
// and uncounted, as they are not told from other traffic: VLAN tags, IPv4 options, IPv6 extension headers, fragments, frames
// to another MAC address.
//
// # One for one
//
// A notification is decided at one place: the program passes a packet on only while it has used nothing up and changed
// nothing. The limits of a Source QP and in total, and the receipt numbers, are the program's also for the CNPs that user space
// sends meanwhile: it takes them by Take. A receipt number whose CNP user space then couldn't send is not used again.
//
// # Answers
//
// For format 1 an answer is by addresses and Destination QP. For format 2 it is by what the notification names: addresses, UDP source port and
// NRP Selector ID. Which entry of the NRP map, which VPN and which flow that means, and whether its sender is one that the VPN
// serves, is decided by who puts the answer, as is when one of those changes and it has to go; the program never looks from one VPN into
// another. A VPN that has a routing table in this network namespace may have answers, and its CNPs go by that table alone.
//
// An answer holds the ICRC and sums of its CNP, as package roce builds it, to which the receipt number is added. It is
// read and written under a lock and names its flow, so that a look-up can't meet with another one's. Remove and Put are in
// force when they return.
//
// Nothing is pinned: when the process ends, however that is, the program leaves its interfaces.
//
// Source: the draft as of package translator; the kernel's Documentation/bpf. Linux 5.18 or later.
package translate
