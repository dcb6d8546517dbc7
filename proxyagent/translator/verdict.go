package translator

import (
	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
)

// outcomeOf gives the outcome for a verdict of the Source-QP map that allows no CNP; unspecified for
// Hit, which does. A verdict not known here counts as a miss: no CNP without an answer.
func outcomeOf(v flowmap.Verdict) evidence.Outcome {
	switch v {
	case flowmap.Hit:
		return pncv1.Outcome_OUTCOME_UNSPECIFIED
	case flowmap.Undecided:
		return pncv1.Outcome_OUTCOME_PROXY_MAP_UNDECIDED
	case flowmap.Contradicted:
		return pncv1.Outcome_OUTCOME_PROXY_MAP_CONTRADICTED
	case flowmap.Aged, flowmap.Closed:
		return pncv1.Outcome_OUTCOME_PROXY_MAP_AGED
	case flowmap.Unsupported:
		return pncv1.Outcome_OUTCOME_PROXY_UNSUPPORTED_TRANSPORT
	default:
		return pncv1.Outcome_OUTCOME_PROXY_MAP_MISS
	}
}

// entryOf is the map's entry as a record keeps it. The numbers of flowmap's states and sources are
// those of the protobuf.
func entryOf(e *flowmap.Entry) evidence.MapEntry {
	return evidence.MapEntry{
		State: pncv1.FlowState(e.State), Source: pncv1.FlowSource(e.Source),
		SourceQP: e.SourceQP, PKey: e.PKey, Version: e.Version, Votes: e.Votes,
		Forward: e.SeenForward, Reverse: e.SeenReverse,
		LearnedAt: e.LearnedAt, ChangedAt: e.ChangedAt, LastSeen: e.LastSeen,
		UDPSourcePort: e.SrcPort, Detail: e.Detail,
	}
}
