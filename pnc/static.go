package pnc

import (
	"net/netip"
	"time"
)

// place is where routes meet: one prefix of one context.
type place struct {
	context string
	prefix  netip.Prefix
}

// SetStatic replaces all static routes, in every context, by these: those that stay the same are not
// touched. Source, Peer and PathID are set here, so that one prefix can have several proxies; the
// same proxy given twice for a prefix counts once, the last one.
func (t *Table) SetStatic(now time.Time, routes []Route) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := newBatch(t, now)

	// By place and proxy, the path identifiers in use: a proxy that stays keeps its own.
	ids := map[place]map[netip.Addr]uint32{}
	for context, prefixes := range t.statics {
		for prefix := range prefixes {
			at := map[netip.Addr]uint32{}
			s := b.context(context).get(prefix)
			for _, r := range s.list(nil) {
				if isStatic(r) {
					at[r.proxy] = r.pathID
				}
			}
			ids[place{context, prefix}] = at
		}
	}

	wanted := map[place]map[netip.Addr]bool{}
	for i := range routes {
		at := place{routes[i].Context, routes[i].Prefix.Masked()}
		if wanted[at] == nil {
			wanted[at] = map[netip.Addr]bool{}
		}
		wanted[at][routes[i].Proxy.Unmap()] = true
	}
	for at, proxies := range ids {
		for proxy, id := range proxies {
			if !wanted[at][proxy] {
				b.update(&Update{Withdraw: true, Route: Route{
					Context: at.context, Prefix: at.prefix, Source: SourceStatic, PathID: id,
				}})
				delete(proxies, proxy)
			}
		}
	}
	for _, r := range routes {
		at := place{r.Context, r.Prefix.Masked()}
		if ids[at] == nil {
			ids[at] = map[netip.Addr]uint32{}
		}
		r.Source, r.Peer, r.RD = SourceStatic, "", ""
		r.PathID = number(ids[at], r.Proxy.Unmap())
		b.update(&Update{Route: r})
	}
	b.finish()
}

// number gives the proxy's identifier, the lowest free one if it has none yet.
func number(ids map[netip.Addr]uint32, proxy netip.Addr) uint32 {
	if id, ok := ids[proxy]; ok {
		return id
	}
	used := map[uint32]bool{}
	for _, id := range ids {
		used[id] = true
	}
	id := uint32(0)
	for used[id] {
		id++
	}
	ids[proxy] = id
	return id
}
