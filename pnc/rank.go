package pnc

import (
	"cmp"
	"slices"
	"strings"
)

// ranking orders the sources: the lower, the better.
type ranking [sourceCount]uint8

func newRanking(preference []Source) ranking {
	var r ranking
	place := uint8(0)
	for _, s := range append(slices.Clone(preference), Sources()...) {
		if s.Valid() && r[s] == 0 {
			place++
			r[s] = place
		}
	}
	return r
}

// Before reports whether routes of a come before those of b by Config.Preference.
func (s *Snapshot) Before(a, b Source) bool { return s.rank[a] < s.rank[b] }

// compare orders the routes of one prefix, best first; it is a total order over route identities.
func (rk *ranking) compare(a, b *Entry) int {
	if c := rk.compareMerit(a, b); c != 0 {
		return c
	}
	return cmp.Or(
		a.proxy.Compare(b.proxy), // an IPv4 address is lower than any IPv6 address
		strings.Compare(a.peer, b.peer),
		strings.Compare(a.rd, b.rd),
		cmp.Compare(a.pathID, b.pathID),
	)
}

// compareMerit is compare without the tie rules: routes that it calls the same are equal proxies,
// which share flows.
func (rk *ranking) compareMerit(a, b *Entry) int {
	if c := falseFirst(!a.Believed(), !b.Believed()); c != 0 {
		return c
	}
	if c := cmp.Compare(rk[a.source], rk[b.source]); c != 0 {
		return c
	}
	if a.source == SourceBGP {
		if c := falseFirst(a.LongLived(), b.LongLived()); c != 0 {
			return c // RFC 9494 section 4.3: the least preferred
		}
		return falseFirst(!a.Best(), !b.Best())
	}
	return cmp.Compare(a.metric, b.metric)
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
