package evidence

import (
	"strings"

	"google.golang.org/protobuf/proto"

	pncv1 "pncd/api/pnc/v1"
)

// Outcome is what became of one congestion event or of one notification.
type Outcome = pncv1.Outcome

// Part is the side of the protocol that an outcome belongs to.
type Part uint8

// The parts.
const (
	PartNone           Part = iota
	PartCongestionNode      // congestion event -> notification
	PartProxy               // notification -> CNP
)

// String gives the name used in output and metrics: congestion-node or proxy.
func (p Part) String() string {
	switch p {
	case PartCongestionNode:
		return "congestion-node"
	case PartProxy:
		return "proxy"
	default:
		return "none"
	}
}

// firstProxyOutcome divides the enum: the outcomes of a congestion node have smaller numbers. Names
// don't tell the parts apart: OUTCOME_PROXY_UNREACHABLE is one of the congestion node's.
const firstProxyOutcome = pncv1.Outcome_OUTCOME_PROXY_TRANSLATED

// maxOutcomes bounds the enum's numbers; a set of outcomes fits one 64-bit word.
const maxOutcomes = 64

// PartOf gives the part that an outcome belongs to; PartNone for the unspecified one and for numbers
// that the enum does not have.
func PartOf(o Outcome) Part {
	switch {
	case o <= 0 || o >= maxOutcomes || !known[o].listed:
		return PartNone
	case o < firstProxyOutcome:
		return PartCongestionNode
	default:
		return PartProxy
	}
}

// Name gives the name used in output and metrics, as in map-miss: the enum's name in lower case,
// without prefix. It is unique within a part; an unlisted number gives "unspecified".
func Name(o Outcome) string {
	if o < 0 || o >= maxOutcomes || !known[o].listed {
		return known[0].name
	}
	return known[o].name
}

// Help gives the enum value's sentence of help; empty for an unlisted number.
func Help(o Outcome) string {
	if o < 0 || o >= maxOutcomes {
		return ""
	}
	return known[o].help
}

// Outcomes lists the outcomes of a part by number.
func Outcomes(p Part) []Outcome {
	var all []Outcome
	for o := Outcome(1); o < maxOutcomes; o++ {
		if PartOf(o) == p && p != PartNone {
			all = append(all, o)
		}
	}
	return all
}

type outcomeInfo struct {
	listed     bool
	name, help string
}

// known is read from the enum's descriptor once and never written again.
var known = readOutcomes()

func readOutcomes() [maxOutcomes]outcomeInfo {
	var table [maxOutcomes]outcomeInfo
	values := pncv1.Outcome(0).Descriptor().Values()
	for i := range values.Len() {
		v := values.Get(i)
		n := v.Number()
		if n < 0 || n >= maxOutcomes {
			continue // the test of the enum's bounds fails then
		}
		name := strings.TrimPrefix(string(v.Name()), "OUTCOME_")
		if Outcome(n) >= firstProxyOutcome {
			name = strings.TrimPrefix(name, "PROXY_")
		}
		help, _ := proto.GetExtension(v.Options(), pncv1.E_Help).(string)
		table[n] = outcomeInfo{
			listed: true,
			name:   strings.ReplaceAll(strings.ToLower(name), "_", "-"),
			help:   help,
		}
	}
	return table
}
