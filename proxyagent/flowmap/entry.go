package flowmap

import "time"

// State is where an entry stands in its life. The numbers are those of pnc.v1.FlowState.
type State uint8

// The states of an entry.
const (
	StateUndecided    State = 1 // traffic was seen; the Source QP is not decided
	StateLearned      State = 2 // the Source QP is known: by CM from REP on, by votes, by DETH
	StateConfirmed    State = 3 // known, and confirmed by RTU or by data
	StateContradicted State = 4 // sources disagree, or the QP was reused
	StateAged         State = 5 // no traffic for the configured time
	StateClosed       State = 6 // DREQ, DREP or REJ ended the connection
	StateUnsupported  State = 7 // a transport whose Source QP can't be learned: DC, RD, XRC
	StateEvicted      State = 8 // removed to keep the map within its bound; seen only by watchers
)

var stateNames = [...]string{"unspecified", "undecided", "learned", "confirmed", "contradicted", "aged", "closed", "unsupported", "evicted"}

// String returns the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Source says how a Source QP was learned. The numbers are those of pnc.v1.FlowSource.
type Source uint8

// The sources, the exact ones and those by votes.
const (
	SourceNone Source = 0 // not learned
	SourceCM   Source = 1 // connection management datagrams; exact, wins over all others
	SourcePort Source = 2 // UDP source ports, with votes (RC) or without (UC)
	SourcePSN  Source = 3 // votes by packet sequence number alone
	SourceDETH Source = 4 // the source QP that UD packets carry
)

var sourceNames = [...]string{"none", "cm", "port", "psn", "deth"}

// String returns the source's name in lower case.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "unknown"
}

// Verdict is the answer of a look-up. Only Hit comes with a Source QP.
type Verdict uint8

// The verdicts.
const (
	Miss         Verdict = iota // no traffic of the flow was seen
	Hit                         // the Source QP is known
	Undecided                   // traffic was seen, but it does not decide the Source QP
	Contradicted                // sources disagree, or the QP was reused
	Aged                        // known once; no traffic since for longer than Config.AgeAfter
	Closed                      // the connection was closed
	Unsupported                 // the flow's transport has no learnable Source QP
)

var verdictNames = [...]string{"miss", "hit", "undecided", "contradicted", "aged", "closed", "unsupported"}

// String returns the verdict's name in lower case.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// Entry is a copy of one entry of the map.
type Entry struct {
	Key         Key
	SourceQP    uint32 // the sender's own QP, 24 bits; 0 when it is not known
	State       State
	Source      Source
	PKey        uint16    // P_Key of the flow's data (or of its CM REQ before data); 0 when none was seen
	VLAN        uint16    // VLAN identifier of the data; 0 without
	SrcPort     uint16    // UDP source port of the data; 0 when none was seen
	Votes       uint32    // matching votes when it was decided; 0 for the exact sources
	SeenForward bool      // data of this direction was seen
	SeenReverse bool      // the pair's other direction was seen
	Version     uint64    // the map's version when this entry last changed
	LearnedAt   time.Time // when the Source QP was learned; zero when it is not known
	ChangedAt   time.Time // when the entry last changed its state or answer
	LastSeen    time.Time // the last packet of the pair
	Detail      string    // why it is in its state, in a few words
}

// Known says whether the entry holds a Source QP that may be used.
func (e *Entry) Known() bool { return e.State == StateLearned || e.State == StateConfirmed }
