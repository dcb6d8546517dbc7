package pnc

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// batch is the work of one Apply: nothing of it is visible before it is published as a whole.
type batch struct {
	t       *Table
	now     time.Time
	next    *Snapshot
	changes map[string]*contextChanges
	events  []event // of routes that change
	stamp   *stamp  // of the routes that change
}

// contextChanges are the changed slots of one context.
type contextChanges struct {
	base   *view
	set    *trie
	del    map[netip.Prefix]struct{}
	rehide bool // a prefix with static routes is among them
}

// Apply applies a batch of updates as one change: readers see all of it or nothing. An update whose
// prefix is invalid or an IPv4-mapped IPv6 one, or whose source is unknown, is refused and counted
// (Counters.Invalid). A PNC whose address fails CheckProxy is disregarded, the route kept. An update
// that changes nothing is no change. A route in a context that is not configured is kept, and counts
// once the context is configured.
//
// Large batches are cheaper by far than single updates: the nodes of the longest-match table are
// copied once a batch.
func (t *Table) Apply(now time.Time, updates ...Update) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := newBatch(t, now)
	for i := range updates {
		b.update(&updates[i])
	}
	b.finish()
}

// newBatch begins a batch. The caller holds the table's lock until it is finished.
func newBatch(t *Table, now time.Time) *batch {
	next := t.snapshot.Load().successor()
	return &batch{t: t, now: now, next: next, changes: map[string]*contextChanges{}, stamp: &stamp{next.version, now}}
}

func (b *batch) update(u *Update) {
	in := &u.Route
	if !in.Prefix.IsValid() || in.Prefix.Addr().Is4In6() || !in.Source.Valid() {
		b.t.counters.invalid++
		return
	}
	prefix := in.Prefix.Masked()
	c := b.context(in.Context)
	s := c.get(prefix)
	old := s.find(in)
	switch {
	case !u.Withdraw:
		if e := b.normalize(in, prefix, old); e != nil {
			b.replace(c, prefix, s, old, e)
		}
	case old != nil:
		b.replace(c, prefix, s, old, nil)
	}
}

// normalize makes the stored form of a route; nil when it is what is stored already. A believed proxy
// has one route more then.
func (b *batch) normalize(in *Route, prefix netip.Prefix, old *Entry) *Entry {
	r, detail := *in, ""
	r.Prefix, r.Proxy, r.NextHop = prefix, in.Proxy.Unmap(), in.NextHop.Unmap()
	r.Override = in.Override && in.Source == SourceStatic
	if in.Proxy.IsValid() && in.Disregarded == DisregardNone {
		if err := CheckProxy(in.Proxy); err != nil {
			r.Disregarded, detail = DisregardInvalidProxyAddress, err.Error()
		}
	}
	if old != nil && old.is(&r) {
		return nil
	}
	s := sharedOf(&r)
	if r.Believed() {
		s.index = b.t.proxies.acquire(r.Proxy)
	}
	e := newEntry(&r, b.t.interner.of(&s), b.stamp)
	if detail != "" {
		b.events = append(b.events, event{kind: EventDisregarded, route: e, reason: r.Disregarded, detail: detail})
	}
	return e
}

// replace puts r in the place of old; either may be nil, not both.
func (b *batch) replace(c *contextChanges, prefix netip.Prefix, s slot, old, r *Entry) {
	t := b.t
	if r != nil {
		b.next.routes++
		if r.Believed() {
			b.next.capabilities++
		}
	}
	if old != nil {
		b.next.routes--
		if old.Believed() {
			b.next.capabilities--
			t.proxies.release(old.index)
		}
	}
	b.event(old, r)

	routes := s.replace(old, r, &t.rank)
	if len(routes) == 0 {
		c.remove(prefix)
	} else {
		c.put(prefix, newSlot(routes, &t.rank))
	}

	if isStatic(old) || isStatic(r) {
		t.countStatic(old, r)
	}
	some := r
	if some == nil {
		some = old
	}
	if isStatic(some) || t.statics[some.context][prefix] > 0 {
		c.rehide = true // a learned route beside a static one may be part of its slot
	}
}

