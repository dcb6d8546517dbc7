package pnc

import (
	"iter"
	"net/netip"
)

// Snapshot is one state of a Table. It never changes.
type Snapshot struct{}

// Version is the version of the table.
func (s *Snapshot) Version() uint64 { return 0 }

// Len is the number of routes over all contexts, and of those that carry a believed PNC.
func (s *Snapshot) Len() (routes, capabilities int) { return 0, 0 }

// Contexts lists the configured contexts, sorted.
func (s *Snapshot) Contexts() []string { return nil }

// Resolve answers which proxy serves the sender, by the rules of the package comment. The hash
// identifies the flow for ShareHash; any well spread function of the flow does. It doesn't allocate.
func (s *Snapshot) Resolve(context string, sender netip.Addr, hash uint64) Resolution {
	return Resolution{}
}

// Candidates lists all routes of the prefix that wins for the sender, best first: the believed ones
// in the order in which they are tried, then the others. Nil when none matches.
func (s *Snapshot) Candidates(context string, sender netip.Addr) []*Route { return nil }

// Filter chooses routes.
type Filter struct {
	Context string
	Prefix  netip.Prefix // only routes that cover it or are covered by it; all when invalid
	All     bool         // routes without a believed PNC too
}

// Routes iterates over the routes that match, sorted by prefix, then by rank.
func (s *Snapshot) Routes(f Filter) iter.Seq[*Route] { return func(func(*Route) bool) {} }

// Reach gives what is known about a proxy of the table; known is false when nothing was told.
func (s *Snapshot) Reach(proxy netip.Addr) (r Reach, known bool) { return Reach{}, false }

// RouteReach is Reach for the route's proxy, in constant time.
func (s *Snapshot) RouteReach(r *Route) (reach Reach, known bool) { return Reach{}, false }
