package readiness

// Reason says what a prefix lacks.
type Reason uint8

// The reasons, in the order in which a decision names them.
const (
	None       Reason = iota // nothing: ready
	SocketDown               // a socket or the learner doesn't run, or an address has left the node
	TapDown                  // a tap doesn't run, or its interface is down
	TapLoss                  // a tap loses packets
	MapFull                  // the Source-QP map loses entries to its bound
	NoRoute                  // the kernel has no route to the senders
	SendErrors               // CNPs to the senders can't be sent
	NoTraffic                // a direction of the senders' traffic was not seen lately

	reasonCount
)

var reasonNames = [reasonCount]string{
	"none", "socket-down", "tap-down", "tap-loss", "map-full", "no-route", "send-errors", "no-traffic",
}

// String gives the name used in output, as in tap-down.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonNames[r]
	}
	return "unknown"
}

// Reasons lists every reason but None.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonCount-1)
	for r := None + 1; r < reasonCount; r++ {
		out = append(out, r)
	}
	return out
}

// Failure is one condition that does not hold.
type Failure struct {
	Reason Reason
	Detail string // for a reader: which tap, which address
}

// State says where a prefix stands.
type State uint8

// The states.
const (
	Off        State = iota // the mechanism is off
	Held                    // not announced: not ready
	Waiting                 // not announced: ready, and the hold-down of announcing runs
	Suppressed              // not announced: ready, and damped
	Announced               // announced; ready, unless everything is announced always
	Losing                  // announced: not ready, and the hold-down of withdrawing runs

	stateCount
)

var stateNames = [stateCount]string{"off", "held", "waiting", "suppressed", "announced", "losing"}

// String gives the name used in output, as in announced.
func (s State) String() string {
	if s < stateCount {
		return stateNames[s]
	}
	return "unknown"
}

// States lists every state.
func States() []State {
	out := make([]State, 0, stateCount)
	for s := range stateCount {
		out = append(out, s)
	}
	return out
}

// Announced reports whether the capability is announced in this state.
func (s State) Announced() bool { return s == Announced || s == Losing }
