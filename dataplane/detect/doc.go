// Package detect says which flows are congested behind an interface.
//
// Its own source is CE: it counts the packets marked Congestion Experienced (RFC 3168) that leave by the link, whoever
// marked them, with a packet ring of its own; package tcx does so with an eBPF program. For sources that know a
// queue and no flow (package qdisc, reports of switch agents) a Sampler knows the link's top flows. It does not pace,
// resolve or notify, and it leaves the mark in place: the notifier decides what to do with an event.
//
// Source: draft-xiao-fann-fast-cnp-with-proxy-05 for what a congestion node reports; IBTA annex A17 for
// RoCEv2's use of ECN.
package detect
