package notifier

import (
	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// outcomeOf gives the outcome for a reason not to notify. A reason not known here counts as no-proxy:
// an event must end in some outcome.
func outcomeOf(r pnc.Reason) evidence.Outcome {
	switch r {
	case pnc.ReasonContextUnknown:
		return pncv1.Outcome_OUTCOME_CONTEXT_UNKNOWN
	case pnc.ReasonDefaultRouteRefused:
		return pncv1.Outcome_OUTCOME_DEFAULT_ROUTE_REFUSED
	case pnc.ReasonProxyUnreachable:
		return pncv1.Outcome_OUTCOME_PROXY_UNREACHABLE
	case pnc.ReasonSelfProxy:
		return pncv1.Outcome_OUTCOME_SELF_PROXY
	default: // pnc.ReasonNoRoute, pnc.ReasonNoProxy
		return pncv1.Outcome_OUTCOME_NO_PROXY
	}
}
