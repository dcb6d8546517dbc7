// Package bgp is the BGP part of a node: it keeps sessions with the configured neighbours, learns
// routes and the Proxy Node Capability (PNC) on them for package pnc, and announces the PNC for the
// sender prefixes that this node serves.
//
// # A leaf
//
// The speaker is a leaf: what it learned from a neighbour is never announced to another, no next hop
// ever points at it, and it never attracts traffic. Announcements exist only to carry the PNC, so a
// neighbour to which NHC isn't sent gets no announcement at all.
//
// # What is announced
//
// Each prefix has a mode (see Mode). In the modes that follow a router's own path (inline, path) the
// path's attributes are copied octet by octet as a route reflector would pass them on:
//
//   - next hop, AS path, origin, MED, LOCAL_PREF, communities and unknown attributes stay;
//   - ORIGINATOR_ID names the router, so that the router itself never accepts the copy, and our
//     identifier goes in front of CLUSTER_LIST (RFC 4456 section 8), so that a reflector prefers the
//     router's own path to the copy at the last step (section 9) and we never learn the copy back;
//   - the NHC attribute gets the PNC. What another speaker put into NHC for the same next hop stays
//     beside it. The Partial bit is set: NHC was attached to a route that somebody else originated
//     (RFC 4271 section 5).
//
// To IBGP neighbours every announcement goes out as a reflector's would, `originate` ones with our own
// ORIGINATOR_ID: GoBGP has no other way to let ORIGINATOR_ID pass.
//
// With the mechanism off (SetOriginating(false)) `inline` prefixes go on without our NHC, because a
// neighbour may know the prefix from nobody else; `originate` and `path` are withdrawn.
//
// # What it is not for
//
// It doesn't reflect routes, doesn't install any, and doesn't resolve proxies (package pnc does).
// EBGP is denied in both directions unless a neighbour's configuration says otherwise (RFC 8212).
//
// Defined by RFC 4271, 4456, 4724, 4760, 5082, 7606, 7911, 8212, draft-ietf-idr-nhc and
// draft-xiao-fann-fast-cnp-with-proxy-05.
package bgp
