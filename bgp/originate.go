package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

// originator decides what is announced. It is pure: the routers' paths go in, announcements come out.
type originator struct {
	code     uint16
	tags     []Community // attached to what carries the PNC
	prefer   uint32      // LOCAL_PREF of ModePrefer; 0: one more than the router's
	external bool        // announcements go to an EBGP neighbour, too
	enabled  bool
	gate     Gate
	contexts map[string]ContextConfig
	items    map[PrefixKey]item
	dirty    map[PrefixKey]struct{} // to decide about
	failed   map[PrefixKey]struct{} // could not be decided or announced; retry makes them dirty
	current  map[PrefixKey]engine.Announcement
	owner    map[engine.VPNPrefix]PrefixKey // of what the engine announces
	status   map[PrefixKey]inactive
}

func (c *OriginateConfig) key() PrefixKey { return PrefixKey{c.Context, c.Prefix} }

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
	inactivePolicy inactive = "export_prefixes of the context does not permit it"
	inactiveRouter inactive = "no path of the router's yet"
	// A reflector that sends one path would take the one that is followed back, because ours is better;
	// ours would go with it, the first would come again, and so on.
	inactiveReflected inactive = "the neighbour reflects the router's path without add-path, and a preferred copy would push it out: follow the router itself"
)

func newOriginator(c Config) *originator {
	o := &originator{
		items: map[PrefixKey]item{}, dirty: map[PrefixKey]struct{}{}, failed: map[PrefixKey]struct{}{},
		current: map[PrefixKey]engine.Announcement{}, owner: map[engine.VPNPrefix]PrefixKey{}, status: map[PrefixKey]inactive{},
	}
	o.configure(c)
	return o
}

