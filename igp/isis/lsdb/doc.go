// Package lsdb is the link state database of one IS-IS level (ISO/IEC 10589:2002 clauses 7.3.15 and 7.3.16):
// which version of each LSP is the newest, how long it lives, and what a purge leaves.
//
// LSPs are kept as they came, byte for byte. The package is pure: the time goes in, and what has to be
// flooded comes out. It doesn't know circuits, checksums on the way in or authentication: who adds an LSP
// has verified it.
package lsdb
