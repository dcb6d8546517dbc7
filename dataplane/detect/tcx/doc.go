// Package tcx is the congestion detector as an eBPF program on TCX egress of a link (Linux 6.6). It drops nothing and
// sends nothing, and but for the virtual queue's marks it changes no packet.
//
// It has two sources of events:
//
//   - ce: RoCEv2 data packets that come marked Congestion Experienced (RFC 3168), by the rules of detect.Counts;
//   - virtual-queue: a byte counter that every packet which leaves by the link fills, and that drains at a rate of its
//     own, normally somewhat less than the link's. By its depth, RoCEv2 data packets that are ECN-capable are
//     marked CE: none below Kmin, all above Kmax, and between the two with a probability that rises to Pmax. The counter
//     stops at twice Kmax, so that it is soon empty when the load has gone. A packet that it would mark and that is
//     marked already is an event of ce where that is on, and else of the virtual queue.
//
// A flow (addresses and Destination QP) is reported once in Config.Gate by each source; an event says how many packets it
// stands for. When the ring buffer is full the packet is counted as lost, and the flow's next event stands for it.
//
// The program stands before the link's queueing discipline: marks that are set there (RED, fq_codel and others, see
// MarksECN in package host) it does not see; the packet ring of package detect does. Nothing is pinned: program, maps and
// attachment go with the process, however that ends.
//
// Source: the kernel's Documentation/bpf; RFC 3168; RFC 8257 section 3 and the DCQCN paper (SIGCOMM 2015) for Kmin, Kmax, Pmax.
package tcx
