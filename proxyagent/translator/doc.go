// Package translator is the proxy's end of the protocol: it turns a notification into one CNP to the
// sender, with the sender's own QP in it, or into a named reason why none was sent.
//
// Translator holds the rules: it is handed datagrams and a time, and hands CNPs as whole IP packets to
// a Sender. Listener and Serve are the edge: they read datagrams from UDP sockets in batches. The package does
// not learn Source QPs (package flowmap does), advertises nothing and does not open the sockets that
// CNPs leave by.
//
// # What is checked, in this order
//
//  1. enabled: the mechanism is on                                -> disabled
//  2. the UDP checksum, when there is one                         -> bad-checksum
//  3. length and fields: those of the port's format               -> malformed
//  4. domain: source address and interface                        -> not-our-domain
//  5. the TTL or hop limit is not below the minimum               -> ttl-too-low
//  6. the flow named is UDP to port 4791                          -> not-rocev2
//  7. format 2: the NRP map has the NRP Selector ID, and this
//     proxy the context that the entry names                      -> nrp-unknown, vpn-unknown
//  8. the sender is within the context's served prefixes          -> not-our-prefix
//  9. the sender is not one of our own addresses there            -> loop
//  10. the Source-QP map has the answer in the context, unless
//     the entry of the NRP map is the answer                      -> map-miss, map-undecided,
//     map-contradicted, map-aged, unsupported-transport
//  11. pacing: the Source QP's window and share of the second     -> paced
//  12. total rate: the proxy's token bucket                       -> rate-limited
//  13. the CNP is built and sent                                  -> send-error, translated
//
// Format 1 stays in the default context. Format 2 names no Destination QP: in a VPN the flow is looked up by its
// addresses and UDP source port. A share is used up only by what passes both 11 and 12.
//
// # One for one
//
// A notification becomes at most one CNP. Receipt numbers count the CNPs that the kernel took: when it
// refuses one of a batch, those after it are numbered and built anew before they are sent, so that a
// capture at the sender shows no number that was never sent.
//
// # Nothing is lost from the count
//
// Each datagram read ends in exactly one outcome. What the kernel drops for a full queue is taken from
// the socket's drop counter (drops.go) and counted as receive-overflow; datagrams with a wrong
// checksum, which a UDP socket never sees, come by a raw socket whose filter lets only those by
// (badsum.go). So the outcomes add up to what reached the port.
//
// Sources: draft-xiao-fann-fast-cnp-with-proxy-05; InfiniBand Architecture Specification volume 1,
// annex A17.9.3, for the CNP; RFC 5082 for the TTL check.
package translator
