// Package engine puts an interface of ours around GoBGP (github.com/osrg/gobgp/v3): nothing else in
// this module imports it, so that another version is a change of one folder.
//
// GoBGP is held to a small part of what it can do. Its routing table holds only what this node
// announces: an import policy keeps everything that peers send out of it, and an export policy lets
// only local paths out, and only to the peers that are to get them. Either alone makes the node a
// leaf. What peers send is read from the adj-RIB-in, path by path with its path identifier, and goes
// to the user of this package as events.
//
// The connections with the peers are package relay's. GoBGP listens on loopback only, and sees messages
// that passed package guard.
//
// It is not for decisions: which path is best, what is believed and what is announced is package
// bgp's business. There is no VRF and no zebra. GoBGP's own gRPC
// API is on a unix socket when asked for, and lets nobody change anything.
//
// Defined by RFC 4271, 4724 (helper), 4760, 7911, 8950 and 9494.
package engine
