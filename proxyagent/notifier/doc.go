// Package notifier is the congestion node's end of the protocol: it turns a congestion event into a
// notification to the proxy that serves the sender, or into a named reason why none was sent.
//
// It does not detect congestion, does not know how routes are learned and opens no sockets: events
// come from a detector, proxies from a Resolver, and packets leave by a Sender as whole IP packets,
// because the UDP source port carries the event number.
//
// # What is checked, in this order
//
//  1. enabled: the mechanism is on                      -> disabled
//  2. context: a VPN has an NRP Selector ID             -> context-unknown
//  3. resolve: the sender's prefix has a usable proxy   -> context-unknown, no-proxy,
//     default-route-refused, proxy-unreachable, self-proxy
//  4. sampling: the flow's turn, one event in N         -> sampled-out
//  5. pacing: the flow's window and share of the second -> paced
//  6. total rate: the node's token bucket               -> rate-limited
//  7. build and send                                    -> send-error, sent
//
// Sampling stands before pacing so that N counts events as the detector reports them. A share is used
// up only by what passes all of 4 to 6: an event refused by the bucket does not cost the flow its window.
//
// An event of the default context leaves in format 1, one of a VPN in format 2 to a port of its own; each format has
// event numbers of its own.
//
// # How suppressed events are counted
//
// One call of Handle is one event. It is counted as received when it comes in and under exactly one
// outcome when it is decided, whatever becomes of its record: the outcomes of the congestion node add
// up to the events received. An event may stand for several CE-marked packets (a detector that gates
// in the kernel); those are not outcomes. They gather per flow, from where sampling is reached, until
// the flow's next notification, whose record shows them as its CE count.
//
// Sources: draft-xiao-fann-fast-cnp-with-proxy-05; RFC 791 and RFC 8200 for the outer header, RFC 768 for
// UDP, RFC 2474 and RFC 4594 section 3.1 for CS6, RFC 5082 for TTL 255.
package notifier
