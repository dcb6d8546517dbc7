package pnc

// NotUsed says why a route of the winning prefix is not the answer to a resolution.
type NotUsed uint8

// The reasons, the first that applies.
const (
	NotUsedNone             NotUsed = iota // it is the answer
	NotUsedDefaultRoute                    // a default route, and it may not be used
	NotUsedNoProxy                         // it carries no PNC
	NotUsedNotBelieved                     // its PNC is not believed: Route.Disregarded says why
	NotUsedSelfProxy                       // its proxy is this node
	NotUsedProxyUnreachable                // its proxy's address has no route
	NotUsedPreference                      // the answer's source comes before its own (Config.Preference)
	NotUsedLongLived                       // BGP: kept beyond a restart time, which comes after all others
	NotUsedNotBest                         // BGP: the answer is a best path, this is not
	NotUsedMetric                          // the answer's metric is lower
	NotUsedTie                             // equal in all of that: the lowest address, then peer and so on, decided
	NotUsedShared                          // equal in all of that: other flows use it (ShareHash)

	notUsedCount
)

var notUsedNames = [notUsedCount]string{
	"none", "default-route-refused", "no-proxy", "not-believed", "self-proxy", "proxy-unreachable",
	"preference", "long-lived", "not-best", "metric", "tie", "shared",
}

// String gives the name used in output, as in preference.
func (n NotUsed) String() string { return enumName(notUsedNames[:], int(n), "not-used") }

// NotUsedReasons lists every reason for which a route is not used (NotUsedNone is not one).
func NotUsedReasons() []NotUsed { return enumAll[NotUsed](int(notUsedCount)) }

// NotUsed says why r, one of the Candidates that this snapshot gave, is not what Resolve answered from it.
func (s *Snapshot) NotUsed(r *Route, answer Resolution) NotUsed {
	if answer.Reason == ReasonFound && answer.Route.ID() == r.ID() {
		return NotUsedNone
	}
	reach, _ := s.RouteReach(r)
	switch {
	case r.Prefix.Bits() == 0 && !s.allowDefault:
		return NotUsedDefaultRoute
	case r.Disregarded != DisregardNone:
		return NotUsedNotBelieved
	case !r.Proxy.IsValid():
		return NotUsedNoProxy
	case reach.Self:
		return NotUsedSelfProxy
	case !reach.usable():
		return NotUsedProxyUnreachable
	}
	// A usable one means that there was an answer, which is not worse.
	used := answer.Route
	switch {
	case s.rank[r.Source] != s.rank[used.source]:
		return NotUsedPreference
	case r.Source == SourceBGP && r.LongLived && !used.LongLived():
		return NotUsedLongLived
	case r.Source == SourceBGP && !r.Best && used.Best():
		return NotUsedNotBest
	case r.Source != SourceBGP && r.Metric != used.metric:
		return NotUsedMetric
	case s.share == ShareHash && r.Proxy != used.proxy:
		return NotUsedShared
	}
	return NotUsedTie
}
