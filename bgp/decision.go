package bgp

import (
	"cmp"
	"iter"
)

// The decision process (RFC 4271 section 9.1.2.2, RFC 4456 section 9) has three parts: what orders all paths
// before MED, MED, which orders those from one neighbouring AS only, and what orders the rest. The PNC has no part
// in it. One step is left out: the IGP cost to the next hop, which this node doesn't know.

// beforeMED orders two paths by the steps before MED. A path that is kept for long comes after all others
// (RFC 9494 section 4.3).
func beforeMED(a, b *path) int {
	return firstOf(
		compareBool(a.longLived, b.longLived),
		cmp.Compare(b.localPref, a.localPref),
		cmp.Compare(a.asPathLen, b.asPathLen),
		cmp.Compare(a.origin, b.origin),
	)
}

// afterMED orders two paths by the steps after MED.
func afterMED(a, b *path) int {
	return firstOf(
		compareBool(b.peer.ebgp, a.peer.ebgp),
		a.originator.Compare(b.originator),
		cmp.Compare(a.clusters, b.clusters),
		a.peer.addr.Compare(b.peer.addr),
		compareRD(a, b),
		cmp.Compare(a.id, b.id),
	)
}

func firstOf(steps ...int) int {
	for _, s := range steps {
		if s != 0 {
			return s
		}
	}
	return 0
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// best picks the best path that has a next hop; nil when there is none. A path whose MED another of its
// neighbouring AS undercuts is out before the steps after MED compare any (RFC 4271 section 9.1.2.2 c): pair by
// pair, the answer would depend on the order in which the paths come.
func best(paths iter.Seq[*path]) *path {
	var lead *path // first by what comes before MED
	n := 0
	for p := range paths {
		n++
		if p.nextHop.IsValid() && (lead == nil || beforeMED(p, lead) < 0) {
			lead = p
		}
	}
	if lead == nil || n == 1 {
		return lead
	}
	var b *path
	for p := range paths {
		if p.nextHop.IsValid() && beforeMED(p, lead) == 0 && !undercut(p, paths) && (b == nil || afterMED(p, b) < 0) {
			b = p
		}
	}
	return b
}

// undercut reports whether a path as good as p up to there, of the same neighbouring AS, has a lower MED.
func undercut(p *path, paths iter.Seq[*path]) bool {
	for q := range paths {
		if q.neighborAS == p.neighborAS && q.med < p.med && q.nextHop.IsValid() && beforeMED(q, p) == 0 {
			return true
		}
	}
	return false
}
