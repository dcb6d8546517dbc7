// Package message is the codec of the notifications that a congestion node sends to a proxy in UDP, each
// format to a port of its own: format 1 names the flow with its Destination QP, format 2 with the network
// resource partition (NRP) that it is in.
//
// It holds no sockets and no policy: whether a well-formed notification is believed, and what becomes
// of it, is decided by package translator; the outer IP and UDP headers are written by package
// notifier.
//
// Source: draft-xiao-fann-fast-cnp-with-proxy-05 names the fields and their sizes. The order on the
// wire, which the draft leaves open, is ours and lives in layout.go alone. The ports are those that
// RFC 4727, section 6, sets aside for experiments, until the draft's TBD1 and TBD2 are assigned.
package message
