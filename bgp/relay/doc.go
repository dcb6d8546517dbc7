// Package relay owns the TCP connections to the neighbours and stands between them and the BGP speaker
// of this process (GoBGP): each session is a connection with the neighbour and a leg, a connection over
// loopback with the speaker, and what the neighbour sends goes through bgp/guard on its way.
//
// It listens and connects (RFC 4271 section 8.2), puts TCP MD5 (RFC 2385) and the TTL's minimum (RFC
// 5082) into force, and resolves collisions (RFC 4271 section 6.8, RFC 6286 section 2.3). The speaker
// waits for connections and gets only ones on which the neighbour's OPEN has come. Everything else of
// the protocol (timers, capabilities, routes) is the speaker's. A leg carries a TCP MD5 key that only
// this process knows, so that no other process on this host can pretend to be a neighbour.
//
// Messages are kept whole and are never reordered; who reads slowly is waited for, with the buffers of
// TCP and one message in between. GoBGP reads at any rate and queues without bound, so a connection isn't
// read while too many of its UPDATEs are passed and not handled; TCP holds the neighbour back then.
package relay
