package bgp

import (
	"cmp"
	"iter"
)

// better orders two paths of a prefix as the decision process does (RFC 4271 section 9.1.2.2 and
// RFC 4456 section 9). A path that is kept for long comes after all others (RFC 9494 section 4.3). The PNC
// has no part in it. One step is left out: the IGP cost to the next hop, which this node doesn't know.
func better(a, b *path) bool {
	steps := [...]int{
		compareBool(a.longLived, b.longLived),
		cmp.Compare(b.localPref, a.localPref),
		cmp.Compare(a.asPathLen, b.asPathLen),
		cmp.Compare(a.origin, b.origin),
		compareMED(a, b),
		compareBool(b.peer.ebgp, a.peer.ebgp),
		a.originator.Compare(b.originator),
		cmp.Compare(a.clusters, b.clusters),
		a.peer.addr.Compare(b.peer.addr),
		compareRD(a, b),
		cmp.Compare(a.id, b.id),
	}
	for _, s := range steps {
		if s != 0 {
			return s < 0
		}
	}
	return false
}

// compareMED compares MEDs of one neighbouring AS only (RFC 4271 section 9.1.2.2 c).
func compareMED(a, b *path) int {
	if a.neighborAS != b.neighborAS {
		return 0
	}
	return cmp.Compare(a.med, b.med)
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

// best picks the best path that has a next hop; nil when there is none. It goes through the paths in
// the order in which they are kept (by neighbour, then path identifier), so that MEDs, which aren't
// totally ordered, give the same answer each time.
func best(paths iter.Seq[*path]) *path {
	var b *path
	for p := range paths {
		if p.nextHop.IsValid() && (b == nil || better(p, b)) {
			b = p
		}
	}
	return b
}
