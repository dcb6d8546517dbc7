// Package roce decodes and builds RoCEv2 packets: RDMA over UDP port 4791, over IPv4 and IPv6.
//
// It holds the codecs of the headers that learning needs (BTH, DETH, AETH, RETH, and the connection
// management datagrams on QP 1), the builder of the Congestion Notification Packet (CNP), and the
// invariant CRC (ICRC). It does no I/O, keeps no state and allocates nothing on the packet path.
//
// Source: InfiniBand Architecture Specification volume 1 (IBTA), with annex A17 (RoCEv2).
package roce
