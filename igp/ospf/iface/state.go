package iface

// State is an interface's (RFC 2328 section 9.1), as far as a router of priority 0 has them.
type State uint8

// The states.
const (
	Down State = iota
	PointToPoint
	DROther
)

// String gives the name in lower case.
func (s State) String() string {
	return [...]string{"down", "point-to-point", "dr-other"}[s]
}

// Reason says why a packet was dropped.
type Reason uint8

// The reasons.
const (
	ReasonNone       Reason = iota
	ReasonDown              // the interface is down
	ReasonVersion           // not the interface's version
	ReasonArea              // another area; virtual links, too
	ReasonInstance          // OSPFv3: another instance ID
	ReasonRouterID          // the neighbour has this system's router ID, or 0.0.0.0, which stands for none
	ReasonSource            // broadcast, OSPFv2: a source outside the network, or this system's
	ReasonNotForUs          // sent to AllDRouters
	ReasonMask              // broadcast, OSPFv2: another mask
	ReasonInterval          // another HelloInterval
	ReasonDead              // another RouterDeadInterval
	ReasonEBit              // one of both takes external LSAs, the other doesn't
	ReasonNBit              // one of both is in an NSSA, the other isn't
	ReasonTooMany           // one neighbour more than there may be
	ReasonNoNeighbor        // not a hello, and from nobody whose hello was taken
	ReasonNeighbor          // the neighbour's machine dropped it, or a part of it, and counts why
	reasonCount
)

var reasonNames = [reasonCount]string{
	"none", "down", "version", "area", "instance", "router-id", "source", "not-for-us", "mask", "hello-interval",
	"dead-interval", "e-bit", "n-bit", "too-many-neighbors", "no-neighbor", "neighbor",
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
