package speaker

// Drop says why a packet was not used.
type Drop uint8

// The reasons.
const (
	DropMalformed      Drop = iota + 1 // can't be read
	DropChecksum                       // of the packet, not of an LSA
	DropAuthentication                 // missing or wrong
	DropReplay                         // the sequence number of the authentication goes back
	DropInterface                      // an interface refused it; why is counted there
	DropState                          // an update or acknowledgment of a neighbour below Exchange
	DropBadRequest                     // an update with an LSA that contradicts what its sender had described
	DropLink                           // the link is not configured or down
	dropCount
)

var dropNames = [dropCount]string{"", "malformed", "checksum", "authentication", "replay", "interface", "state", "bad-request", "link"}

// String gives the name that counters use.
func (d Drop) String() string { return dropNames[d] }
