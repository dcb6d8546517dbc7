package bgp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"net/netip"
	"slices"

	"pncd/bgp/engine"
)

// path is one path as kept. There may be millions, so it is small (24 octets): what paths have in common
// is kept once for many of them.
type path struct {
	*attributes
	next  *path // of the same prefix
	id    uint32
	stale bool // kept through a restart
	// longLived makes it the least preferred: kept beyond the restart time here or elsewhere.
	longLived bool
	best      bool
	sink      sinkState
}

// sinkState is what the sink knows of a path.
type sinkState uint8

const (
	untold  sinkState = iota
	told              // the path as it was before
	current           // the path as it is
)

// changed notes that the sink doesn't know the path as it is now.
func (x *path) changed() { x.sink = min(x.sink, told) }

// attributes are what a path has in common with others: the neighbour, what it announced, and what was
// concluded. They never change once a path has them.
type attributes struct {
	peer        *ribPeer
	noLongLived bool // it must not be kept beyond the restart time
	llgrStale   bool // another speaker keeps it so
	localPref   uint32
	med         uint32
	neighborAS  uint32
	asPathLen   int
	clusters    int
	origin      uint8
	originator  netip.Addr // ORIGINATOR_ID, or the peer's BGP Identifier
	name        string     // originator as text
	nhcPath
	verdict verdict
}

func newAttributes(p *ribPeer, from *engine.Path) attributes {
	a := attributes{
		peer: p, localPref: from.LocalPref, med: from.MED, neighborAS: from.NeighborAS,
		asPathLen: from.ASPathLen, clusters: len(from.ClusterList), origin: from.Origin, originator: from.OriginatorID,
		nhcPath: nhcPath{
			v6: from.Prefix.Addr().Is6(), nextHop: from.NextHop, peerID: from.PeerID, from: p.broughtBy(from), untagged: !p.in.tagged(from.Communities),
			hasNHC: from.HasNHC, nhcFlags: from.NHCFlags, nhc: from.NHC,
		},
	}
	if !a.originator.IsValid() {
		a.originator = from.PeerID
	}
	a.communities(from.Communities)
	return a
}

// same reports whether both say the same, apart from what was concluded.
func (a *attributes) same(b *attributes) bool {
	return a.peer == b.peer && a.localPref == b.localPref && a.med == b.med && a.neighborAS == b.neighborAS &&
		a.asPathLen == b.asPathLen && a.clusters == b.clusters && a.origin == b.origin && a.originator == b.originator &&
		a.noLongLived == b.noLongLived && a.llgrStale == b.llgrStale &&
		a.v6 == b.v6 && a.nextHop == b.nextHop && a.peerID == b.peerID && a.from == b.from && a.untagged == b.untagged &&
		a.hasNHC == b.hasNHC && a.nhcFlags == b.nhcFlags && bytes.Equal(a.nhc, b.nhc) && a.vpn.same(b.vpn)
}

func (v *vpnPath) same(o *vpnPath) bool {
	if v == nil || o == nil {
		return v == o
	}
	return v.rd == o.rd && v.context == o.context && slices.Equal(v.targets, o.targets)
}

// attributeCache finds attributes again that were seen lately. It may forget, at the cost of memory only, so
// that it needs no count of who uses what, and its own size is fixed.
type attributeCache struct {
	seed   maphash.Seed
	last   *attributes
	recent [1 << 10]cacheSet
}

// cacheSet holds attributes whose hashes are alike, the latest first: two kinds that come by turns must not
// drive each other out.
type cacheSet [4]*attributes

func newAttributeCache() *attributeCache { return &attributeCache{seed: maphash.MakeSeed()} }

