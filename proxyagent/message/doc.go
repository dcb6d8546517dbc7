// Package message is the codec of the notifications that a congestion node sends to a proxy in UDP:
// format 1 in full, and enough of format 2 to tell it from a malformed message.
//
// It holds no sockets and no policy: whether a well-formed notification is believed, and what becomes
// of it, is decided by package translator; the outer IP and UDP headers are written by package
// notifier.
//
// Source: draft-xiao-fann-fast-cnp-with-proxy-05 names the fields and their sizes. The order on the
// wire, which the draft leaves open, is ours and lives in layout.go alone. The ports are those that
// RFC 4727, section 6, sets aside for experiments, until the draft's TBD1 and TBD2 are assigned.
package message
