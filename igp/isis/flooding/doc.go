// Package flooding is the update process of one IS-IS level (ISO/IEC 10589:2002 clause 7.3): what is sent on
// which circuit so that all databases become the same, and what this system says of itself.
//
// It is a pure machine: PDUs that arrived and the time go in, PDUs to send and the time of the next look come
// out. Checksums of received LSPs are verified here; authentication and adjacencies are not: the caller hands
// in only PDUs that passed, from circuits that are up.
package flooding