func isStatic(e *Entry) bool { return e != nil && e.source == SourceStatic }

// countStatic keeps the number of static routes by prefix, for the change from old to r.
func (t *Table) countStatic(old, r *Entry) {
	count := func(x *Entry, delta int) {
		if x == nil {
			return
		}
		m := t.statics[x.context]
		if m == nil {
			m = map[netip.Prefix]int{}
			t.statics[x.context] = m
		}
		p := x.Prefix()
		if m[p] += delta; m[p] == 0 {
			delete(m, p)
		}
	}
	count(r, 1)
	count(old, -1)
}

// event notes what the change from old to r means for the capability.
func (b *batch) event(old, r *Entry) {
	had, has := old != nil && old.Believed(), r != nil && r.Believed()
	var e event
	switch {
	case !had && has:
		e = event{kind: EventLearned, route: r}
	case had && has:
		e = event{kind: EventChanged, route: r, detail: difference(old, r)}
	case had && r == nil:
		e = event{kind: EventWithdrawn, route: old, detail: "route withdrawn"}
	case had && r.disregarded != DisregardNone:
		e = event{kind: EventWithdrawn, route: old, detail: "no longer believed: " + r.disregarded.String()}
	case had:
		e = event{kind: EventWithdrawn, route: old, detail: "route kept without capability"}
	default:
		return
	}
	b.events = append(b.events, e)
}

// difference says what changed between two routes with the same identity, as in
// "proxy 192.0.2.1 -> 192.0.2.2, stale false -> true".
func difference(old, r *Entry) string {
	var parts []string
	add := func(name string, a, b any) {
		if a != b {
			parts = append(parts, fmt.Sprintf("%s %v -> %v", name, a, b))
		}
	}
	add("proxy", old.proxy, r.proxy)
	add("next hop", old.nextHop, r.nextHop)
	add("originator", old.originator, r.originator)
	add("best", old.Best(), r.Best())
	add("stale", old.Stale(), r.Stale())
	add("long-lived", old.LongLived(), r.LongLived())
	add("partial", old.partial, r.partial)
	add("override", old.override, r.override)
	add("metric", old.metric, r.metric)
	return strings.Join(parts, ", ")
}

// finish publishes the batch and then tells of it, so that who hears of an event can already see it.
func (b *batch) finish() {
	t := b.t
	changed := false
	for name, c := range b.changes {
		if c.set.Size() == 0 && len(c.del) == 0 {
			continue
		}
		changed = true
		v := c.base.clone()
		v.update(c.set, c.del)
		if c.rehide {
			v.hide(t.statics[name], &t.rank, b.next.allowDefault)
		}
		b.next.setView(name, v)
	}
	if changed {
		t.publish(b.next)
	}
	for _, e := range b.events {
		e.at = b.now
		t.emit(e)
	}
}

func (b *batch) context(name string) *contextChanges {
	c := b.changes[name]
	if c == nil {
		v := b.next.view(name)
		if v == nil {
			v = newView(false)
		}
		c = &contextChanges{base: v, set: new(trie), del: map[netip.Prefix]struct{}{}}
		b.changes[name] = c
	}
	return c
}

func (c *contextChanges) get(p netip.Prefix) slot {
	if s, ok := c.set.Get(p); ok {
		return s
	}
	if _, gone := c.del[p]; gone {
		return slot{}
	}
	s, _ := c.base.routes.Get(p)
	return s
}

func (c *contextChanges) put(p netip.Prefix, s slot) {
	delete(c.del, p)
	c.set.Insert(p, s)
}

func (c *contextChanges) remove(p netip.Prefix) {
	c.set.Delete(p)
	c.del[p] = struct{}{}
}
