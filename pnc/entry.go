package pnc

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// Entry is a route as the table keeps it. There may be millions, so it is small (48 octets): what routes
// have in common is kept once for many of them. It never changes; whoever gets a pointer to one may
// keep it.
type Entry struct {
	addr   [16]byte // of the prefix; an IPv4 address is in the first four octets
	bits   uint8    // of the prefix; noPrefix when it is invalid
	flags  entryFlags
	pathID uint32
	*shared
	stamp *stamp
	group *group // set by the table on the first of several routes of a prefix
}

const noPrefix = 0xFF

type entryFlags uint8

const (
	entryIPv4 entryFlags = 1 << iota
	entryBest
	entryStale
	entryLongLived
)

// shared is what a route has in common with others. It never changes.
type shared struct {
	context     string
	proxy       netip.Addr
	nextHop     netip.Addr
	originator  string
	peer        string
	rd          string
	metric      uint32
	index       proxyIndex // of a believed proxy
	source      Source
	disregarded DisregardReason
	partial     bool
	override    bool
}

// stamp says when a route changed: all routes of one batch have the same.
type stamp struct {
	version uint64
	at      time.Time
}

// NewEntry makes an entry of its own, outside of any table: for whoever needs an answer without one.
func NewEntry(r Route) *Entry {
	s := sharedOf(&r)
	return newEntry(&r, &s, &stamp{r.Version, r.ChangedAt})
}

func sharedOf(r *Route) shared {
	return shared{
		context: r.Context, proxy: r.Proxy, nextHop: r.NextHop, originator: r.Originator, peer: r.Peer, rd: r.RD,
		metric: r.Metric, source: r.Source, disregarded: r.Disregarded, partial: r.Partial, override: r.Override,
	}
}

func newEntry(r *Route, s *shared, at *stamp) *Entry {
	e := &Entry{bits: noPrefix, pathID: r.PathID, shared: s, stamp: at}
	if a := r.Prefix.Addr(); a.Is4() {
		v4 := a.As4()
		copy(e.addr[:], v4[:])
		e.flags = entryIPv4
	} else if r.Prefix.IsValid() {
		e.addr = a.As16()
	}
	if r.Prefix.IsValid() {
		e.bits = uint8(r.Prefix.Bits())
	}
	e.set(entryBest, r.Best)
	e.set(entryStale, r.Stale)
	e.set(entryLongLived, r.LongLived)
	return e
}

func (e *Entry) set(f entryFlags, on bool) {
	if on {
		e.flags |= f
	}
}

// Prefix is the sender prefix.
func (e *Entry) Prefix() netip.Prefix {
	switch {
	case e.bits == noPrefix:
		return netip.Prefix{}
	case e.flags&entryIPv4 != 0:
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(e.addr[:4])), int(e.bits))
	}
	return netip.PrefixFrom(netip.AddrFrom16(e.addr), int(e.bits))
}

// Context is Route.Context.
func (e *Entry) Context() string { return e.context }

// Source is Route.Source.
func (e *Entry) Source() Source { return e.source }

// Proxy is Route.Proxy.
func (e *Entry) Proxy() netip.Addr { return e.proxy }

// Disregarded is Route.Disregarded.
func (e *Entry) Disregarded() DisregardReason { return e.disregarded }

// Best is Route.Best.
func (e *Entry) Best() bool { return e.flags&entryBest != 0 }

// Stale is Route.Stale.
func (e *Entry) Stale() bool { return e.flags&entryStale != 0 }

// LongLived is Route.LongLived.
func (e *Entry) LongLived() bool { return e.flags&entryLongLived != 0 }

// ChangedAt is Route.ChangedAt.
func (e *Entry) ChangedAt() time.Time { return e.stamp.at }

// Believed reports whether the route carries a PNC that is believed.
func (e *Entry) Believed() bool { return e.proxy.IsValid() && e.disregarded == DisregardNone }

// Age is the time since the route last changed.
func (e *Entry) Age(now time.Time) time.Duration { return now.Sub(e.stamp.at) }

// ID is the route's identity.
func (e *Entry) ID() RouteID {
	return RouteID{Context: e.context, Source: e.source, Prefix: e.Prefix(), Peer: e.peer, RD: e.rd, PathID: e.pathID}
}

// Route gives everything about the route.
func (e *Entry) Route() Route {
	return Route{
		Context: e.context, Prefix: e.Prefix(), Source: e.source, Proxy: e.proxy, NextHop: e.nextHop,
		Originator: e.originator, Peer: e.peer, RD: e.rd, PathID: e.pathID,
		Best: e.Best(), Stale: e.Stale(), LongLived: e.LongLived(), Partial: e.partial, Override: e.override,
		Metric: e.metric, Disregarded: e.disregarded, Version: e.stamp.version, ChangedAt: e.stamp.at, proxy: e.index,
	}
}

// is reports whether e is what would be stored for r, apart from when.
func (e *Entry) is(r *Route) bool {
	return e.proxy == r.Proxy && e.nextHop == r.NextHop && e.originator == r.Originator &&
		e.Best() == r.Best && e.Stale() == r.Stale && e.LongLived() == r.LongLived && e.partial == r.Partial &&
		e.override == r.Override && e.metric == r.Metric && e.disregarded == r.Disregarded
}

// interner finds again what was shared lately. It may forget, at the cost of memory only, so that it needs
// no count of who uses what, and its own size is fixed.
type interner struct {
	seed   maphash.Seed
	last   *shared
	recent [1 << 10]*shared
}

func newInterner() interner { return interner{seed: maphash.MakeSeed()} }

func (in *interner) of(s *shared) *shared {
	if in.last != nil && *in.last == *s {
		return in.last
	}
	at := &in.recent[maphash.Comparable(in.seed, *s)%uint64(len(in.recent))]
	if *at == nil || **at != *s {
		kept := *s
		*at = &kept
	}
	in.last = *at
	return in.last
}