// configure takes over the configured prefixes; those that were asked for at run time stay, as long as
// their context is there.
func (o *originator) configure(c Config) {
	outside := func(n NeighborConfig) bool { return n.ebgp() && n.SendNHC != nil && *n.SendNHC }
	external := slices.ContainsFunc(c.Neighbors, outside) ||
		slices.ContainsFunc(c.Ranges, func(r RangeConfig) bool { return outside(r.Neighbor) })
	contexts := map[string]ContextConfig{}
	for _, x := range c.Contexts {
		contexts[x.Name] = x
	}
	if o.code != c.PNCCode || o.prefer != c.PreferLocalPref || o.external != external || !slices.Equal(o.tags, c.Communities) ||
		!reflect.DeepEqual(o.contexts, contexts) {
		o.code, o.prefer, o.external, o.tags, o.contexts = c.PNCCode, c.PreferLocalPref, external, c.Communities, contexts
		o.touchAll()
	}
	items := map[PrefixKey]item{}
	for p, it := range o.items {
		if it.requested && c.checkOriginate(it.OriginateConfig) == nil {
			items[p] = it
		}
	}
	for _, oc := range c.Originate {
		items[oc.key()] = item{OriginateConfig: oc}
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

func (o *originator) touch(p PrefixKey) { o.dirty[p] = struct{}{} }

func (o *originator) touchAll() {
	for p := range o.items {
		o.touch(p)
	}
}

// touchPrefix has a prefix decided about again wherever it is announced.
func (o *originator) touchPrefix(prefix netip.Prefix) {
	for name := range o.contexts {
		if p := (PrefixKey{name, prefix}); o.has(p) {
			o.touch(p)
		}
	}
}

func (o *originator) has(p PrefixKey) bool {
	_, ok := o.items[p]
	return ok
}

// retry makes what failed dirty again. It reports whether anything is to be decided.
func (o *originator) retry() bool {
	for p := range o.failed {
		o.touch(p)
	}
	clear(o.failed)
	return len(o.dirty) > 0
}

// expire takes requests back whose lease has ended.
func (o *originator) expire(now time.Time) (ended []PrefixKey) {
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

// notice marks the prefixes whose announcement depends on what happened.
func (o *originator) notice(events []engine.Event) {
	for i := range events {
		switch ev := &events[i]; {
		case ev.Kind != engine.EventPath: // a session that goes down, or End-of-RIB after a restart, takes paths along
			o.touchFollowers()
		case ev.Family.VPN():
			for name := range o.contexts {
				o.noticePath(PrefixKey{name, ev.Path.Prefix})
			}
		default:
			o.noticePath(PrefixKey{"", ev.Path.Prefix})
		}
	}
}

func (o *originator) noticePath(p PrefixKey) {
	if it, ok := o.items[p]; ok && it.Mode != ModeOriginate {
		o.touch(p)
	}
}

func (o *originator) touchFollowers() {
	for p, it := range o.items {
		if it.Mode != ModeOriginate {
			o.touch(p)
		}
	}
}

// step is what the engine has to be told about one prefix: one of announce and withdraw, or, with both
// nil, nothing. With err it can't be decided now.
type step struct {
	at       PrefixKey
	announce *engine.Announcement
	withdraw *engine.VPNPrefix
	err      error
}

// fetch reads what a neighbour sent for a prefix.
type fetch func(peer netip.Addr, prefix engine.VPNPrefix) ([]engine.RawPath, error)

// next decides about some of the prefixes that are dirty, at most n, and gives what is to be done about
// them; done wants to know of each step how it went.
func (o *originator) next(n int, r *rib, get fetch) []step {
	var some []PrefixKey
	for p := range o.dirty {
		if len(some) == n {
			break
		}
		some = append(some, p)
	}
	slices.SortFunc(some, PrefixKey.compare)
	steps := make([]step, len(some))
	for i, p := range some {
		delete(o.dirty, p)
		steps[i] = o.plan(p, r, get)
	}
	return steps
}

func (o *originator) plan(p PrefixKey, r *rib, get fetch) step {
	want, why, err := o.decide(p, r, get)
	if err != nil {
		return step{at: p, err: fmt.Errorf("path of the router for %s: %w", p, err)}
	}
	if want != nil {
		if other, taken := o.owner[keyOf(want)]; taken && other != p {
			want, why = nil, inactive(fmt.Sprintf("announced in context %s already, with the same route distinguisher %s", other.Context, want.VPN.RD))
		}
	}
	if o.has(p) {
		o.status[p] = why
	} else {
		delete(o.status, p)
	}
	have, announced := o.current[p]
	switch {
	case want == nil && announced:
		key := keyOf(&have)
		return step{at: p, withdraw: &key}
	case want == nil, announced && equalAnnouncement(have, *want):
		return step{at: p}
	case announced && keyOf(&have) != keyOf(want):
		// Another route distinguisher makes it another route.
		key := keyOf(&have)
		o.touch(p)
		return step{at: p, withdraw: &key}
	}
	// Two prefixes of one batch may want the same key.
	o.owner[keyOf(want)] = p
	return step{at: p, announce: want}
}

// done says how a step went.
func (o *originator) done(s step, err error) {
	switch {
	case s.err != nil, err != nil:
		o.failed[s.at] = struct{}{}
		if o.has(s.at) {
			o.status[s.at] = inactive("trying again: " + cmp.Or(s.err, err).Error())
		}
		if have, ok := o.current[s.at]; s.announce != nil && (!ok || keyOf(&have) != keyOf(s.announce)) {
			o.release(keyOf(s.announce))
		}
	case s.announce != nil:
		o.current[s.at] = *s.announce
	case s.withdraw != nil:
		delete(o.current, s.at)
		o.release(*s.withdraw)
	}
}

// release lets another context announce what this one did.
func (o *originator) release(key engine.VPNPrefix) {
	delete(o.owner, key)
	if key.VPN {
		o.touchPrefix(key.Prefix)
	}
}

func keyOf(a *engine.Announcement) engine.VPNPrefix {
	if a.VPN == nil {
		return engine.VPNPrefix{Prefix: a.Prefix}
	}
	return engine.VPNPrefix{RD: a.VPN.RD, VPN: true, Prefix: a.Prefix}
}

func equalAnnouncement(a, b engine.Announcement) bool {
	return keyOf(&a) == keyOf(&b) && (a.VPN == nil || *a.VPN == *b.VPN) && a.NextHop == b.NextHop && a.NotTo == b.NotTo &&
		slices.EqualFunc(a.Attributes, b.Attributes, func(x, y engine.RawAttribute) bool { return slices.Equal(x, y) })
}

// decide says what is to be announced for a prefix, and why its PNC is not. An error means that it
// can't be told now.
func (o *originator) decide(p PrefixKey, r *rib, get fetch) (*engine.Announcement, inactive, error) {
	it, ok := o.items[p]
	off := o.off(it)
	switch {
	case !ok:
		return nil, inactiveOff, nil
	case off != active && it.Mode != ModeInline:
		return nil, off, nil
	case !o.contexts[p.Context].ExportPrefixes.Permits(p.Prefix):
		return nil, inactivePolicy, nil
	case it.Mode == ModeOriginate:
		a, err := o.own(it)
		return a, because(err), nil
	}
	from, why := r.router(it.OriginateConfig)
	if from == nil {
		return nil, why, nil
	}
	paths, err := get(from.peer.addr, from.key(p.Prefix))
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
func (o *originator) followStale(p PrefixKey, from *path) (*engine.Announcement, inactive, error) {
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

// own is the announcement of ModeOriginate: our route, so NHC goes without Partial. GoBGP adds
// LOCAL_PREF and AS_PATH as the session needs them.
func (o *originator) own(it item) (*engine.Announcement, error) {
	attr, err := o.attribute(it.OriginateConfig, it.NextHop, nil)
	if err != nil {
		return nil, err
	}
	a := &engine.Announcement{Prefix: it.Prefix, NextHop: it.NextHop.Unmap()}
	a.Attributes = []engine.RawAttribute{{nhc.FlagTransitive, attrOrigin, 1, 0}, attr}
	if it.Context != "" {
		x := o.contexts[it.Context]
		a.VPN = &engine.VPNInfo{RD: x.RD, Label: *x.Label}
		a.Attributes = append(a.Attributes, engine.TargetsAttribute(x.Export))
	}
	a.Attributes = tag(a.Attributes, o.tagsOf(it))
	slices.SortStableFunc(a.Attributes, byType)
	return a, nil
}

// tagsOf is the communities for what carries the PNC of an item.
func (o *originator) tagsOf(it item) []Community {
	return slices.Concat(o.tags, o.contexts[it.Context].Communities)
}

// attribute builds NHC with the PNC and, beside it, TLVs of another speaker. In a VPN its next hop has no
// route distinguisher.
func (o *originator) attribute(c OriginateConfig, nextHop netip.Addr, others []nhc.TLV) (engine.RawAttribute, error) {
	tlv, err := nhc.NewPNC(o.code, c.Proxy)
	if err != nil {
		return nil, err
	}
	a, err := nhc.New(c.afi(), c.safi(), nextHop.Unmap(), append(slices.Clone(others), tlv)...)
	if err != nil {
		return nil, err
	}
	if c.Mode != ModeOriginate {
		a.Flags |= nhc.FlagPartial
	}
	return a.Append(nil)
}

func (c *OriginateConfig) afi() uint16 {
	if c.Prefix.Addr().Is6() {
		return nhc.AFIIPv6
	}
	return nhc.AFIIPv4
}

func (c *OriginateConfig) safi() uint8 {
	if c.Context != "" {
		return nhc.SAFIVPN
	}
	return nhc.SAFIUnicast
}
