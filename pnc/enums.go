package pnc

import "strconv"

// Source says where a route was learned.
type Source uint8

// The sources, in the order of the default preference.
const (
	SourceUnknown Source = iota
	SourceStatic         // configuration
	SourceBGP            // PNC in the Next Hop Dependent Characteristics attribute
	SourceISIS           // P flag
	SourceOSPF           // OSPFv2 or OSPFv3, P flag

	sourceCount
)

var sourceNames = [sourceCount]string{"unknown", "static", "bgp", "isis", "ospf"}

// String gives the name used in configuration and output: static, bgp, isis, ospf.
func (s Source) String() string { return enumName(sourceNames[:], int(s), "source") }

// Valid reports whether s is one of the sources that a route can have.
func (s Source) Valid() bool { return s > SourceUnknown && s < sourceCount }

// Sources lists all valid sources in the order of the default preference.
func Sources() []Source { return []Source{SourceStatic, SourceBGP, SourceISIS, SourceOSPF} }

// Reason says that a proxy was found, or why not. The package comment says which wins when several
// apply.
type Reason uint8

// The reasons.
const (
	ReasonUnknown             Reason = iota
	ReasonFound                      // a proxy was found
	ReasonNoRoute                    // no route matches the sender
	ReasonNoProxy                    // the longest matching prefix has no believed PNC
	ReasonDefaultRouteRefused        // only a default route matches, and it may not be used
	ReasonProxyUnreachable           // a proxy is known, its address has no route
	ReasonSelfProxy                  // the proxy is this node
	ReasonContextUnknown             // the context is not configured

	reasonCount
)

var reasonNames = [reasonCount]string{
	"unknown", "found", "no-route", "no-proxy", "default-route-refused", "proxy-unreachable",
	"self-proxy", "context-unknown",
}

// String gives the name used in output, as in no-proxy.
func (r Reason) String() string { return enumName(reasonNames[:], int(r), "reason") }

// Reasons lists every reason that Resolve can give.
func Reasons() []Reason { return enumAll[Reason](int(reasonCount)) }

// DisregardReason says why a capability that was seen is not believed.
type DisregardReason uint8

// The reasons for disregarding a capability.
const (
	DisregardNone                  DisregardReason = iota // believed, or there is none
	DisregardNextHopMismatch                              // the header's next hop is not the route's
	DisregardMalformedAttribute                           // the attribute can't be parsed; the route was kept
	DisregardMalformedTLV                                 // a TLV can't be parsed; the others were used
	DisregardUnknownLength                                // the PNC's length is neither 4 nor 16 octets
	DisregardEBGPNotAllowed                               // from an EBGP peer that is not configured to be believed
	DisregardProxyNotAccepted                             // the proxy is outside of the accepted prefixes
	DisregardDuplicatePNC                                 // several different PNCs; the first was used
	DisregardInvalidProxyAddress                          // the proxy is no usable unicast address
	DisregardCommunityMissing                             // a policy asks for a community that the route lacks
	DisregardOriginatorNotAccepted                        // the route's originator is none of those that are believed

	disregardCount
)

var disregardNames = [disregardCount]string{
	"none", "next-hop-mismatch", "malformed-attribute", "malformed-tlv", "unknown-length",
	"ebgp-not-allowed", "proxy-not-accepted", "duplicate-pnc", "invalid-proxy-address",
	"community-missing", "originator-not-accepted",
}

// String gives the name used in output, as in next-hop-mismatch.
func (r DisregardReason) String() string { return enumName(disregardNames[:], int(r), "disregard") }

// DisregardReasons lists every reason for disregarding a capability (DisregardNone is not one).
func DisregardReasons() []DisregardReason { return enumAll[DisregardReason](int(disregardCount)) }

// EventKind says what happened to a capability route.
type EventKind uint8

// The kinds of events.
const (
	EventUnknown     EventKind = iota
	EventLearned               // a believed PNC for a prefix where this route had none
	EventChanged               // the proxy or another field of a route with PNC changed
	EventWithdrawn             // the route, or the PNC on it, is gone
	EventDisregarded           // a PNC was seen and not believed
	EventAnnounced             // this node's own: its PNC for a prefix is announced
	EventHeldBack              // this node's own: its PNC for a prefix is held back

	eventCount
)

var eventNames = [eventCount]string{"unknown", "learned", "changed", "withdrawn", "disregarded", "announced", "held-back"}

// String gives the name used in output, as in learned.
func (k EventKind) String() string { return enumName(eventNames[:], int(k), "event") }

// EventKinds lists every kind of event.
func EventKinds() []EventKind { return enumAll[EventKind](int(eventCount)) }

// Share says what becomes of several equal proxies.
type Share uint8

// The ways to share.
const (
	ShareLowest Share = iota // the lowest address gets every flow
	ShareHash                // rendezvous hashing: flows spread, and stay when another proxy leaves

	shareCount
)

var shareNames = [shareCount]string{"lowest", "hash"}

// String gives the name used in configuration: lowest or hash.
func (s Share) String() string { return enumName(shareNames[:], int(s), "share") }

func enumName(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return kind + "(" + strconv.Itoa(i) + ")"
}

// enumAll lists the values 1 to n-1: zero is 'unknown' or 'none' in every enum here.
func enumAll[T ~uint8](n int) []T {
	all := make([]T, 0, n-1)
	for i := 1; i < n; i++ {
		all = append(all, T(i))
	}
	return all
}
