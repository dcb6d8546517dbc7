package flowmap

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"
)

// Prefix is a prefix in a VPN context; 0 is the default one. VPNs have the same addresses.
type Prefix struct {
	Context uint32
	netip.Prefix
}

// Traffic is when packets of the hosts of a prefix were last seen, to a tenth of a second. CNPs and
// connection management don't count.
type Traffic struct {
	From    time.Time  // from a host of the prefix; zero: never
	Towards time.Time  // towards one; zero: never
	Host    netip.Addr // a host of the prefix that sent lately; invalid without one
}

// noteStep is how often a stream tells its prefixes that it lives: a look at them for each packet would
// cost more than the precision is worth.
const noteStep = int64(100 * time.Millisecond)

// hostStays is how long a host that is named stays named without traffic while others send.
const hostStays = int64(time.Minute)

// prefixTraffic is Traffic as it is noted.
type prefixTraffic struct {
	from, towards atomic.Int64 // unix nanoseconds; 0: never
	host          atomic.Pointer[netip.Addr]
	hostAt        atomic.Int64 // when host sent last
}

// followed are the prefixes whose traffic is noted. It never changes: other prefixes make another.
type followed struct {
	tables   map[uint32]*bart.Table[*prefixTraffic] // by context
	prefixes map[Prefix]*prefixTraffic
}

// Follow sets the prefixes whose traffic is noted. An address counts for the longest of its context that holds
// it, as in routing. What is known of prefixes that stay is kept; of new ones nothing is known.
func (m *Map) Follow(prefixes []Prefix) {
	old := m.followed.Load()
	if old.is(prefixes) {
		return // address pairs look their prefixes up again only when they must
	}
	next := &followed{tables: map[uint32]*bart.Table[*prefixTraffic]{}, prefixes: make(map[Prefix]*prefixTraffic, len(prefixes))}
	for _, p := range prefixes {
		if next.prefixes[p] != nil {
			continue
		}
		t := old.of(p)
		if t == nil {
			t = new(prefixTraffic)
		}
		if next.tables[p.Context] == nil {
			next.tables[p.Context] = new(bart.Table[*prefixTraffic])
		}
		next.tables[p.Context].Insert(p.Prefix, t)
		next.prefixes[p] = t
	}
	m.followed.Store(next)
}

// is reports whether these are the prefixes that are followed, each named once.
func (f *followed) is(prefixes []Prefix) bool {
	if f == nil || len(f.prefixes) != len(prefixes) {
		return false
	}
	for _, p := range prefixes {
		if f.prefixes[p] == nil {
			return false
		}
	}
	return true
}

func (f *followed) of(p Prefix) *prefixTraffic {
	if f == nil {
		return nil
	}
	return f.prefixes[p]
}

// Traffic tells when the traffic of a prefix was last seen; false when it is not followed.
func (m *Map) Traffic(p Prefix) (Traffic, bool) {
	t := m.followed.Load().of(p)
	if t == nil {
		return Traffic{}, false
	}
	out := Traffic{From: unixTime(t.from.Load()), Towards: unixTime(t.towards.Load())}
	if a := t.host.Load(); a != nil {
		out.Host = *a
	}
	return out, true
}

func unixTime(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// note tells the prefixes of a stream's addresses that a packet was seen.
func (sh *shard) note(s *stream, at int64) {
	s.notedAt = at
	sh.notePair(s.pair, s.side, at)
}

// notePair does so for packets of two addresses towards a side.
func (sh *shard) notePair(p *addrPair, side uint8, at int64) {
	f := sh.m.followed.Load()
	if f == nil {
		return
	}
	if p.followed != f {
		p.followed, p.traffic = f, [2]*prefixTraffic{}
		if table := f.tables[p.key.context]; table != nil {
			for side, a := range p.addr {
				p.traffic[side], _ = table.Lookup(a)
			}
		}
	}
	if t := p.traffic[1-side]; t != nil {
		advance(&t.from, at)
		sender := &p.addr[1-side]
		switch h := t.host.Load(); {
		case h != nil && *h == *sender:
			advance(&t.hostAt, at)
		case h == nil || at-t.hostAt.Load() > hostStays:
			t.hostAt.Store(at)
			t.host.Store(sender)
		}
	}
	if t := p.traffic[side]; t != nil {
		advance(&t.towards, at)
	}
}

// advance moves a time forward, in steps, so that the streams of a busy prefix don't fight over it.
func advance(t *atomic.Int64, at int64) {
	if at-t.Load() >= noteStep {
		t.Store(at)
	}
}
