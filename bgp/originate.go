package bgp

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

// originator decides what is announced. It is pure: the routers' paths go in, announcements come out.
type originator struct {
	routerID netip.Addr
	code     uint16
	tags     []Community // attached to what carries the PNC
	prefer   uint32      // LOCAL_PREF of ModePrefer; 0: one more than the router's
	enabled  bool
	gate     Gate
	items    map[netip.Prefix]item
	dirty    map[netip.Prefix]struct{} // prefixes to decide about again
	current  map[netip.Prefix]engine.Announcement
	status   map[netip.Prefix]inactive
}

// item is a prefix to announce.
type item struct {
	OriginateConfig
	requested bool      // at run time, not by configuration
	expires   time.Time // of a request with a lease; zero without
}

// inactive says why a prefix's PNC is not announced; empty when it is.
type inactive string

// Reasons why a prefix's PNC is not announced.
const (
	active         inactive = ""
	inactiveOff    inactive = "disabled"
	inactiveHeld   inactive = "not ready"
	inactiveInline inactive = "; the router's path goes on without NHC" // added to one of these
	inactiveRouter inactive = "no path of the router's yet"
	// A reflector that sends one path would take the one that is followed back, because ours is better;
	// ours would go with it, the first would come again, and so on.
	inactiveReflected inactive = "the neighbour reflects the router's path without add-path, and a preferred copy would push it out: follow the router itself"
)

func newOriginator(c Config) *originator {
	o := &originator{
		routerID: c.RouterID, code: c.PNCCode, prefer: c.PreferLocalPref, tags: c.Communities,
		items: map[netip.Prefix]item{}, dirty: map[netip.Prefix]struct{}{},
		current: map[netip.Prefix]engine.Announcement{}, status: map[netip.Prefix]inactive{},
	}
	o.configure(c)
	return o
}

// configure takes over the configured prefixes; those that were asked for at run time stay.
func (o *originator) configure(c Config) {
	if o.code != c.PNCCode || o.prefer != c.PreferLocalPref || !slices.Equal(o.tags, c.Communities) {
		o.code, o.prefer, o.tags = c.PNCCode, c.PreferLocalPref, c.Communities
		o.touchAll()
	}
	items := map[netip.Prefix]item{}
	for p, it := range o.items {
		if it.requested {
			items[p] = it
		}
	}
	for _, oc := range c.Originate {
		items[oc.Prefix] = item{OriginateConfig: oc}
	}
	for p := range o.items {
		if _, ok := items[p]; !ok {
			o.touch(p)
		}
	}
	for p, it := range items {
		if o.items[p] != it {
			o.touch(p)
		}
	}
	o.items = items
}

func (o *originator) touch(p netip.Prefix) { o.dirty[p] = struct{}{} }

func (o *originator) touchAll() {
	for p := range o.items {
		o.touch(p)
	}
}

// expire takes requests back whose lease has ended.
func (o *originator) expire(now time.Time) (ended []netip.Prefix) {
	for p, it := range o.items {
		if !it.expires.IsZero() && !now.Before(it.expires) {
			delete(o.items, p)
			o.touch(p)
			ended = append(ended, p)
		}
	}
	return ended
}

func (o *originator) setEnabled(on bool) {
	if o.enabled != on {
		o.enabled = on
		o.touchAll()
	}
}

// notice marks the prefixes whose announcement depends on what happened. It reports whether there
// are any.
func (o *originator) notice(events []engine.Event) bool {
	for i := range events {
		switch ev := &events[i]; ev.Kind {
		case engine.EventPath:
			if it, ok := o.items[ev.Path.Prefix]; ok && it.Mode != ModeOriginate {
				o.touch(ev.Path.Prefix)
			}
		default: // a session that goes down, or End-of-RIB after a restart, takes paths along
			o.touchFollowers()
		}
	}
	return len(o.dirty) > 0
}

func (o *originator) touchFollowers() {
	for p, it := range o.items {
		if it.Mode != ModeOriginate {
			o.touch(p)
		}
	}
}

// change is what has to be told to the engine.
type change struct {
	announce []engine.Announcement
	withdraw []netip.Prefix
	again    []netip.Prefix // could not be decided; what is announced stays
}

// fetch reads what a neighbour sent for a prefix.
type fetch func(peer netip.Addr, prefix netip.Prefix) ([]engine.RawPath, error)

// plan decides about the prefixes that are dirty. They stay dirty until done is called with what it
// returned.
func (o *originator) plan(r *rib, get fetch) (change, error) {
	var c change
	var errs []error
	for _, p := range slices.SortedFunc(maps.Keys(o.dirty), netip.Prefix.Compare) {
		want, why, err := o.decide(p, r, get)
		if err != nil {
			errs = append(errs, fmt.Errorf("bgp: path of the router for %s: %w", p, err))
			c.again = append(c.again, p)
			continue
		}
		if _, ok := o.items[p]; ok {
			o.status[p] = why
		} else {
			delete(o.status, p)
		}
		have, announced := o.current[p]
		switch {
		case want != nil && !(announced && equalAnnouncement(have, *want)):
			c.announce = append(c.announce, *want)
		case want == nil && announced:
			c.withdraw = append(c.withdraw, p)
		}
	}
	return c, errors.Join(errs...)
}

