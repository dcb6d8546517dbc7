// Package bpf holds what the eBPF programs of the dataplane share: C headers, and the script that compiles a program. It
// has no code of its own.
//
//   - frame.h: a frame, in TCX (a socket buffer) or XDP, and how to read of it
//   - ip.h: from the Ethernet header to that of UDP, by the rules of package roce
//   - roce.h: RoCEv2's UDP port and Base Transport Header, by the same rules
//   - generate.sh: what go generate runs, with the flags that all programs have
//
// A program includes them by their names and is compiled by a line in its package,
//
//	//go:generate sh ../../bpf/generate.sh NAME TYPE...
//
// which makes of NAME.c, and of headers beside it, the objects for both byte orders and their Go files (bpf2go), with Go types of the C types named, and writes
// NAME.sum: of which sources the objects are. It needs the Debian packages clang, llvm and libbpf-dev. What it makes is
// committed, so that building needs none of them; package bpftest holds it to its sources. Who changes a header
// compiles all programs: go generate ./dataplane/...
package bpf
