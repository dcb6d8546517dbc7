// Package packet is the codec of IS-IS PDUs (ISO/IEC 10589:2002) and of the TLVs that the P flag needs:
// those of RFC 1195, 5120, 5301, 5303, 5304, 5305, 5308, 5310, 6232, 7794 and 8706.
//
// It loses nothing: a PDU is its header's fields and a list of TLVs, every TLV and sub-TLV is kept with its
// value as it was, also one that nobody here knows, and what was parsed is written back byte for byte. The
// typed forms of TLVs are views that are made on demand.
//
// It is not for behaviour: what a PDU means for an adjacency or a database is decided elsewhere, and so are
// authentication and whether a checksum matters.
//
// Values that Parse functions give refer to the input; who keeps them must not change it.
package packet
