// Package flowmap holds the Source-QP map of a proxy: for (sender, receiver, Destination QP) of a
// RoCEv2 flow it answers the Source QP, the sender's own queue pair, which a CNP must name.
//
// The map learns from the traffic that a tap shows it: connection management datagrams, which are
// exact; votes of responses for the requests whose packet sequence number they carry; and the DETH of
// UD packets. It is a pure state machine: it does no I/O, starts no goroutine, and takes every time
// from its caller. It never guesses: what is not decided answers Undecided.
//
// A tap may show all packets, or select: then it shows of a pair that is decided only what may end the answer, tells with
// each packet how far the flow was (Observation.Before), and is told by Due which flows are decided. What such a
// tap has skipped is no evidence for or against anything.
//
// It is not for choosing a proxy (package pnc) nor for sending CNPs (package translator).
//
// Source: the draft's "Source QP" state (draft-xiao-fann-fast-cnp-with-proxy-05), which leaves learning
// to the implementation; the packet formats are those of the InfiniBand Architecture Specification
// volume 1 (chapters 9 and 12) with annex A17 (RoCEv2). The rules of the votes are numbered in rules.go.
package flowmap
