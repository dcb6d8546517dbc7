package neighbor

// State is how far a neighbour is (RFC 2328 section 10.1). Attempt belongs to networks without broadcast,
// which are not spoken here.
type State uint8

// The states.
const (
	Down State = iota
	Init
	TwoWay
	ExStart
	Exchange
	Loading
	Full
)

// String gives the name in lower case.
func (s State) String() string {
	return [...]string{"down", "init", "two-way", "exstart", "exchange", "loading", "full"}[s]
}

// Reason says why a packet, or a part of one, was dropped, or why a neighbour went back to an earlier state.
type Reason uint8

// The reasons.
const (
	ReasonNone        Reason = iota
	ReasonWrongKind          // neither description nor request
	ReasonState              // a packet that the state does not take
	ReasonMTU                // the neighbour's packets may be larger than ours (RFC 2328 section 10.6)
	ReasonEBit               // one of both takes external LSAs, the other doesn't
	ReasonNegotiation        // ExStart: settles neither who is master nor who is slave
	ReasonDuplicate          // a description that was there before
	ReasonMaster             // the MS bit changed
	ReasonInitial            // the I bit in the middle of an exchange: the neighbour began anew
	ReasonOptions            // the options changed within an exchange
	ReasonSequence           // not the DD sequence number that must follow
	ReasonLSType             // describes an LSA whose type nobody defined, or that the area doesn't take
	ReasonScope              // OSPFv3: an LSA with reserved scope; it alone is dropped
	ReasonTooMany            // an LSA beyond MaxRequests; it alone is dropped
	ReasonBadRequest         // BadLSReq: asks for an LSA that isn't there, or answers with one that wasn't asked for
	ReasonOneWay             // the neighbour's hello doesn't name this system
	ReasonInactive           // no hello within RouterDeadInterval
	ReasonNotWanted          // AdjOK?: no adjacency any more
	ReasonKilled             // KillNbr
	ReasonLinkDown           // LLDown
	reasonCount
)

var reasonNames = [reasonCount]string{
	"none", "wrong-kind", "state", "mtu", "e-bit", "negotiation", "duplicate", "master", "initial", "options", "sequence",
	"ls-type", "scope", "too-many", "bad-request", "one-way", "inactive", "not-wanted", "killed", "link-down",
}

// String gives the name that counters use.
func (r Reason) String() string { return reasonNames[r] }

// Reasons lists all reasons that count something.
func Reasons() (all []Reason) {
	for r := ReasonNone + 1; r < reasonCount; r++ {
		all = append(all, r)
	}
	return all
}

// Event is a change of state.
type Event struct {
	From, To State
	Reason   Reason // ReasonNone when it went forward
}
