package pnc

import (
	"net/netip"
	"time"
)

// Route is one unicast route to a sender prefix, with a PNC or without, as it goes into a Table and comes
// out of it. What the table keeps is an Entry.
type Route struct {
	Context string       // VPN; empty for the default context
	Prefix  netip.Prefix // the sender prefix; masked when it is stored
	Source  Source       // where it was learned

	Proxy      netip.Addr // the proxy's address as the PNC carries it; invalid without PNC
	NextHop    netip.Addr // the route's next hop, which may differ from Proxy; invalid when unknown
	Originator string     // BGP router ID or originator, IS-IS system ID, OSPF router ID
	Peer       string     // whom it was learned from; part of the identity; empty for static
	RD         string     // BGP VPN: the route distinguisher, as in 65000:100; part of the identity
	PathID     uint32     // add-path identifier (RFC 7911) or another number; part of the identity

	Best     bool   // BGP: the best path, or one of the multipath set; ignored for other sources
	Stale    bool   // kept through a graceful restart (RFC 4724), not yet refreshed; still used
	Partial  bool   // the NHC attribute arrived with the Partial bit (RFC 4271 section 4.3)
	Override bool   // static only: hides longer learned routes
	Metric   uint32 // IGP cost to the originator, or the metric of a static route; ignored for BGP

	// Disregarded says why the PNC seen on this route is not believed; then Proxy may still show
	// the address. Whoever sets it also calls Table.Disregard, which knows the details.
	Disregarded DisregardReason

	// LongLived: BGP's least preferred, kept beyond the restart time here or by a speaker before (RFC 9494
	// section 4.3). Still used when nothing else is there.
	LongLived bool

	Version   uint64    // set by the table: the table's version at which this route last changed
	ChangedAt time.Time // set by the table: when that was

	proxy proxyIndex // set by the table: the number of a believed Proxy
}

// Believed reports whether the route carries a PNC that is believed.
func (r *Route) Believed() bool { return r.Proxy.IsValid() && r.Disregarded == DisregardNone }

// Age is the time since the route last changed.
func (r *Route) Age(now time.Time) time.Duration { return now.Sub(r.ChangedAt) }

// ID is the route's identity.
func (r *Route) ID() RouteID {
	return RouteID{Context: r.Context, Source: r.Source, Prefix: r.Prefix, Peer: r.Peer, RD: r.RD, PathID: r.PathID}
}

// RouteID identifies a route: a later update with the same one replaces it.
type RouteID struct {
	Context string
	Source  Source
	Prefix  netip.Prefix
	Peer    string
	RD      string
	PathID  uint32
}

// Update is one change to a Table.
type Update struct {
	Withdraw bool  // remove the route with the identity of Route; its other fields don't matter
	Route    Route // Version and ChangedAt are ignored
}

// Reach says whether and how the kernel would reach a proxy's address.
type Reach struct {
	Reachable  bool // there is a route that counts
	Self       bool // the address is one of this node's own
	ViaDefault bool // the route is a default route
}

// usable reports whether a proxy with this reachability can be a candidate.
func (r Reach) usable() bool { return r.Reachable && !r.Self }

// Event is one entry of the history.
type Event struct {
	At     time.Time
	Kind   EventKind
	Route  Route           // after the event; before it for EventWithdrawn
	Reason DisregardReason // for EventDisregarded
	Detail string          // more, for a reader: what changed, the two next hops, the raw TLV
}

// Resolution is the answer to which proxy serves a sender.
type Resolution struct {
	Reason Reason
	Proxy  netip.Addr // valid only with ReasonFound
	// Route is the route used, or the one that gave the reason; nil when none matched.
	Route *Entry
	// Version is the version of the table that gave the answer.
	Version uint64
}
