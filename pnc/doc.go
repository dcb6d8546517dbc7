// Package pnc holds the Proxy Node Capability (PNC) domain: which proxy serves which sender prefix,
// as every routing source tells it, and the answer to "where does a notification about this sender
// go".
//
// It is a route table over all sources (static, BGP, IS-IS, OSPF), one per context (VPN), with the
// rules of the Internet-Draft "Fast Congestion Notification Packet (CNP) with Proxy",
// draft-xiao-fann-fast-cnp-with-proxy-05, for choosing a proxy. Writers hand in batches of updates;
// readers take an immutable Snapshot through an atomic pointer and resolve without a lock and
// without an allocation.
//
// It is not for talking to anything: no sockets, no kernel, no clock. Time is passed in, routes come
// from the packages that speak the protocols, and whether a proxy's address can be reached is told
// to it (SetReachability). It imports nothing else of this module.
//
// # How a proxy is chosen
//
// The first rule that applies gives the answer, and so the reason when several would do:
//
//  1. The context is not configured: ReasonContextUnknown.
//  2. A static route with Override covers the sender: learned routes longer than it are hidden, the
//     longest static route wins. Otherwise the longest match over all unicast routes of the context,
//     with PNC or without, wins. No match: ReasonNoRoute.
//  3. The winning prefix is 0.0.0.0/0 or ::/0 and default routes are not allowed:
//     ReasonDefaultRouteRefused, whether or not it carries a PNC. A default route that is refused
//     hides nothing, also with Override.
//  4. No route of the winning prefix carries a believed PNC: ReasonNoProxy. A shorter prefix with a
//     PNC is not consulted: a more specific route without PNC says that there is no proxy.
//  5. The believed ones are ranked: by source (Config.Preference), then by the protocol's own best
//     (BGP: best paths before other valid ones; others: the lower metric), then by the lowest proxy
//     address (IPv4 before IPv6), then by peer, route distinguisher and path identifier, so that the order is total.
//  6. The first whose proxy has a route and is not this node is the answer: ReasonFound. With
//     ShareHash, the usable ones equal to it in source and in bestness or metric share the flows by
//     rendezvous hashing.
//  7. None is usable: the reason of the highest ranked one, ReasonSelfProxy or
//     ReasonProxyUnreachable, because that is the one which the operator expected to be used.
package pnc