// find gives attributes that say the same, or nil, and where to put them.
func (c *attributeCache) find(a *attributes) (*attributes, *cacheSet) {
	if c.last != nil && c.last.same(a) {
		return c.last, nil
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	var b [16]byte
	binary.NativeEndian.PutUint32(b[:], a.med)
	binary.NativeEndian.PutUint32(b[4:], a.localPref)
	binary.NativeEndian.PutUint32(b[8:], a.neighborAS)
	binary.NativeEndian.PutUint32(b[12:], uint32(a.asPathLen))
	h.Write(b[:])
	for _, x := range [...]netip.Addr{a.nextHop, a.originator, a.peer.addr} {
		b = x.As16()
		h.Write(b[:])
	}
	h.Write(a.nhc)
	at := &c.recent[h.Sum64()%uint64(len(c.recent))]
	for _, x := range at {
		if x != nil && x.same(a) {
			c.last = x
			return x, at
		}
	}
	return nil, at
}

func (c *attributeCache) put(at *cacheSet, a *attributes) {
	copy(at[1:], at[:])
	at[0], c.last = a, a
}

// forget drops everything: what was concluded holds no more.
func (c *attributeCache) forget() { c.last, c.recent = nil, [len(c.recent)]cacheSet{} }

// ipv4Prefix is a prefix in 8 octets and without a pointer, for large maps.
type ipv4Prefix struct {
	addr uint32
	bits uint8
}

// prefixMap holds the paths of each prefix, sorted by neighbour, RD, then path identifier.
type prefixMap struct {
	v4 map[ipv4Prefix]*path
	v6 map[netip.Prefix]*path
}

func newPrefixMap() prefixMap {
	return prefixMap{v4: map[ipv4Prefix]*path{}, v6: map[netip.Prefix]*path{}}
}

func compact(p netip.Prefix) (ipv4Prefix, bool) {
	if !p.Addr().Is4() {
		return ipv4Prefix{}, false
	}
	a := p.Addr().As4()
	return ipv4Prefix{binary.BigEndian.Uint32(a[:]), uint8(p.Bits())}, true
}

func (k ipv4Prefix) prefix() netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], k.addr)
	return netip.PrefixFrom(netip.AddrFrom4(a), int(k.bits))
}

func (m *prefixMap) len() int { return len(m.v4) + len(m.v6) }

// first is the first path of a prefix; nil when there is none.
func (m *prefixMap) first(p netip.Prefix) *path {
	if k, ok := compact(p); ok {
		return m.v4[k]
	}
	return m.v6[p]
}

func (m *prefixMap) set(p netip.Prefix, first *path) {
	switch k, ok := compact(p); {
	case ok && first == nil:
		delete(m.v4, k)
	case ok:
		m.v4[k] = first
	case first == nil:
		delete(m.v6, p)
	default:
		m.v6[p] = first
	}
}

// all goes through the prefixes with the first path of each. A prefix may be set meanwhile.
func (m *prefixMap) all() iter.Seq2[netip.Prefix, *path] {
	return func(yield func(netip.Prefix, *path) bool) {
		for k, x := range m.v4 {
			if !yield(k.prefix(), x) {
				return
			}
		}
		for p, x := range m.v6 {
			if !yield(p, x) {
				return
			}
		}
	}
}

// list goes through x and those behind it.
func (x *path) list() iter.Seq[*path] {
	return func(yield func(*path) bool) {
		for y := x; y != nil; y = y.next {
			if !yield(y) {
				return
			}
		}
	}
}

// insert puts x into its place among the paths of its prefix, or gives the one with the same identity.
func (m *prefixMap) insert(p netip.Prefix, x *path) (same *path) {
	first := m.first(p)
	if first == nil || comparePath(x, first) < 0 {
		x.next = first
		m.set(p, x)
		return nil
	}
	at := first
	for at.next != nil && comparePath(at.next, x) <= 0 {
		at = at.next
	}
	if comparePath(at, x) == 0 {
		return at
	}
	x.next, at.next = at.next, x
	return nil
}

// remove takes out the paths for which the function says so.
func (m *prefixMap) remove(p netip.Prefix, first *path, which func(*path) bool) (removed bool) {
	kept := first
	for at := &kept; *at != nil; {
		if which(*at) {
			*at, removed = (*at).next, true
		} else {
			at = &(*at).next
		}
	}
	if kept != first {
		m.set(p, kept)
	}
	return removed
}

func comparePath(x, y *path) int {
	if c := x.peer.addr.Compare(y.peer.addr); c != 0 {
		return c
	}
	if c := compareRD(x, y); c != 0 {
		return c
	}
	return cmp.Compare(x.id, y.id)
}
