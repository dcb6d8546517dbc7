package flowmap

import "slices"

// lags holds the latest lags from request to response of decided pairs, for rule 2.
type lags struct {
	recent [lagsNeeded]int64
	n      uint32
	bound  int64 // 0 until enough are known
}

func (l *lags) add(lag int64) {
	l.recent[l.n%lagsNeeded] = max(lag, 0)
	l.n++
	if l.n%lagsNeeded == 0 {
		sorted := l.recent
		slices.Sort(sorted[:])
		l.bound = min(lagFactor*sorted[lagsNeeded/2]+lagSlack, lagBoundStart)
	}
}

// enough says whether the bound comes from decided pairs.
func (l *lags) enough() bool { return l != nil && l.bound != 0 }

// limit is how old a request may be and still be taken for the one that a response answers.
func (l *lags) limit() int64 {
	if !l.enough() {
		return lagBoundStart
	}
	return l.bound
}
