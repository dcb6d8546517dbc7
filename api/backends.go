package api

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"pncd/pnc"
	"pncd/proxyagent/evidence"

	pncv1 "pncd/api/pnc/v1"
)

// Backends are the parts of the daemon that the server asks. Methods are called from any goroutine.
//
// They report failures as plain errors, or with Invalid, NotFound and Precondition when the caller can
// do something about them. Any other error becomes INTERNAL. A nil Table answers FAILED_PRECONDITION,
// and so do a nil Advertiser, Flows and Records; Node is required.
type Backends struct {
	Table      Table
	Advertiser Advertiser
	Flows      Flows
	Records    *evidence.Recorder
	Node       Node
	ISIS       ISIS    // nil: IS-IS is not configured
	NRPs       NRPs    // nil: this node is not a proxy
	Reports    Reports // nil: this node takes no reports
	OSPF       OSPF    // nil: neither OSPF nor the learner through FRR's API is configured
}

// Table is the capability route table; *pnc.Table satisfies it.
type Table interface {
	// Snapshot returns the current state.
	Snapshot() *pnc.Snapshot
	// Rejected returns the disregarded capabilities that are kept, oldest first.
	Rejected() []pnc.Event
	// Watch starts to watch with a bounded buffer, and the history when it is wanted.
	Watch(buffer int, history bool) *pnc.Watcher
}

// Advertiser originates the PNC at run time. Its errors: Precondition when BGP is not configured,
// Invalid for a mode or address that the configuration does not allow.
type Advertiser interface {
	// Advertise originates the PNC for a prefix and returns what is originated now.
	Advertise(ctx context.Context, a Advertise) (*pncv1.Advertisement, error)
	// Withdraw takes back what Advertise originated in a context (VPN), or outside with an empty name:
	// NotFound when it did not, Precondition when the prefix is originated by configuration.
	Withdraw(ctx context.Context, vpn string, prefix netip.Prefix) error
	// Advertisements lists what is originated, by configuration and at run time.
	Advertisements() []*pncv1.Advertisement
}

// Advertise is a checked AdvertiseRequest.
type Advertise struct {
	Context string                // empty: outside of VPNs
	Prefix  netip.Prefix          // masked, without host bits
	Mode    pncv1.OriginationMode // never unspecified
	Proxy   netip.Addr            // invalid: the configured one
	NextHop netip.Addr            // with mode originate, and only then
	From    netip.Addr            // the neighbour that is followed; invalid: any, and with mode originate
	Lease   time.Duration         // 0: until it is withdrawn
}

// FlowFilter chooses flows.
type FlowFilter struct {
	Sender   netip.Addr // invalid: all
	Receiver netip.Addr // invalid: all
	Context  *string    // nil: all; empty: the default one
	States   []pncv1.FlowState
}

// Match reports whether a flow in a context is chosen.
func (f FlowFilter) Match(vpn string, sender, receiver netip.Addr, state pncv1.FlowState) bool {
	return (f.Context == nil || *f.Context == vpn) && (!f.Sender.IsValid() || f.Sender == sender.Unmap()) &&
		(!f.Receiver.IsValid() || f.Receiver == receiver.Unmap()) &&
		(len(f.States) == 0 || slices.Contains(f.States, state))
}

// Flows is the Source-QP map. Its methods fail with Precondition when this node is not a proxy.
type Flows interface {
	// RangeFlows calls yield for each flow that f matches, in any order, until yield returns false, and
	// returns the map's version from before the first call.
	RangeFlows(ctx context.Context, f FlowFilter, yield func(*pncv1.Flow) bool) (version uint64, err error)
	// GetFlow returns one flow of a context (VPN; empty: the default one), or NotFound.
	GetFlow(ctx context.Context, vpn string, sender, receiver netip.Addr, destQP uint32) (*pncv1.Flow, error)
	// WatchFlows starts to watch changes with a bounded buffer.
	WatchFlows(buffer int) (Stream[*pncv1.Flow], error)
}

// Node is the daemon itself.
type Node interface {
	// Enabled reports whether the mechanism is switched on.
	Enabled() bool
	// Status reads the status.
	Status(ctx context.Context) (*pncv1.GetStatusResponse, error)
	// Enable switches the mechanism on, and says whether it was on before.
	Enable(ctx context.Context) (was bool, err error)
	// Disable switches the mechanism off, and says whether it was on before.
	Disable(ctx context.Context) (was bool, err error)
	// Reload reads the configuration file again and applies it as a whole or not at all; it returns what
	// changed, a line each. Invalid for a file that cannot be applied.
	Reload(ctx context.Context) (changes []string, err error)
	// Config returns the running configuration as YAML with secrets left out.
	Config(ctx context.Context) (yaml string, err error)
	// Neighbors lists the BGP neighbours; none when BGP is not configured.
	Neighbors(ctx context.Context) ([]*pncv1.Neighbor, error)
	// RefreshNeighbor asks a neighbour for its routes again, or sends it ours, and says for which address
	// families. NotFound for one that is not configured.
	RefreshNeighbor(ctx context.Context, addr netip.Addr, in, out bool) (families []string, err error)
	// Boundary reads the border filter from the kernel.
	Boundary(ctx context.Context) (*pncv1.GetBoundaryResponse, error)
	// SetLogLevel changes the log level and returns the one before; Invalid for a name that is none.
	SetLogLevel(level string) (previous string, err error)
	// Counters lists every exact counter of every part.
	Counters() []*pncv1.Counter
}

// Stream is one reader's bounded feed of changes: when the reader is too slow, items are dropped and
// counted, and the writer never waits.
type Stream[T any] interface {
	// Next waits for the next item. dropped counts the items lost right before it. The error is the
	// context's, or io.EOF when the part that is watched ended.
	Next(ctx context.Context) (item T, dropped uint64, err error)
	// Close ends the feed. It may be called more than once.
	Close()
}
