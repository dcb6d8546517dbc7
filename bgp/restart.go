package bgp

import (
	"slices"
	"time"

	"pncd/bgp/engine"
)

// staleTime bounds how long paths stay stale after a restarted neighbour is back and never sends
// End-of-RIB (RFC 4724 section 4.2 asks for an upper bound).
const staleTime = 360 * time.Second

// maxLongLived is the most that the long-lived stale time can be, 24 bits of seconds (RFC 9494 section 3.1).
const maxLongLived = (1<<24 - 1) * time.Second

// keeping says how the paths of a neighbour and family outlive their session.
type keeping uint8

const (
	notKept   keeping = iota // the paths are of the session that is up, or there are none
	kept                     // as stale, for the restart time and until End-of-RIB (RFC 4724 section 4.2)
	longLived                // as stale and least preferred, beyond it (RFC 9494 section 4.2)
)

// familyKeeping is how a family's paths are kept, and when that ends at the latest.
type familyKeeping struct {
	how   keeping
	until time.Time
}

// families has a place for each family; the zero one is unused.
type families [engine.IPv6VPN + 1]familyKeeping

// which is a set of families.
type which [engine.IPv6VPN + 1]bool

func (w *which) add(f Family) { w[f] = true }

func (w *which) none() bool { return *w == which{} }

// state takes in that a session changed its state.
func (r *rib) state(now time.Time, p *ribPeer, ev *engine.Event) {
	was := p.state
	p.state = ev.State
	switch {
	case !ev.Keep:
		// Down for good, or up without a restart before: nothing of an earlier session counts.
		p.keeping = families{}
		if p.paths > 0 {
			r.drop(func(x *path) bool { return x.peer == p })
		}
	case ev.State == engine.StateEstablished:
		r.back(now, p, ev.Restart)
	case was == engine.StateEstablished:
		r.down(now, p)
	}
	if ev.State == engine.StateEstablished {
		p.restart = ev.Restart
	}
}

// down keeps the paths of a neighbour that restarts, as far as its last OPEN asked for that.
func (r *rib) down(now time.Time, p *ribPeer) {
	var keep, long, lost which
	for f := engine.IPv4Unicast; f <= engine.IPv6VPN; f++ {
		switch o := p.restart.Families[f]; {
		case o.Graceful && p.restart.Time > 0:
			keep.add(f)
			p.keeping[f] = familyKeeping{kept, now.Add(p.restart.Time)}
		case o.LongLived && p.longLived > 0:
			keep.add(f)
			long.add(f)
		default:
			lost.add(f)
			p.keeping[f] = familyKeeping{}
		}
	}
	// What was stale before the session ended again is too old (RFC 4724 section 4.2).
	r.drop(func(x *path) bool { return x.peer == p && (x.stale || lost[x.family()]) })
	if !keep.none() {
		r.mark(func(x *path) bool { return x.peer == p }, func(x *path) { x.stale = true })
	}
	r.keepLong(now, p, long)
}

// keepLong goes on with stale paths after the restart time; those that refuse it go.
func (r *rib) keepLong(now time.Time, p *ribPeer, w which) {
	if w.none() {
		return
	}
	for f := engine.IPv4Unicast; f <= engine.IPv6VPN; f++ {
		if w[f] {
			p.keeping[f] = familyKeeping{longLived, now.Add(min(p.restart.Families[f].LongLivedTime, p.longLived))}
		}
	}
	mine := func(x *path) bool { return x.peer == p && x.stale && w[x.family()] }
	r.drop(func(x *path) bool { return x.noLongLived && mine(x) })
	r.mark(mine, func(x *path) { x.longLived = true })
}

// back decides what of a restarted neighbour still holds, now that its OPEN is here: paths of a family
// that it kept its forwarding state for stay until End-of-RIB, the others go.
func (r *rib) back(now time.Time, p *ribPeer, o engine.Restart) {
	var lost which
	for f := engine.IPv4Unicast; f <= engine.IPv6VPN; f++ {
		k, of := &p.keeping[f], o.Families[f]
		switch {
		case k.how == kept && of.Graceful && of.Preserved:
			k.until = now.Add(staleTime)
		case k.how == longLived && of.LongLived && of.LongLivedPreserved:
			if limit := now.Add(staleTime); limit.Before(k.until) {
				k.until = limit
			}
		case k.how != notKept:
			*k = familyKeeping{}
			lost.add(f)
		}
	}
	r.dropStale(p, lost)
}

// endOfRIB ends the restart of a family: what the neighbour has not announced again is gone.
func (r *rib) endOfRIB(p *ribPeer, f Family) {
	if f > engine.IPv6VPN || p.keeping[f].how == notKept {
		return // the usual End-of-RIB after a session came up
	}
	p.keeping[f] = familyKeeping{}
	var w which
	w.add(f)
	r.dropStale(p, w)
}

func (r *rib) dropStale(p *ribPeer, w which) {
	if !w.none() {
		r.drop(func(x *path) bool { return x.peer == p && x.stale && w[x.family()] })
	}
}

// expire ends what has been kept for too long.
func (r *rib) expire(now time.Time) learned {
	for _, p := range r.peers {
		var long, lost which
		for f := engine.IPv4Unicast; f <= engine.IPv6VPN; f++ {
			k, of := &p.keeping[f], p.restart.Families[f]
			switch {
			case k.how == notKept || now.Before(k.until):
			case k.how == kept && p.state != engine.StateEstablished && of.LongLived && p.longLived > 0:
				long.add(f)
			default:
				*k = familyKeeping{}
				lost.add(f)
			}
		}
		r.keepLong(now, p, long)
		r.dropStale(p, lost)
	}
	return r.flush()
}

// mark changes paths and has the sink told.
func (r *rib) mark(which func(*path) bool, change func(*path)) {
	for _, v := range r.vrfs() {
		for prefix, first := range v.prefixes.all() {
			for x := range first.list() {
				if which(x) {
					x.count(-1)
					change(x)
					x.count(1)
					x.changed()
					v.dirty = append(v.dirty, prefix)
				}
			}
		}
	}
}

// outlive says how long paths outlive the session when the neighbour restarts, and how long beyond that.
func (p *ribPeer) outlive() (restart, long time.Duration) {
	if !p.helped {
		return 0, 0
	}
	for _, f := range p.restart.Families {
		if f.Graceful {
			restart = p.restart.Time
		}
		if f.LongLived {
			long = max(long, min(f.LongLivedTime, p.longLived))
		}
	}
	return restart, long
}

// keptUntil is when the paths that are kept go at the latest; zero while none are.
func (p *ribPeer) keptUntil() (until time.Time) {
	for _, k := range p.keeping {
		if k.how != notKept && k.until.After(until) {
			until = k.until
		}
	}
	return until
}

// replayed reports whether a path that the engine shows again as stale is one that is kept, and marks it.
func (x *path) replayed(p *ribPeer, f Family) bool {
	k := p.keeping[f].how
	x.stale, x.longLived = true, x.longLived || k == longLived
	return k != notKept
}

// communities takes over what a path's communities say about restarts. A path that another speaker keeps
// for long is the least preferred here too (RFC 9494 section 4.3).
func (a *attributes) communities(have []Community) {
	a.llgrStale = slices.Contains(have, engine.LLGRStale)
	a.noLongLived = slices.Contains(have, engine.NoLLGR)
}
