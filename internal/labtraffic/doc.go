// Package labtraffic makes RoCEv2 traffic between two lab hosts and reads the CNPs that come back: it
// replays the RoCEv2 packets of a capture, generates RC and UC flows, and watches an interface.
//
// Packets leave through raw IP sockets, so the host's kernel routes them and writes the Ethernet header;
// everything from the IP header on, ICRC included, is ours. A host may be in a network namespace of its
// own (ip-netns(8)), so that one process plays both ends and knows the truth about every queue pair.
//
// It is for labs and tests: there is no retransmission, no flow control and no memory behind an RDMA
// operation. Packet formats are those of pncd/dataplane/roce.
package labtraffic
