// Package packet is the codec of OSPFv2 (RFC 2328, 5250, 5613, 7684, 9084, 9792) and OSPFv3 (RFC 5340, 8362,
// 9084, 9792) packets and link state advertisements, as far as the P flag needs them.
//
// It loses nothing: an LSA is kept as the octets that arrived, what this package does not know stays in
// them, and what was parsed is written back byte for byte. The typed forms of LSAs and TLVs are views that
// are made on demand.
//
// It is not for behaviour: what a packet means for a neighbour or a database is decided elsewhere, and so is
// authentication. Whether an LSA's checksum is right is a question that the caller asks.
//
// Values that Parse functions give refer to the input; who keeps them must not change it.
package packet
