// Package evidence keeps why a CNP was sent and why there was silence: exact counters by outcome, and
// a bounded ring in memory with a record of each decision that this node made.
//
// Whoever decides (the notifier at a congestion node, the translator at a proxy) hands a Record to a
// Recorder and is never made to wait: a record that can't be kept is dropped and counted, a counter is
// never wrong. Each congestion event, and each notification, is counted under exactly one outcome, so
// that the outcomes of a part add up to what it received.
//
// The package does no I/O. Storage that survives a restart, the join of several nodes' records and the
// verdict of `explain` are not here.
//
// The outcomes, their order and their help texts are those of proto/pnc/v1/outcome.proto; the records
// are those of record.proto.
package evidence
