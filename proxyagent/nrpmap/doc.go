// Package nrpmap holds what a proxy knows of network resource partitions (NRP), so that it can use a
// notification of format 2, which names a partition and no queue pair: the map from an NRP Selector ID, with
// sender and receiver, to a Source QP, and the map from an NRP Selector ID to a VPN context.
//
// Entries come from the configuration and from the API, and are told apart: the API changes only its own, and
// an entry of the configuration takes the place of the API's. The map has a version that steps with each
// change; each entry remembers that of its last one. The number of entries is bounded.
//
// Readers take no lock: writers replace an immutable snapshot. Whether the context that an entry names exists
// is not known here; package translator says so for each notification.
//
// Source: draft-xiao-fann-fast-cnp-with-proxy-05, the mapping relations Source-QP/NRP and VPN-ID/NRP.
package nrpmap