// done says that the engine took the change.
func (o *originator) done(c change) {
	for _, a := range c.announce {
		o.current[a.Prefix] = a
	}
	for _, p := range c.withdraw {
		delete(o.current, p)
	}
	clear(o.dirty)
	for _, p := range c.again {
		o.touch(p)
	}
}

func equalAnnouncement(a, b engine.Announcement) bool {
	return a.Prefix == b.Prefix && a.NextHop == b.NextHop && a.NotTo == b.NotTo &&
		slices.EqualFunc(a.Attributes, b.Attributes, func(x, y engine.RawAttribute) bool { return slices.Equal(x, y) })
}

// decide says what is to be announced for a prefix, and why its PNC is not. An error means that it
// can't be told now.
func (o *originator) decide(p netip.Prefix, r *rib, get fetch) (*engine.Announcement, inactive, error) {
	it, ok := o.items[p]
	off := o.off(it)
	switch {
	case !ok:
		return nil, inactiveOff, nil
	case off != active && it.Mode != ModeInline:
		return nil, off, nil
	case it.Mode == ModeOriginate:
		a, err := o.own(it)
		return a, because(err), nil
	}
	from, why := r.router(it.OriginateConfig)
	if from == nil {
		return nil, why, nil
	}
	paths, err := get(from.peer.addr, p)
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(paths, func(x engine.RawPath) bool { return x.PathID == from.id })
	if i < 0 && from.stale {
		return o.followStale(p, from)
	}
	if i < 0 {
		return nil, inactiveRouter, nil // withdrawn since; its event is on the way
	}
	a, err := o.follow(it, from, paths[i])
	if err == nil && from.longLived {
		a.Attributes = tag(a.Attributes, []Community{engine.LLGRStale})
		slices.SortStableFunc(a.Attributes, byType)
	}
	if err == nil && off != active {
		return a, off + inactiveInline, nil
	}
	return a, because(err), nil
}

// followStale goes on with what is announced for a path that is kept through a restart, and which the engine
// has no more: it gives up when an attempt to come back fails.
func (o *originator) followStale(p netip.Prefix, from *path) (*engine.Announcement, inactive, error) {
	a, announced := o.current[p]
	if !announced {
		return nil, inactiveRouter, nil
	}
	if from.longLived {
		a.Attributes = tag(a.Attributes, []Community{engine.LLGRStale}) // RFC 9494 section 4.2
		slices.SortStableFunc(a.Attributes, byType)
	}
	return &a, o.status[p], nil
}

func because(err error) inactive {
	if err != nil {
		return inactive(err.Error())
	}
	return active
}

// router picks the path that the other modes follow: the best one of the neighbour that is named.
// Without a name, any neighbour's best; inline then only takes what a neighbour announces itself. A
// path with a PNC on it is never the router's own but another node's copy, and two nodes that followed
// each other's copies would keep a dead route alive.
func (r *rib) router(c OriginateConfig) (*path, inactive) {
	var candidates []*path
	why := inactiveRouter
	for x := range r.prefixes.first(c.Prefix).list() {
		switch {
		case c.From.IsValid() && x.peer.addr != c.From:
		case !c.From.IsValid() && c.Mode == ModeInline && x.reflected():
		case x.verdict.proxy.IsValid():
		case c.Mode == ModePrefer && x.reflected() && x.id == 0:
			why = inactiveReflected
		default:
			candidates = append(candidates, x)
		}
	}
	return best(slices.Values(candidates)), why
}

// reflected reports whether the neighbour passes on another's path.
func (x *path) reflected() bool { return x.clusters > 0 || x.originator != x.peerID }

// own is the announcement of ModeOriginate: our route, so NHC goes without Partial. GoBGP adds
// LOCAL_PREF and AS_PATH as the session needs them.
func (o *originator) own(it item) (*engine.Announcement, error) {
	attr, err := o.attribute(it.OriginateConfig, it.NextHop, nil)
	if err != nil {
		return nil, err
	}
	a := &engine.Announcement{Prefix: it.Prefix, NextHop: it.NextHop.Unmap()}
	a.Attributes = tag([]engine.RawAttribute{{nhc.FlagTransitive, attrOrigin, 1, 0}, attr}, o.tags)
	slices.SortStableFunc(a.Attributes, byType)
	return a, nil
}

// attribute builds NHC with the PNC and, beside it, TLVs of another speaker.
func (o *originator) attribute(c OriginateConfig, nextHop netip.Addr, others []nhc.TLV) (engine.RawAttribute, error) {
	tlv, err := nhc.NewPNC(o.code, c.Proxy)
	if err != nil {
		return nil, err
	}
	afi := nhc.AFIIPv4
	if c.Prefix.Addr().Is6() {
		afi = nhc.AFIIPv6
	}
	a, err := nhc.New(afi, nhc.SAFIUnicast, nextHop.Unmap(), append(slices.Clone(others), tlv)...)
	if err != nil {
		return nil, err
	}
	if c.Mode != ModeOriginate {
		a.Flags |= nhc.FlagPartial
	}
	return a.Append(nil)
}
